"""The truth table of names: what each language's compilers, runtimes and samplers print, and its symbol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.counting.names import RULES, VERSION, Naming

CPP = {
    "shop::Cart<Item>::add(Item const&)": "shop::Cart::add",
    "shop::Cart::add(Item const&) const": "shop::Cart::add",
    "shop::Cart<Item>::add(Item const&) [clone .constprop.0]": "shop::Cart::add",
    "shop::Cart::add(int) [clone .isra.0] [clone .cold]": "shop::Cart::add",
    "std::vector<int, std::allocator<int> >::push_back(int const&)": "std::vector::push_back",
    "void shop::Cart<Item>::add<int>(int) const": "shop::Cart::add",
    "std::unique_ptr<Item> shop::make<Item>(int)": "shop::make",
    "oopDesc* PSPromotionManager::copy_to_survivor<false>": "PSPromotionManager::copy_to_survivor",
    "boost::mpl::if_c<(1>2), int>::type::f()": "boost::mpl::if_c::type::f",
    "shop::total(int)::{lambda(int)#1}::operator()(int) const": "shop::total",
    "shop::run()::{lambda(std::function<void ()>)#1}::operator()(std::function<void ()>) const": "shop::run",
    "shop::run()::{lambda(auto:1)#1}::operator()<int>(int) const": "shop::run",
    "shop::run()::{lambda()#1}::_FUN()": "shop::run",
    "shop::run()::$_0::operator()() const": "shop::run",
    "shop::run()::'lambda'(int)::operator()(int) const": "shop::run",
    "shop::run()::'lambda0'(int)::operator()(int) const": "shop::run",
    "{lambda(int)#1}::operator()(int) const": "{lambda}::operator()",
    "<lambda_0123456789abcdef0123456789abcdef>::operator()": "<lambda>::operator()",
    "std::_Function_handler<void (), run()::{lambda()#1}>::_M_invoke(std::_Any_data const&)": (
        "std::_Function_handler::_M_invoke"
    ),
    "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)": "std::operator<<",
    "shop::operator<(A const&, B const&)": "shop::operator<",
    "bool operator==<int>(A<int> const&, A<int> const&)": "operator==",
    "shop::Cart::operator()(int) const": "shop::Cart::operator()",
    "shop::Cart::operator bool() const": "shop::Cart::operator bool",
    "shop::Cart::operator->() const": "shop::Cart::operator->",
    "shop::Cart::operator[](unsigned long)": "shop::Cart::operator[]",
    "operator new(unsigned long)": "operator new",
    "operator delete[](void*)": "operator delete[]",
    "(anonymous namespace)::parse(char const*)": "(anonymous namespace)::parse",
    "shop::(anonymous namespace)::Parser<int>::next()": "shop::(anonymous namespace)::Parser::next",
    "int (anonymous namespace)::parse<int>(char const*)": "(anonymous namespace)::parse",
    "std::__cxx11::to_string[abi:cxx11](int)": "std::__cxx11::to_string",
    "std::string::_M_rep[abi:cxx11]() const": "std::string::_M_rep",
    "non-virtual thunk to shop::Cart::add(int)": "shop::Cart::add",
    "decltype (a(b)) shop::call<int>(int)": "shop::call",
    "shop::Cart::~Cart()": "shop::Cart::~Cart",
    "memcpy.part.0": "memcpy",
    "run.isra.0.cold": "run",
    "total.constprop.12": "total",
    "foo.cold": "foo",
    "foo(int) (.cold)": "foo",
    "foo.llvm.1234567890": "foo",
    "foo.lto_priv.0": "foo",
    "main": "main",
    "shop::Cart::add": "shop::Cart::add",
    "operator<": "operator<",
    "shop::operator<": "shop::operator<",
    "(anonymous namespace)::parse": "(anonymous namespace)::parse",
    "a<b": "a<b",
    "utf8_decode2": "utf8_decode2",
}
JAVA = {
    "a/Shop$$Lambda$lambda$total$1$1234567890.0x0000000000020abc.call": "a/Shop$$Lambda$lambda$total.call",
    "com.acme.Shop$$Lambda$price$7.0x00007f1c2401a840.accept": "com.acme.Shop$$Lambda$price.accept",
    "com/acme/Shop$$Lambda$123/0x00007f1c2401a840.accept": "com/acme/Shop$$Lambda.accept",
    "com/acme/Shop$$Lambda$14.0x0000000800c03000.run": "com/acme/Shop$$Lambda.run",
    "com.acme.Shop$$Lambda/0x0000000800c03000.run": "com.acme.Shop$$Lambda.run",
    "com.acme.Shop$$Lambda$12/1234567890.run": "com.acme.Shop$$Lambda.run",
    "com.acme.Shop$$Lambda$12.add": "com.acme.Shop$$Lambda.add",
    "Shop$$Lambda$12/000000001234ABCD.run": "Shop$$Lambda.run",
    "$$Lambda$263/0x2d73ed8f": "$$Lambda",
    "com/acme/Shop.lambda$total$3_[j]": "com/acme/Shop.total",
    "com/acme/Shop.lambda$new$0": "com/acme/Shop.<init>",
    "com/acme/Shop.lambda$static$0": "com/acme/Shop.<clinit>",
    "com/acme/Shop.lambda$null$2": "com/acme/Shop.lambda",
    "com.acme.ShopKt.total$lambda$3": "com.acme.ShopKt.total",
    "com.acme.ShopKt.total$lambda-3": "com.acme.ShopKt.total",
    "com.acme.Shop$.$anonfun$total$1$adapted": "com.acme.Shop$.total",
    "com.acme.Shop$$anonfun$total$1.apply": "com.acme.Shop.total",
    "com.foo.Bar.baz(Ljava/lang/String;I)V": "com.foo.Bar.baz",
    "com.foo.Bar.baz(Ljava/lang/String": "com.foo.Bar.baz",
    "com.foo.Bar.baz([[ILjava/lang/String;)[Ljava/lang/Object;": "com.foo.Bar.baz",
    "com.foo.Bar.baz()V": "com.foo.Bar.baz",
    "com.foo.Bar.baz(Ljava/lang/String;": "com.foo.Bar.baz",
    "Lcom/foo/Bar;::baz": "com/foo/Bar.baz",
    "Lcom/foo/Bar;.baz": "com/foo/Bar.baz",
    "Lcom/foo/Bar$Slot;.getValue(Lcom/foo/Scope;": "com/foo/Bar$Slot.getValue",
    "Lcom/foo/Bar;::<init>(Ljava/lang/String;I)V": "com/foo/Bar.<init>",
    "Label;": "Label;",
    "void com.foo.Bar.baz(int, java.lang.String)": "com.foo.Bar.baz",
    "jdk/internal/GeneratedMethodAccessor123.invoke": "jdk/internal/GeneratedMethodAccessor.invoke",
    "sun.reflect.GeneratedConstructorAccessor7.run": "sun.reflect.GeneratedConstructorAccessor.run",
    "jdk.proxy2.$Proxy33.find": "jdk.proxy.$Proxy.find",
    "com.sun.proxy.$Proxy12.find": "com.sun.proxy.$Proxy.find",
    "com.acme.Shop$$EnhancerBySpringCGLIB$$ab12cd34.total": "com.acme.Shop$$EnhancerBySpringCGLIB.total",
    "com.acme.Shop$$SpringCGLIB$$0.total": "com.acme.Shop$$SpringCGLIB.total",
    "com.acme.Shop$$FastClassBySpringCGLIB$$1a2b3c.invoke": "com.acme.Shop$$FastClassBySpringCGLIB.invoke",
    "com.acme.Shop$ByteBuddy$AbC12x.total": "com.acme.Shop$ByteBuddy.total",
    "com.acme.Shop_$$_jvst4f5_0.total": "com.acme.Shop_$$_javassist.total",
    "java.lang.invoke.LambdaForm$MH/0x0000000800c03000.invoke": "java.lang.invoke.LambdaForm$MH.invoke",
    "java.lang.invoke.LambdaForm$DMH/1234567.invokeStatic": "java.lang.invoke.LambdaForm$DMH.invokeStatic",
    "com.acme.Hidden+0x00007f1c2401a840.run": "com.acme.Hidden.run",
    "shop.core$total__1234.invoke": "shop.core$total.invoke",
    "shop.core$eval1234.invoke": "shop.core$eval.invoke",
    "java/lang/Thread.run": "java/lang/Thread.run",
    "Shop$1.run": "Shop$1.run",
    "java/util/stream/ReferencePipeline$3$1.accept": "java/util/stream/ReferencePipeline$3$1.accept",
    "com.acme.Shop$Builder.build": "com.acme.Shop$Builder.build",
    "java.lang.String.<init>": "java.lang.String.<init>",
    "com.acme.Shop.<clinit>": "com.acme.Shop.<clinit>",
    "com.acme.Lambda.apply2": "com.acme.Lambda.apply2",
}
GO = {
    "main.(*Cart).Add.func1": "main.(*Cart).Add",
    "main.main.func2.1": "main.main",
    "main.glob..func1": "main.glob",
    "net/http.(*conn).serve.func1": "net/http.(*conn).serve",
    "net/http.HandlerFunc.ServeHTTP-fm": "net/http.HandlerFunc.ServeHTTP",
    "sort.Slice.func1": "sort.Slice",
    "runtime.gcBgMarkWorker.gowrap1": "runtime.gcBgMarkWorker",
    "github.com/acme/shop/cart.Total.deferwrap2": "github.com/acme/shop/cart.Total",
    "main.work.func1.deferwrap2": "main.work",
    "main.walk-range1": "main.walk",
    "main.Map[go.shape.int,go.shape.string]": "main.Map[...]",
    "main.Map[go.shape.int].func1": "main.Map[...]",
    "main.Map[...].func1": "main.Map[...]",
    "main.Map[...]": "main.Map[...]",
    "main.(*Cart[...]).Add": "main.(*Cart[...]).Add",
    "main.(*Cart).Add": "main.(*Cart).Add",
    "main.init.0": "main.init.0",
    "github.com/acme/shop/v2.Total": "github.com/acme/shop/v2.Total",
    "gopkg.in/yaml%2ev3.Unmarshal": "gopkg.in/yaml%2ev3.Unmarshal",
    "runtime.mallocgc": "runtime.mallocgc",
}
RUST = {
    "core::ops::function::FnOnce::call_once::h0123456789abcdef": "core::ops::function::FnOnce::call_once",
    "core::ops::function::FnOnce::call_once{{vtable.shim}}::h0123456789abcdef": (
        "core::ops::function::FnOnce::call_once"
    ),
    "shop::cart::add::{{closure}}::hfedcba9876543210": "shop::cart::add",
    "shop::cart::add::{closure#0}": "shop::cart::add",
    "shop::cart::add::{closure_env#0}": "shop::cart::add",
    "shop::cart::{impl#3}::add": "shop::cart::add",
    "<shop::cart::Cart as core::ops::arith::Add>::add::h0123456789abcdef": "shop::cart::Cart::add",
    "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop": "alloc::vec::Vec::drop",
    "<&mut shop::Cart as core::fmt::Debug>::fmt": "shop::Cart::fmt",
    "_$LT$shop..cart..Cart$u20$as$u20$core..ops..Add$GT$::add::h0123456789abcdef": "shop::cart::Cart::add",
    "alloc::vec::Vec<T,A>::push": "alloc::vec::Vec::push",
    "shop::cart::add::<u32>": "shop::cart::add",
    "shop::cart::<impl shop::cart::Cart>::add": "shop::cart::Cart::add",
    "core::slice::<impl [T]>::sort": "core::slice::sort",
    "core::ptr::drop_in_place<alloc::string::String>": "core::ptr::drop_in_place",
    "_ZN4shop4cart3add17h0123456789abcdefE": "shop::cart::add",
    "shop[a1b2c3d4e5f60718]::cart::add": "shop::cart::add",
    "shop::cart::add": "shop::cart::add",
    "shop::hash::h0123": "shop::hash::h0123",
}
MANGLED = {
    "_ZN4shop4Cart3addEv": "shop::Cart::add",
    "_ZNK4shop4CartI4ItemE3addEiPKc": "shop::Cart::add",
    "_ZN4shop4CartI4ItemE3addIiEEvT_": "shop::Cart::add",
    "_Z5totali": "total",
    "_ZL5totali": "total",
    "__ZN4shop4Cart3addEv": "shop::Cart::add",
    "_ZN12_GLOBAL__N_15parseEPKc": "(anonymous namespace)::parse",
    "_ZN4shop4CartC2Ev": "shop::Cart::Cart",
    "_ZN4shop4CartD0Ev": "shop::Cart::~Cart",
    "_ZN4shopltERKNS_1AES2_": "shop::operator<",
    "_ZNK4shop4CartcvbEv": "shop::Cart::operator bool",
    "_ZNSt6vectorIiSaIiEE9push_backERKi": "std::vector::push_back",
    "_ZNSt7__cxx119to_stringB5cxx11Ei": "std::__cxx11::to_string",
    "_Znwm": "operator new",
    "_ZZN4shop5totalEiENKUliE_clEi": "shop::total",
    "_ZZN4shop3runEvEN5Local3addEv": "shop::run::Local::add",
    "_ZThn16_N4shop4Cart3addEv": "shop::Cart::add",
    "_ZN4shop4Cart3addEv.part.0": "shop::Cart::add",
    "_ZN4shop4Cart3addEv.constprop.12.cold": "shop::Cart::add",
    "_ZN4shop4Cart3addEv.llvm.1234567890": "shop::Cart::add",
    "_ZN4shop4Cart3addEv.123": "shop::Cart::add",
    "_ZN4shop4Cart3addEv+0x1a4": "shop::Cart::add",
    "_ZN4shop4Cart3addEv_[k]": "shop::Cart::add",
    "_ZN4shop4Cart3addEv@plt": "shop::Cart::add",
    "_ZNSt6thread4joinEv@@GLIBCXX_3.4.11": "std::thread::join",
    "shop::Cart::add()@plt": "shop::Cart::add",
    "memcpy@GLIBC_2.2.5": "memcpy",
    "memcpy@plt": "memcpy",
    "_ZN4shop4cart3addE": "shop::cart::add",
    "_ZN4shop4cart3add28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE": "shop::cart::add",
    "_ZN70_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE": (
        "alloc::vec::Vec::drop"
    ),
    "_RNvNtCs1a2b3c4d5e6_4shop4cart3add": "shop::cart::add",
    "_RNvMNtCs1a2b3c4d5e6_4shop4cartNtB2_4Cart3add": "shop::cart::Cart::add",
    "_RNvXs_NtCs1a2b3c4d5e6_4shop4cartNtB4_4CartNtNtCs9_4core3fmt5Debug3fmt": "shop::cart::Cart::fmt",
    "_RINvNtCs1a2b3c4d5e6_4shop4cart3addmE": "shop::cart::add",
    "_RNCNvNtCs1a2b3c4d5e6_4shop4cart3add0B5_": "shop::cart::add",
    "_RNvNtCs1a2b3c4d5e6_4shop4cart3add.llvm.123": "shop::cart::add",
    "?add@Cart@shop@@QEAAXXZ": "shop::Cart::add",
    "??0Cart@shop@@QEAA@XZ": "shop::Cart::Cart",
    "??$add@H@Cart@shop@@QEAAXH@Z": "shop::Cart::add",
    "Java_com_acme_Shop_total": "Java_com_acme_Shop_total",
    "_ZN4shop4Cart3ad": "_ZN4shop4Cart3ad",
    "_Zebra": "_Zebra",
    "_Read": "_Read",
    "???": "???",
    "handle /app/node_modules/@acme/x.js": "handle /app/node_modules/@acme/x.js",
}
JAVASCRIPT = {
    "LazyCompile:*handle /app/dist/router.js:412:19": "JS:handle /app/dist/router.js",
    "LazyCompile:~handle /app/dist/router.js:412": "JS:handle /app/dist/router.js",
    "JS:^handle file:///app/x.js:1:2": "JS:handle file:///app/x.js",
    "Function:*handle /app/x.js:1": "JS:handle /app/x.js",
    "Function::call": "Function::call",
    "Script::Eval::run": "Script::Eval::run",
    "(anonymous) /app/index.js:12:3": "(anonymous) /app/index.js",
    "bound fetch": "fetch",
    "bound bound fetch": "fetch",
    "async handle": "handle",
    "handle /app/dist/main.3f2a9c1b.js:1:2345": "handle /app/dist/main.js",
    "(anonymous)": "(anonymous)",
    "Object.<anonymous>": "Object.<anonymous>",
    "get total": "get total",
    "Cart.total": "Cart.total",
    "wasm-function[123]": "wasm-function[123]",
    "boundary.check2": "boundary.check2",
}
PHP = {
    "{closure:/app/src/Cart.php:12}": "{closure:/app/src/Cart.php}",
    "{closure:/app/src/Cart.php(12)}": "{closure:/app/src/Cart.php}",
    "{closure:Shop\\Cart::add():12}": "Shop\\Cart::add",
    "Shop\\Cart::add /app/Cart.php:12": "Shop\\Cart::add /app/Cart.php",
    "class@anonymous/app/x.php:12$0::run": "class@anonymous/app/x.php::run",
    "{closure}": "{closure}",
    "Shop\\Cart::{closure}": "Shop\\Cart::{closure}",
    "Shop\\Cart2::add": "Shop\\Cart2::add",
}
DOTNET = {
    "Shop.Cart+<GetAsync>d__12.MoveNext()": "Shop.Cart.GetAsync",
    "Shop.Cart+<>c__DisplayClass5_0.<Total>b__0(class Item)": "Shop.Cart.Total",
    "Shop.Cart+<>c.<Total>b__3_0(class Item)": "Shop.Cart.Total",
    "Shop.Cart.<Total>g__Add|3_0(int32)": "Shop.Cart.Total",
    "System.Collections.Generic.List`1[System.__Canon].Add(!0)": "System.Collections.Generic.List`1.Add",
    "System.Private.CoreLib!System.Threading.Tasks.Task.Run(class System.Object)": (
        "System.Private.CoreLib!System.Threading.Tasks.Task.Run"
    ),
    "DynamicClass.lambda_method123(pMT: 00007FF)": "DynamicClass.lambda_method",
    "Shop.Cart..ctor": "Shop.Cart..ctor",
}
PYTHON = {
    "app.py:12(total)": "total (app.py)",
    "/srv/shop/cart.py:40(Cart.load)": "Cart.load (/srv/shop/cart.py)",
    "~:0(<built-in method builtins.len>)": "<built-in method builtins.len>",
    "app.py:40(<module>)": "<module> (app.py)",
    "shop.jobs.ipykernel_4711.123456.main": "shop.jobs.ipykernel.main",
    "<ipython-input-12-a1b2c3>.main": "<ipython-input>.main",
    "shop.cart.Cart.<lambda>": "shop.cart.Cart.<lambda>",
    "<lambda>": "<lambda>",
    "shop.cart.<module>": "shop.cart.<module>",
    "shop.cart.total.<locals>.rate": "shop.cart.total.<locals>.rate",
    "shop.cart.<listcomp>": "shop.cart.<listcomp>",
    "<string>.foo": "<string>.foo",
    "<frozen importlib._bootstrap>._call": "<frozen importlib._bootstrap>._call",
    "py::<module>:/app/x.py": "py::<module>:/app/x.py",
    "shop.pricing.cold": "shop.pricing.cold",
    "shop.cart.func1": "shop.cart.func1",
    "shop.codec.utf8.decode_v2": "shop.codec.utf8.decode_v2",
    "operator.add2": "operator.add2",
}
OTHERS = {
    "block (2 levels) in Shop::Cart#add": "Shop::Cart#add",
    "rescue in Shop::Cart#add": "Shop::Cart#add",
    "add - /app/cart.rb:12": "add - /app/cart.rb",
    "closure #1 in Shop.Cart.add(x: Swift.Int) -> Swift.String": "Shop.Cart.add",
    "julia_total_1234": "julia_total",
    "camlShop__add_1234": "camlShop__add",
    "-[NSArray objectAtIndex:]": "-[NSArray objectAtIndex:]",
}
SYSTEM = {
    "do_syscall_64_[k]": "do_syscall_64",
    "do_sock_read.isra.12_[k]": "do_sock_read",
    "java/lang/String.hashCode_[i]": "java/lang/String.hashCode",
    "Interpreter_[j]": "Interpreter",
    "[pid 123]": "[pid]",
    "pid=123": "pid",
    "java [pid 123]": "java",
    "java-4711": "java",
    "java-4711/4712": "java",
    "[pool-1-thread-3 tid=4711]": "[pool-thread]",
    "[grpc-default-executor-12 tid=4711]": "[grpc-default-executor]",
    "http-nio-8080-exec-3": "http-nio-8080-exec",
    "thread (0x7F5A2B1C): MainThread": "thread: MainThread",
    "ThreadPoolExecutor-0_3": "ThreadPoolExecutor",
    "swapper/0": "swapper",
    "kworker/u16:3-events": "kworker",
    "0x7f3a2b1c": "[unknown]",
    "[0x7f3a2b1c]": "[unknown]",
    "read+0x1a4": "read",
    "read+0x50/0x1c0": "read",
    "[perf-4711.map]": "[perf.map]",
    "shop.jobs.a1b2c3d4-1111-2222-3333-444455556666.run": "shop.jobs.run",
    "[libc.so.6]": "[libc.so.6]",
    "libfoo-2.31.so": "libfoo-2.31.so",
    "[unknown]": "[unknown]",
    "entry_SYSCALL_64_after_hwframe": "entry_SYSCALL_64_after_hwframe",
    "(other)": "(other)",
    "(deep)": "(deep)",
    "(garbage collector)": "(garbage collector)",
    "endpoint=/item-12": "endpoint=/item-12",
    "metadata=pid=12": "metadata=pid=12",
}
TABLES = {
    "C++": CPP,
    "Java": JAVA,
    "Go": GO,
    "Rust": RUST,
    "mangled": MANGLED,
    "JavaScript": JAVASCRIPT,
    "PHP": PHP,
    ".NET": DOTNET,
    "Python": PYTHON,
    "others": OTHERS,
    "system": SYSTEM,
}
ROWS = [
    pytest.param(frame, symbol, id=f"{language} {frame}")
    for language, table in TABLES.items()
    for frame, symbol in table.items()
]
FORMER = json.loads(Path(__file__).with_name("former.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("frame", "symbol"), ROWS)
def test_the_symbol_of_a_frame(frame: str, symbol: str) -> None:
    assert Naming().symbol(frame) == symbol
    assert Naming().symbol(symbol) == symbol


@pytest.mark.parametrize("rule", RULES, ids=[rule.key for rule in RULES])
def test_a_rule_is_needed_for_some_row_of_the_table(rule: object) -> None:
    without = Naming(tuple(other for other in RULES if other is not rule))
    assert any(without.symbol(f) != s for table in TABLES.values() for f, s in table.items())


@pytest.mark.parametrize("version", FORMER)
def test_what_a_former_version_left_has_the_symbol_of_the_frame_itself(version: str) -> None:
    naming = Naming()
    assert int(version) <= VERSION
    for frame, symbol in FORMER[version].items():
        assert naming.symbol(symbol) == naming.symbol(frame)


def test_each_version_has_its_symbols_recorded() -> None:
    assert str(VERSION) in FORMER
    table = {frame: symbol for table in TABLES.values() for frame, symbol in table.items()}
    assert table.items() <= FORMER[str(VERSION)].items()
