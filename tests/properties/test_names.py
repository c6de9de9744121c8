from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.counting.names import Naming, outline, owner_of
from tests.support.cases import for_every
from tests.unit.counting.names.test_rules import TABLES

FRAMES = [frame for table in TABLES.values() for frame in table]
PIECES = sorted(
    {piece for frame in FRAMES for piece in (frame[: len(frame) // 2], frame[len(frame) // 2 :], frame)}
)
SIGNS = st.text(alphabet="ab1<>(){}[]:.$/#'_-+,*& \\", max_size=40)
NAMES = st.one_of(
    SIGNS,
    st.text(max_size=40),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join),
    st.tuples(st.sampled_from(PIECES), SIGNS).map("".join),
)

SYMBOLS = [symbol for table in TABLES.values() for symbol in table.values()]
SHORT = [
    *("cart", "Shop", "a", "1", "12", "12345678", "0x12", "a1b2c3d4", "0123456789abcdef", "_ZN", "17h", "E"),
    *(".", "/", "::", ":", "-", "_", "$", "$$", "(", ")", "[", "]", "{", "}", "<", ">", "#", "+", " ", "\n"),
    *("pid", "tid=", "thread ", "pool-1-thread", "kworker/", "swapper/", "func", "-fm", "-range", "gowrap"),
    *(
        "lambda$",
        "$lambda",
        "$anonfun$",
        "Accessor",
        "proxy",
        "$Proxy",
        "jdk.",
        "__",
        "$eval",
        ".cold",
        ".part",
    ),
    *("_1111", "-1111", "$LT$", "$u20$", "::h", "[clone .", ".js", ".php(", "omp_outlined", "caml", "julia_"),
]
"""What rules look for, and what stands around it."""


def thorough() -> Naming:
    """Return a naming that tries its rules on every name, whatever signs the name has."""
    naming = Naming()
    naming.__dict__["_signs"] = re.compile("")
    return naming


@given(NAMES)
@example("<")
@example("::{lambda}::operator()")
def test_a_symbol_is_its_own_symbol_and_never_empty(name: str) -> None:
    symbol = Naming().symbol(name)
    assert Naming().symbol(symbol) == symbol
    assert bool(symbol) == bool(name)


@given(st.one_of(NAMES, st.lists(st.sampled_from(SHORT), min_size=1, max_size=6).map("".join)))
def test_names_without_a_sign_are_those_that_no_rule_changes(name: str) -> None:
    assert Naming().symbol(name) == thorough().symbol(name)


@for_every("name", sorted({*FRAMES, *SYMBOLS}))
def test_every_row_of_the_table_has_its_symbol_by_signs_and_without(name: str) -> None:
    assert Naming().symbol(name) == thorough().symbol(name)


@given(NAMES)
def test_outlines_and_owners_of_any_text(name: str) -> None:
    assert bool(outline(name)) == bool(name)
    owner_of(name)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join))
def test_a_symbol_depends_on_the_name_alone(name: str) -> None:
    naming = Naming()
    for other in PIECES:
        naming.symbol(other)
    assert naming.symbol(name) == Naming().symbol(name)
