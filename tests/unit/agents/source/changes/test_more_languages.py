"""Modified subroutines of PHP, Kotlin, Scala, C# and Ruby, and of languages that are not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repositories import Work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "repo")


PHP = """<?php
namespace Acme\\Shop;

final class Basket
{
    public static function total(array $prices): int
    {
        return array_sum($prices);
    }
}

function plain($a) {
    return $a;
}
"""

KOTLIN = """package com.acme

class Basket(val size: Int) {
    override suspend fun total(prices: List<Int>): Int {
        return prices.sum()
    }

    enum class Kind {
        A;
        fun label(): String {
            return "a"
        }
    }
}

inline fun <reified T> Map<String, List<T>>.plain(a: T): T {
    return a
}
"""

SCALA = """package com.acme

case class Basket(size: Int) {
  private[acme] def total(prices: Seq[Int]): Int = {
    prices.sum
  }
}
"""

CSHARP = """using System;

namespace Acme.Shop
{
    public class Basket
    {
        public Basket(int size)
        {
            Size = size;
        }

        public async Task<int> Total(List<int> prices)
        {
            return prices.Sum(x => x + 1);
        }

        int Twice(int a) => Total(a) * 2;
    }
}
"""

RUBY = """module Shop
  class Basket < Base
    def total(prices)
      prices.sum
    end

    def self.empty?
      true # always
    end
  end
end

def plain(a)
  a + 1
end
"""

CASES = [
    pytest.param("a.php", PHP, "array_sum", "count", ["Acme\\Shop\\Basket::total"], id="PHP method"),
    pytest.param("a.php", PHP, "return $a;", "return 1;", ["Acme\\Shop\\plain"], id="PHP function"),
    pytest.param("a.php", PHP.replace("namespace Acme\\Shop;", ""), "return $a;", "return 1;", ["plain"],
                 id="PHP without a namespace"),
    pytest.param("A.kt", KOTLIN, "prices.sum", "prices.max",
                 ["com.acme.Basket.total", "com/acme/Basket.total"], id="Kotlin method"),
    pytest.param("A.kt", KOTLIN, '"a"', '"b"', ["com.acme.Basket$Kind.label", "com/acme/Basket$Kind.label"],
                 id="Kotlin inner class"),
    pytest.param("A.kt", KOTLIN, "return a\n", "return b\n", ["com.acme.AKt.plain", "com/acme/AKt.plain"],
                 id="Kotlin function"),
    pytest.param("A.scala", SCALA, "prices.sum", "prices.max",
                 ["com.acme.Basket$.total", "com.acme.Basket.total",
                  "com/acme/Basket$.total", "com/acme/Basket.total"], id="Scala"),
    pytest.param("A.cs", CSHARP, "x + 1", "x + 2", ["Acme.Shop.Basket.Total"], id="C# method"),
    pytest.param("A.cs", CSHARP, "Size = size", "Size = 2", ["Acme.Shop.Basket..ctor"], id="C# constructor"),
    pytest.param("A.cs", CSHARP, "(a) * 2", "(a) * 3", ["Acme.Shop.Basket.Twice"], id="C# expression"),
    pytest.param("a.rb", RUBY, "prices.sum", "prices.max", ["Shop::Basket#total", "Shop::Basket.total"],
                 id="Ruby method"),
    pytest.param("a.rb", RUBY, "true #", "false #", ["Shop::Basket#empty?", "Shop::Basket.empty?"],
                 id="Ruby class method"),
    pytest.param("a.rb", RUBY, "a + 1", "a + 2", ["plain"], id="Ruby function"),
    pytest.param("a.rb", RUBY, "prices.sum\n", "prices.sum\n      # why\n", [], id="Ruby comment"),
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
    ("path", "content"),
    [
        ("a.pyx", "cdef int f():\n    return 1\n"),
        ("a.swift", "func f() {\n}\n"),
        ("bin/run", "#!/usr/bin/env python3\ndef f():\n    return 1\n"),
    ],
)
def test_code_that_is_not_read_is_left_out_in_words(work: Work, path: str, content: str) -> None:
    work.commit("Old")
    work.commit("New", {path: content, "a.py": "def g(): pass\n"})
    described = work.described()
    assert described.left_out == (f"the subroutines of '{path}', in a language that is not read",)
    assert described.change.subroutines == ("a.g",)


@pytest.mark.parametrize(
    "path", ["README.md", "docs/x.rst", "data.json", "logo.png", "LICENSE", "Makefile", "run.sh", "bin/run"]
)
def test_what_holds_no_subroutines_leaves_nothing_out(work: Work, path: str) -> None:
    work.commit("Old")
    work.commit("New", {path: "#!/bin/sh\n"})
    assert work.described().left_out == ()
