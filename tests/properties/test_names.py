from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.names import Naming, outline, owner_of
from tests.unit.names.test_rules import TABLES

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


@given(NAMES)
@example("<")
@example("::{lambda}::operator()")
def test_a_symbol_is_its_own_symbol_and_never_empty(name: str) -> None:
    symbol = Naming().symbol(name)
    assert Naming().symbol(symbol) == symbol
    assert bool(symbol) == bool(name)


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
