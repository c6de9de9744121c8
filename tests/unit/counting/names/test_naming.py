from __future__ import annotations

import time

import numpy as np
import pytest

from pipeline.counting.names import RULES, Naming, Namings, Pattern, check_pattern, rules_without
from pipeline.counting.names.naming import LONGEST, MOST_KEPT
from pipeline.model import Annotation, Profile


def test_patterns_run_after_the_rules_until_nothing_changes() -> None:
    naming = Naming(patterns=(Pattern(r"^gen_[a-z]+_(\w+)$", r"gen_\1"), Pattern("tenant_a")))
    assert naming.symbol("gen_xyz_total(int)") == "gen_total"
    assert naming.symbol("shop.tenant_atenant_a") == "shop."
    assert naming.symbol("tenant_a") == "tenant_a", "never empty"


def test_a_pattern_without_rest_changes_nothing() -> None:
    naming = Naming(patterns=(Pattern("a", "aa"),))
    assert naming.symbol("a.cart(int)") == "a.cart"


@pytest.mark.parametrize("pattern", [Pattern("("), Pattern("a", r"\2"), Pattern("a", r"\g<x>")])
def test_a_pattern_that_is_none(pattern: Pattern) -> None:
    with pytest.raises(ValueError, match="no regular expression"):
        check_pattern(pattern)


def test_versions_show_namings_apart() -> None:
    namings = [
        Naming(),
        Naming(rules=()),
        Naming(rules_without(["line"])),
        Naming(patterns=(Pattern("a", "b"),)),
        Naming(patterns=(Pattern("a", "c"),)),
    ]
    assert len({naming.version for naming in namings}) == len(namings)
    assert Naming().version == Naming().version == "6"
    assert Naming(rules=()).version == "0"


def test_a_rule_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no rule 'x'"):
        rules_without(["x"])
    assert len(rules_without(["line", "address"])) == len(RULES) - 2


def test_without_rules_names_stay() -> None:
    assert Naming(rules=()).symbol("f(int)_[j]") == "f(int)_[j]"


def test_a_service_has_its_own_naming() -> None:
    namings = Namings(services={"shop": Naming(rules=())})
    assert namings.of("shop").symbol("f(int)") == "f(int)"
    assert namings.of("other").symbol("f(int)") == "f"


def test_the_frames_of_a_profile() -> None:
    def profile(*frames: str) -> Profile:
        flat = np.arange(len(frames))
        return Profile("s", "h", 0, 1, frames, flat, np.array([0, len(frames)]), np.array([1]))

    plain = profile("main", "shop.cart.add")
    assert Naming().profile(plain) is plain
    assert Naming().profile(profile("main", "a(int)", "a(long)")).frames == ("main", "a", "a")


def test_annotations_stay() -> None:
    profile = Profile(
        "s",
        "h",
        0,
        1,
        ("endpoint=/item-12",),
        np.array([0]),
        np.array([0, 1]),
        np.array([1]),
        annotations=(Annotation(0, "endpoint", "/item-12"),),
    )
    assert Naming().profile(profile) is profile


def test_only_names_with_a_sign_are_tried() -> None:
    naming = Naming()
    plain = ("main", "item000123", "shop.cart_v2.Cart.__init__", "java/lang/String.hashCode", "Cart$Item.add")
    assert not any(map(naming._signs.search, plain))
    assert naming.changed([*plain, "f(int)"]) == {"f(int)": "f"}
    assert naming.symbols(iter(plain)) == plain


def test_a_name_that_was_cut_or_is_too_long_stays() -> None:
    cut = "f(int" + "x" * 977 + "…#0123456789abcdef"
    assert Naming().symbol(cut) == cut
    assert Naming().symbol("f" * LONGEST + "(int)") == "f" * LONGEST + "(int)"


@pytest.mark.parametrize(
    "name",
    [
        "<" * LONGEST,
        "a<" * (LONGEST // 2),
        "(" * (LONGEST - 1) + ")",
        "a(" * 1000 + ")" * 1000,
        ".func1" * (LONGEST // 6),
        "main.x" + ".func1" * 24 + "{x",
        "a/main" + ".func1-fm" * 400 + "!",
        "$lambda$1" * (LONGEST // 9),
        "x-1" * (LONGEST // 3),
        "a[[" * (LONGEST // 3),
        "a.part" * (LONGEST // 6),
        "f(" + "Ljava;" * 600,
        "::{lambda" * (LONGEST // 9),
        "operator" * (LONGEST // 8),
        "caml" + "A_" * 2000,
        "<a as " * 600,
        "$Proxy1$$Lambda$1/" * 200,
        "main.f[go.shape." * 250 + "]" * 250,
        "main.f[go.shape.int]." * 190,
        "caml" + "A__1_2" * 600,
        "a-12ab34cd" * 400 + ".js",
        "x.js?" + "v=1" * 1300,
    ],
    ids=lambda name: name[:8],
)
def test_hostile_names_take_no_time(name: str) -> None:
    began = time.process_time()
    symbol = Naming().symbol(name)
    assert time.process_time() - began < 0.5
    assert Naming().symbol(symbol) == symbol


def test_a_million_names_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_KEPT < 1_000_000
    monkeypatch.setattr("pipeline.counting.names.naming.MOST_KEPT", 1000)
    naming = Naming()
    for number in range(2500):
        naming.symbol(f"f{number}" if number % 2 else f"f{number}()")
        assert len(naming._own) + len(naming._known) <= 1000
