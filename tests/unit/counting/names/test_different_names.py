"""Names that differ in a number or a word and are different subroutines: no rule may join two of them."""

from __future__ import annotations

import pytest

from pipeline.counting.names import Naming

WORDS = (
    *(("aes", "128"), ("aes", "192"), ("aes", "256"), ("sha", "1"), ("sha", "256"), ("sha", "512")),
    *(("md", "4"), ("md", "5"), ("crc", "32"), ("crc", "64"), ("rsa", "2048"), ("rsa", "4096")),
    *(("v", "1"), ("v", "2"), ("http", "1"), ("http", "2"), ("ipv", "4"), ("ipv", "6")),
    *(("utf", "8"), ("utf", "16"), ("base", "32"), ("base", "64"), ("i", "32"), ("i", "64")),
    *(("x", "86"), ("x", "64"), ("log", "2"), ("log", "10"), ("level", "0"), ("level", "1")),
    *(("phase", "1"), ("phase", "2"), ("step", "1"), ("step", "2"), ("q", "1"), ("q", "2")),
    *(("status", "404"), ("status", "500"), ("iso-8859", "1"), ("iso-8859", "15"), ("cp", "1252")),
    *(("order", "20240101"), ("order", "20240202"), ("port", "8080"), ("port", "9090"), ("page", "12345")),
)
"""What real code calls classes, methods, packages and files: a word and its number."""

PLAIN = tuple(word.replace("-", "") + number for word, number in WORDS)
TITLES = tuple(name.title() for name in PLAIN)
SPELLINGS = {
    "plain": PLAIN,
    "title": TITLES,
    "snake": tuple(f"{word}_{number}".replace("-", "_") for word, number in WORDS),
    "dashed": tuple(f"{word}-{number}" for word, number in WORDS),
    "dotted": tuple(f"{word}.{number}" for word, number in WORDS),
    "doubled": tuple(f"{word}__{number}" for word, number in WORDS[:10]),
}
BARE = ("{}", "{}_[k]", "{}+0x1a", "[{}]", "shop.cart.{}", "shop::cart::{}", "{} (/app/x.py)")
FILES = (
    "run (/app/{}.py)",
    "run (/app/{}.py:12)",
    "handle /app/{}.js:1:2",
    "handle /app/c-{}.js",
    "handle /app/c.{}.js",
    "handle /app/c-{}.min.js",
    "handle /app/{}/index.mjs",
    "run (/tmp/x/{}.so)",
    "Cart#run - /app/{}.rb:12",
    "Shop\\Cart::run /app/{}.php:12",
    "[lib{}.so]",
)
NAMES = (
    *("com.acme.{}.run", "com/acme/Shop.{}", "com.acme.{}.Shop.run", "com.acme.Shop${}.run"),
    *("com.acme.Shop.lambda${}$3", "com.acme.Shop.lambda$total$3/{}", "com.acme.ShopKt.{}$lambda$3"),
    *("com.acme.{}$$Lambda$12/0x00007f1c2401a840.run", "com.acme.{}$$SpringCGLIB$$0.total"),
    *("com.acme.Shop$$anonfun${}$1.apply", "Lcom/acme/Shop;::{}(I)V", "shop.core${}.invoke"),
    *("org.jruby.RUBY$method${}$3", "org.python.pycode._pyx12.{}$34", "io.trino.$gen.{}_1234.filter"),
    *("void shop::{}::add<int>(int) const", "shop::Cart::{}(int) [clone .isra.0]", "{}.constprop.0"),
    *("{}.part.0.cold", "{}.llvm.1234567890", "{}@@GLIBC_2.14", "{}@plt", "_cgo_a1b2c3d4e5f6_Cfunc_{}"),
    *("github.com/acme/{}.Total", "main.(*Cart).{}", "main.(*{}).Add.func1", "main.{}.func1.2"),
    *("main.{}[go.shape.int]", "main.{}-fm", "shop::{}::add::h0123456789abcdef", "shop::{}::{{{{closure}}}}"),
    *("<shop::{} as core::fmt::Debug>::fmt", "Shop.{}.add(x: Swift.Int) -> Swift.String"),
    *("closure #1 in Shop.{}(x: Swift.Int) -> ()", "camlShop.{}_123", "camlShop__{}_123_code"),
    *("julia_{}_1234", "jfptr_{}_1234", "Precompiled_Cart_{}_1234", "shop:{}/2", "shop:'-{}/2-fun-0-'/1"),
    *("Elixir.Shop.{}:total/2", "Shop.{}+<GetAsync>d__12.MoveNext()", "Shop.Cart+<>c.<{}>b__3_0(int32)"),
    *("Shop.Cart.<{}>g__Add|3_0(int32)", "Shop.{}`1[System.__Canon].Add(!0)", "Shop\\{}::add"),
    *("{{closure:Shop\\Cart::{}():12}}", "Container{}\\Cart::get", "Container{}\\CartContainer::get"),
    *("block in Shop::{}#add", "Shop::Cart#{}", "LazyCompile:*{} /app/x.js:1:2", "Function:{}-7-turbofan"),
    *("bound {}", "TRACE_12::@{}.lua:34", "bpf_prog_6deef7357e7b4530_{}", "total (<{}>)", "app.py:12({})"),
)
THREADS = ("{}", "[{}]", "[{} tid=4711]", "{} [pid 4711]", "thread (0x7F5A2B1C): {}")
PATTERNS = {
    "plain": (*BARE, *FILES, *NAMES, *THREADS),
    "title": (*BARE, *FILES, *NAMES),
    "snake": (*BARE, *FILES, *NAMES, *THREADS),
    "dashed": (*BARE, *FILES, *THREADS),
    "dotted": (*(pattern for pattern in BARE if pattern.count("::") < 2), *FILES),
    "doubled": ("{}", "shop.core${}.invoke", "{} (/app/x.py)", "camlShop.{}_123", "__pyx_f_4shop_{}"),
}
CASES = [
    pytest.param(pattern, SPELLINGS[spelling], id=f"{spelling} {pattern}")
    for spelling, patterns in PATTERNS.items()
    for pattern in patterns
]
PAIRS = (
    ("StreamExecutor$1.run", "StreamExecutor$2.run"),
    ("MyAggsHandler$1.run", "MyAggsHandler$2.run"),
    ("Script$1.run", "Script$2.run"),
    ("com.acme.Shop$1.run", "com.acme.Shop$2.run"),
    ("ContainerOrderV2\\X::get", "ContainerHTTPApi\\X::get"),
    ("handle /app/c-Sha256Fn.js", "handle /app/c-Sha512Fn.js"),
    ("handle /app/c-IPv4Addr.js", "handle /app/c-IPv6Addr.js"),
    ("handle /app/user-getV2Url.js", "handle /app/user-getV3Url.js"),
    ("handle /app/x-Mp3ToMp4.js", "handle /app/x-Mp4ToMp3.js"),
    ("handle /app/x-IPV4IPV6.js", "handle /app/x-IPV6IPV4.js"),
    ("handle /app/x-SECTION2.js", "handle /app/x-SECTION3.js"),
    ("handle /app/x-facade01.js", "handle /app/x-facade02.js"),
    ("handle /app/x.20240101120000.js", "handle /app/x.20240202120000.js"),
    ("up /app/migrations/20240101120000.js:1", "up /app/migrations/20240202120000.js:1"),
    ("up (/app/Migrations/20240101.py)", "up (/app/Migrations/20240202.py)"),
    ("handle https://x/main.js?page=cart", "handle https://x/main.js?page=home"),
    ("run (/app/tmpl_base64/x.py)", "run (/app/tmpl_base32/x.py)"),
    ("load (.eslintrc.js)", "load (.babelrc.js)"),
    ("github.com/acme/x.func1", "github.com/acme/x.func2"),
    ("main.(*Cart).func1", "main.(*Cart).func2"),
    ("shop::{impl#0}::fmt", "shop::{impl#1}::fmt"),
    ("shop.core$step__2.invoke", "shop.core$step__3.invoke"),
    ("User@ID_5", "User@ID_6"),
    ("sha-512/224", "sha-512/256"),
    ("test_hash[sha-256]", "test_hash[sha-512]"),
    ("Table[20240101]", "Table[20240202]"),
    ("stats::mode.2", "stats::mode.3"),
    ("node-18", "node-20"),
    ("GET http://api.shop.com:8080", "GET http://api.shop.com:9090"),
    ("shop.core$eval2.invoke", "shop.core$eval3.invoke"),
    ("level_[2]", "level_[3]"),
    ("task-1", "task-2"),
    ("aes-128-worker-1", "aes-256-worker-1"),
    ("com.acme.Script1.run", "com.acme.Script2.run"),
    ("sha@256", "sha@512"),
    ("api@REST_1.0", "api@REST_2.0"),
)
"""Names from the practice of a language, whose numbers or words look like what a rule takes away."""


@pytest.mark.parametrize(("pattern", "names"), CASES)
def test_names_of_different_subroutines_stay_apart(pattern: str, names: tuple[str, ...]) -> None:
    naming = Naming()
    symbols: dict[str, str] = {}
    joined = [
        (symbols[symbol], name)
        for name in names
        if symbols.setdefault(symbol := naming.symbol(pattern.format(name)), name) != name
    ]
    assert joined == []


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_two_names_of_different_subroutines_stay_apart(name: str, other: str) -> None:
    assert Naming().symbol(name) != Naming().symbol(other)
