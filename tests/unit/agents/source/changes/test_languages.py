"""Modified subroutines of other languages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from agents.source.changes.definitions import read_definitions
from agents.source.changes.languages import LANGUAGES, Language, language_of
from agents.source.syntax import Definition, Question, touched_definitions
from tests.support.repositories import Work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "repo")


C = """#include <stdio.h>
static int limit = 3;

static int
clamp(int x)
{
    if (x > limit)
        return limit;
    return x;
}

int total(const int *prices, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += prices[i];
    return sum;
}
"""

CPP = """namespace shop {

class SHOP_EXPORT Price {
 public:
  int total(int x) {
    return x + 1;
  }
  int rebate() const;
};

int Price::rebate() const {
  return 2;
}

template <typename T>
std::vector<T> sorted(const std::vector<T>& items) {
  return items;
}

}  // namespace shop
"""

JAVA = """package com.acme.shop;

public class Basket {
    private final int size;

    public Basket(int size) {
        this.size = size;
    }

    public int total(List<Integer> prices) {
        int sum = 0;
        for (int price : prices) {
            sum += price;
        }
        return sum;
    }

    static class Line {
        int cost() {
            return 7;
        }
    }
}
"""

GO = """package shop

import "fmt"

type Basket struct{ n int }

func (b *Basket) Total() int {
\tsum := 0
\treturn sum
}

func (b Basket) Size() int {
\treturn b.n
}

func Show() {
\tfmt.Println("x")
}
"""

RUST = """struct Basket;

impl Basket {
    pub fn total(&self) -> i32 {
        1
    }
}

impl Shape for Basket {
    fn area(&self) -> i32 {
        2
    }
}

pub async fn load<T>(x: T) {
    run(x);
}
"""

JS = """class Basket {
  total(prices) {
    return prices.length;
  }

  async load(id) {
    return 1;
  }
}

function plain(a) {
  return a;
}

const arrow = (a) => {
  return a;
};
"""

TS = """export class Basket {
  private total(prices: number[]): number {
    return prices.length;
  }
}

export async function plain(a: number): Promise<number> {
  return a;
}
"""

CASES = [
    pytest.param("a.c", C, "sum += prices[i]", "sum -= prices[i]", ["total"], id="C"),
    pytest.param("a.c", C, "return limit;", "return 9;", ["clamp"], id="C, type on its own line"),
    pytest.param("a.h", C, "int sum = 0", "int sum = 1", ["total"], id="C header"),
    pytest.param("p.cpp", CPP, "return 2", "return 3", ["shop::Price::rebate"], id="C++ outside its class"),
    pytest.param("p.cc", CPP, "x + 1", "x + 2", ["shop::Price::total"], id="C++ within its class"),
    pytest.param("p.hpp", CPP, "return items", "return {}", ["shop::sorted"], id="C++ template"),
    pytest.param(
        "B.java", JAVA, "sum += price", "sum -= price",
        ["com.acme.shop.Basket.total", "com/acme/shop/Basket.total"], id="Java",
    ),
    pytest.param(
        "B.java", JAVA, "this.size = size", "this.size = 2",
        ["com.acme.shop.Basket.<init>", "com/acme/shop/Basket.<init>"], id="Java constructor",
    ),
    pytest.param(
        "B.java", JAVA, "return 7", "return 8",
        ["com.acme.shop.Basket$Line.cost", "com/acme/shop/Basket$Line.cost"], id="Java inner class",
    ),
    pytest.param("b.go", GO, "sum := 0", "sum := 1", ["shop.(*Basket).Total"], id="Go pointer method"),
    pytest.param("b.go", GO, "return b.n", "return 1", ["shop.Basket.Size"], id="Go value method"),
    pytest.param("b.go", GO, '"x"', '"y"', ["shop.Show"], id="Go function"),
    pytest.param("src/b.rs", RUST, "        1\n", "        3\n", ["b::Basket::total"], id="Rust method"),
    pytest.param("src/b.rs", RUST, "        2\n", "        3\n", ["b::Basket::area"], id="Rust trait"),
    pytest.param("src/b.rs", RUST, "run(x)", "run(2)", ["b::load"], id="Rust function"),
    pytest.param("src/main.rs", RUST, "run(x)", "run(2)", ["load"], id="Rust crate root"),
    pytest.param("b.js", JS, "prices.length", "0", ["Basket.total"], id="JavaScript method"),
    pytest.param("b.mjs", JS, "return 1", "return 2", ["Basket.load"], id="JavaScript async method"),
    pytest.param("b.jsx", JS, "function plain(a) {\n  return a", "function plain(a) {\n  return 1",
                 ["plain"], id="JavaScript function"),
    pytest.param("b.js", JS, "=> {\n  return a", "=> {\n  return 1", ["arrow"], id="JavaScript arrow"),
    pytest.param("b.ts", TS, "prices.length", "0", ["Basket.total"], id="TypeScript method"),
    pytest.param("b.tsx", TS, "return a", "return 1", ["plain"], id="TypeScript function"),
    pytest.param("b.go", GO, "return b.n", "// why\n\treturn b.n", [], id="comment"),
    pytest.param("b.go", GO, "func Show() {", "func Show(x int) {", ["shop.Show"], id="signature"),
    pytest.param("b.go", GO, "func Show", "func Display", ["shop.Display", "shop.Show"], id="renamed"),
    pytest.param("b.go", GO, "func Show", "func New() {\n\tf()\n}\n\nfunc Show", ["shop.New"], id="added"),
    pytest.param("b.go", GO, '\nfunc Show() {\n\tfmt.Println("x")\n}\n', "", ["shop.Show"], id="deleted"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("path", "old", "before", "after", "expected"), CASES)
def test_modified_subroutines(
    work: Work, path: str, old: str, before: str, after: str, expected: list[str]
) -> None:
    described = work.described(work.edit(path, old, before, after))
    assert described.left_out == ()
    assert list(described.change.subroutines) == expected


@pytest.mark.parametrize(
    ("files", "path", "expected"),
    [
        pytest.param(
            {"go.mod": "module example.org/x\n"}, "api/v1/b.go", "example.org/x/api/v1.Show", id="go"
        ),
        pytest.param({"s/go.mod": "module y\n", "go.mod": "module x\n"}, "s/b.go", "y.Show", id="nearest"),
        pytest.param({"go.mod": "nonsense"}, "b.go", "shop.Show", id="broken go.mod"),
    ],
)
def test_go_packages_are_named_by_their_module(
    work: Work, files: Mapping[str, str], path: str, expected: str
) -> None:
    work.commit("Old", {**files, path: GO})
    work.commit("New", {path: GO.replace('"x"', '"y"')})
    assert work.described().change.subroutines == (expected,)


def test_the_main_package_of_go_is_main(work: Work) -> None:
    main = GO.replace("package shop", "package main")
    work.commit("Old", {"go.mod": "module x\n", "cmd/b.go": main})
    work.commit("New", {"cmd/b.go": main.replace('"x"', '"y"')})
    assert work.described().change.subroutines == ("main.Show",)


@pytest.mark.parametrize(
    ("manifest", "path", "expected"),
    [
        pytest.param('[package]\nname = "my-shop"\n', "src/a/b.rs", "my_shop::a::b::load", id="nested"),
        pytest.param('[package]\nname = "shop"\n', "src/lib.rs", "shop::load", id="lib"),
        pytest.param('[package]\nname = "shop"\n', "src/a/mod.rs", "shop::a::load", id="mod"),
        pytest.param("[package\n", "src/a.rs", "a::load", id="broken manifest"),
        pytest.param("package = 3\n", "src/a.rs", "a::load", id="odd manifest"),
    ],
)
def test_crates_are_named_by_their_manifest(work: Work, manifest: str, path: str, expected: str) -> None:
    work.commit("Old", {"Cargo.toml": manifest, path: RUST})
    work.commit("New", {path: RUST.replace("run(x)", "run(2)")})
    assert work.described().change.subroutines == (expected,)


def test_a_lambda_of_cpp_is_part_of_its_function(work: Work) -> None:
    old = "int f() {\n  auto g = [](int x) {\n    return x;\n  };\n  return g(1);\n}\n"
    work.commit("Old", {"a.cpp": old})
    work.commit("New", {"a.cpp": old.replace("return x", "return 2 * x")})
    assert work.described().change.subroutines == ("f",)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
@pytest.mark.parametrize("source", [b"", b"\x00\xff\xfe", b"{" * 10_000], ids=["empty", "bytes", "brackets"])
def test_grammars_survive_anything(language: Language, source: bytes) -> None:
    assert read_definitions([Question(language.grammar, source, [1])], timeout_s=60) == [[]]


@pytest.mark.parametrize(
    ("path", "line", "expected"),
    [
        pytest.param("a.c", "int f(void) { x();", "f", id="plain"),
        pytest.param("a.c", "static struct x *f(int (*g)(int)) { x();", "f", id="pointer"),
        pytest.param("a.c", "    f(x);", None, id="call"),
        pytest.param("a.c", "    if (x) {", None, id="if"),
        pytest.param("a.c", "    return f(x)", None, id="return"),
        pytest.param("a.c", "int f(void);", None, id="declaration"),
        pytest.param("a.c", "    y = f(x) +", None, id="assignment"),
        pytest.param("a.c", "#define MAX(a, b)", None, id="macro"),
        pytest.param("a.cpp", "bool A::operator==(const A& o) const {", "operator==", id="operator"),
        pytest.param("a.cpp", "int A::operator()(int x) {", "operator()", id="call operator"),
        pytest.param("a.cpp", "A::operator bool() {", "operator bool", id="conversion"),
        pytest.param("a.cpp", "A::~A() {", "~A", id="destructor"),
        pytest.param("a.cpp", "std::map<int, std::vector<T>> A<T>::f(int x) {", "f", id="templates"),
        pytest.param(
            "A.java", "class A { @Override public <T> List<T> f(T x) throws E {", "f", id="java generic"
        ),
        pytest.param("A.java", 'class A { @A @B("x") int f(int x) {', "f", id="java annotations"),
        pytest.param("A.java", "class A { int f = new Thread(x) {", None, id="java new"),
        pytest.param("a.go", "func Map[T any](x []T) []T {", "Map", id="go generic"),
        pytest.param("a.go", "func (s *Set[T]) Add(x T) {", "Add", id="go generic receiver"),
        pytest.param("a.go", "var f = func() {", None, id="go literal"),
        pytest.param("a.rs", 'pub(crate) unsafe extern "C" fn f(x: i32) {', "f", id="rust"),
        pytest.param("a.js", "export default async function f() {", "f", id="js default"),
        pytest.param("a.js", "export const f = async x => x", "f", id="js short arrow"),
        pytest.param("a.js", "A.prototype.f = function () {", "f", id="js prototype"),
        pytest.param("a.js", "    if (x) {", None, id="js if"),
        pytest.param("a.js", "    call(x, () => {", None, id="js callback"),
        pytest.param("a.ts", "class A { static async f<T>(x: T): Promise<T> {", "f", id="ts generic"),
        pytest.param("a.tsx", "const f = () => <p>{x}</p>;", "f", id="tsx"),
    ],
)
def test_lines_that_begin_a_subroutine(path: str, line: str, expected: str | None) -> None:
    found = definitions(path, line + "\n}" * (line.count("{") - line.count("}")))
    assert [one.name for one in found] == ([expected] if expected else [])


def definitions(path: str, source: str) -> list[Definition]:
    language = language_of(path)
    assert language
    lines = range(1, source.count("\n") + 2)
    return touched_definitions(Question(language.grammar, source.encode(), lines))


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        pytest.param("a.java", "class URI extends Base { int f() {\n x(); } }", ("URI",), id="java"),
        pytest.param("a.h", "class A_EXPORT Price : public Base {\n int f() {\n x(); } };", ("Price",),
                     id="macro"),
        pytest.param("a.h", "struct A_EXPORT Price final {\n int f() {\n x(); } };", ("Price",), id="struct"),
        pytest.param("a.h", "namespace a A_VISIBLE(default)\n{\nA_BEGIN_B\nint f() A_NOEXCEPT {\n x(); } }",
                     ("a",), id="macros"),
        pytest.param("a.rs", "impl<T> Shape for Basket<T> { fn f() {\n x(); } }", ("Basket",), id="trait"),
        pytest.param("a.rs", "fn g() { fn f() {\n x(); } }", ("g",), id="rust function in a function"),
        pytest.param("a.cc", "namespace a { namespace b { }\nnamespace {\nclass P { int f() {\n x();} };}}",
                     ("a", "(anonymous namespace)", "P"), id="namespaces"),
        pytest.param("a.cc", "int A<T>::B::f() {\n x(); }", ("A", "B"), id="qualified"),
        pytest.param("a.cc", "class P {\n class Q {\n };\n int f() {\n x(); } };", ("P",), id="closed"),
        pytest.param("a.c", "int f() {\n x(); }", (), id="no type"),
        pytest.param("a.kt", "class A {\n companion object {\n fun f() {\n x()\n}\n}\n}", ("A", "Companion"),
                     id="companion"),
        pytest.param("a.js", "A.prototype.f = function () {\n x(); }", ("A",), id="prototype"),
        pytest.param("a.js", "module.exports.f = function () {\n x(); }", (), id="exports"),
    ],
)  # fmt: skip
def test_the_types_around_a_subroutine(path: str, source: str, expected: tuple[str, ...]) -> None:
    (found,) = [one for one in definitions(path, source) if one.name == "f"]
    assert found.scope == expected


def test_a_block_comment_counts_for_nothing(work: Work) -> None:
    old = "int f() {\n  /* a\n     b\n  */\n  return 1;\n}\n"
    assert work.described(work.edit("a.c", old, "     b", "     c")).change.subroutines == ()


def test_unknown_files_have_no_language() -> None:
    assert language_of("a.py") is None
    assert language_of("Makefile") is None
    assert language_of("a.JAVA") is not None
