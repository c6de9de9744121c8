from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.cost_shift.domains import LabelGroup, find_domains, find_members, match_labels
from pipeline.analysis.stacks import index_stacks
from pipeline.counting.names.patterns import compile_pattern
from pipeline.model import Change, MetricKind, SeriesKey
from tests.support.builders import build_change, build_stacks


def domains_of(
    stacks: list[str],
    series: SeriesKey,
    *,
    changes: tuple[Change, ...] = (),
    groups: tuple[LabelGroup, ...] = (),
) -> dict[str, list[int]]:
    """Domains by name, as the numbers of their stacks."""
    index = index_stacks(build_stacks(dict.fromkeys(stacks, (1.0, 1.0))))
    found = find_domains(index, find_members(index), series, changes=changes, groups=groups)
    return {domain.name: np.flatnonzero(domain.rows).tolist() for domain in found}


@pytest.mark.parametrize(
    ("stacks", "series", "expected"),
    [
        pytest.param(
            ["main->endpoint=/x->h->h", "k->h", "k->i"],
            ("subroutine", "h"),
            {"callers: k, main": [0, 1, 2]},
            id="callers; annotations and recursion are passed over",
        ),
        pytest.param(
            ["d->h", "a->h", "c->h", "b->h", "e->h"],
            ("subroutine", "h"),
            {"callers: a, b, c and 2 more": [0, 1, 2, 3, 4]},
            id="many callers",
        ),
        pytest.param(["main"], ("subroutine", "main"), {}, id="called by none"),
        pytest.param(
            ["shop.Cart.add", "shop.Cart.sum", "shop.Cartridge.sum", "shop.api.run", "other.Cart.add"],
            ("subroutine", "shop.Cart.sum"),
            {"class: shop.Cart": [0, 1], "module: shop": [0, 1, 2]},
            id="class",
        ),
        pytest.param(
            ["shop.cart.Cart.add", "shop.cart.Basket.add", "shop.cart.tidy"],
            ("subroutine", "shop.cart.Cart.add"),
            {"class: shop.cart.Cart": [0], "module: shop.cart": [0, 1, 2]},
            id="module of a class",
        ),
        pytest.param(
            ["shop.cart.tidy", "shop.cart.Cart.add", "shop.list.tidy"],
            ("subroutine", "shop.cart.tidy"),
            {"module: shop.cart": [0, 1]},
            id="module of a function",
        ),
        pytest.param(
            ["ns::Cart::add", "ns::Cart::sum"],
            ("subroutine", "ns::Cart::add"),
            {"class: ns::Cart": [0, 1], "module: ns": [0, 1]},
            id="another language's separator",
        ),
        pytest.param(
            ["handler (app.py:12)", "other (app.py:30)"],
            ("subroutine", "handler (app.py:12)"),
            {},
            id="a file is no owner",
        ),
        pytest.param(
            ["endpoint=/cart/add", "endpoint=/cart/remove", "endpoint=/list", "/cart/view"],
            ("endpoint", "/cart/add"),
            {"endpoint prefix: /cart/": [0, 1]},
            id="endpoints of one prefix",
        ),
        pytest.param(
            ["endpoint=/a", "endpoint=/b"], ("endpoint", "/a"), {}, id="all endpoints are no domain"
        ),
        pytest.param(
            ["metadata=tier.gold", "metadata=tier.silver", "metadata=zone.eu"],
            ("metadata", "tier.gold"),
            {"metadata prefix: tier.": [0, 1]},
            id="metadata of one prefix",
        ),
        pytest.param(
            ["metadata=tier=gold", "metadata=tier=silver", "metadata=zone=eu", "metadata=gold"],
            ("metadata", "tier=gold"),
            {"metadata prefix: tier=": [0, 1]},
            id="metadata of one key",
        ),
        pytest.param(["metadata=gold"], ("metadata", "gold"), {}, id="metadata without a prefix"),
    ],
)
def test_domains(stacks: list[str], series: tuple[MetricKind, str], expected: dict[str, list[int]]) -> None:
    assert domains_of(stacks, SeriesKey(*series)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop::Price::total(shop::Basket const&)", ["class: shop::Price", "module: shop"]),
        ("<shop::api::Basket as core::fmt::Display>::fmt", ["class: shop::api::Basket", "module: shop::api"]),
        ("std::vector<Foo::Bar, Baz>::push_back", ["module: std::vector"]),
        ("shop::Cart<Item<int>>::add(Item<int>)", ["class: shop::Cart", "module: shop"]),
        ("shop::Cart::operator<<(int)", ["class: shop::Cart", "module: shop"]),
        ("shop::Cart::operator()(int)", ["class: shop::Cart", "module: shop"]),
        ("alloc::vec::Vec<T>::push", ["class: alloc::vec::Vec", "module: alloc::vec"]),
        ("com/acme/Basket$Line.cost", ["class: com/acme/Basket$Line", "module: com/acme"]),
        ("com.acme.Basket.<init>", ["class: com.acme.Basket", "module: com.acme"]),
        (
            "github.com/acme/cart.(*Cart).Add",
            ["class: github.com/acme/cart.(*Cart)", "module: github.com/acme/cart"],
        ),
        ("github.com/acme/cart.Sum", ["module: github.com/acme/cart"]),
        ("shop.cart.total.<locals>.rate", ["module: shop.cart.total.<locals>"]),
        ("shop.cart.<module>", ["module: shop.cart"]),
        ("Shop\\Cart#add", ["class: Shop\\Cart", "module: Shop"]),
        ("<lambda>", []),
        ("std::sort(int*, int*)", ["module: std"]),
        ("main(int, char**)", []),
        ("<", []),
        ("(((", []),
    ],
)
def test_owners_by_the_spelling_of_languages(name: str, expected: list[str]) -> None:
    assert [*domains_of([name], SeriesKey("subroutine", name))] == expected


def test_a_change_that_modified_the_candidate_is_a_domain() -> None:
    changes = (build_change("c1", ["a", "b"]), build_change("c2", ["b", "c"]), build_change("c3", ["c"]))
    found = domains_of(["a", "b", "c"], SeriesKey("subroutine", "b"), changes=changes)
    assert found == {"change: c1": [0, 1], "change: c2": [1, 2]}


def test_a_change_of_a_generic_subroutine() -> None:
    stacks = ["main->shop.Map[...]", "main->shop.(*Cart[...]).Add", "main->shop.Sum"]
    change = build_change("c1", subroutines=["shop.Map", "shop.(*Cart).Add"])
    for name in ("shop.Map[...]", "shop.(*Cart[...]).Add"):
        found = domains_of(stacks, SeriesKey("subroutine", name), changes=(change,))
        assert found["change: c1"] == [0, 1]
    assert "change: c1" not in domains_of(stacks, SeriesKey("subroutine", "shop.Sum"), changes=(change,))


def test_a_group_that_holds_the_candidate_is_a_domain() -> None:
    groups = (LabelGroup("g", frozenset({"a", "c"})), LabelGroup("h", frozenset({"c"})))
    assert domains_of(["a", "b", "c"], SeriesKey("subroutine", "a"), groups=groups) == {"g": [0, 2]}


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["shop.cart.*"], {"shop.cart.add", "shop.cart.sum"}),
        (["shop.cart.add", "main"], {"shop.cart.add", "main"}),
        (["cart"], set()),
        (["re:shop\\.(cart|list)\\.add"], {"shop.cart.add", "shop.list.add"}),
        (["endpoint=/cart*"], {"endpoint=/cart/add"}),
    ],
    ids=["glob", "two names", "not a part", "regular expression", "annotation"],
)
def test_patterns(patterns: list[str], expected: set[str]) -> None:
    labels = ["main", "endpoint=/cart/add", "shop.cart.add", "shop.cart.sum", "shop.list.add"]
    assert match_labels(index_stacks(build_stacks({"->".join(labels): (1.0, 1.0)})), patterns) == expected


def test_a_wrong_regular_expression_is_named() -> None:
    with pytest.raises(ValueError, match=r"'re:\(' is no regular expression"):
        compile_pattern("re:(")
