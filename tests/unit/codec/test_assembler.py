"""Scans in parts come out whole, in order, whatever was repeated or cut short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.codec.assembler import ScanAssembler
from pipeline.codec.scans import split_scan
from pipeline.model import Record, Scan
from tests.support.builders import build_candidate


def scan(size: int = 3, *, service: str = "shop", end: float = 1_700_000_600.0) -> Scan:
    return Scan(
        service=service,
        workload="live",
        start=1_700_000_000.0,
        analysis_start=1_700_000_300.0,
        analysis_end=end,
        end=end,
        series=size,
        candidates=tuple(build_candidate(f"m{i}") for i in range(size)),
    )


def records(scans: list[Scan], partition: int = 0, first: int = 0) -> list[Record]:
    return [Record("change-points", partition, first + i, s) for i, s in enumerate(scans)]


WHOLE = scan(3)
A, B, C = split_scan(WHOLE, max_items=1)
OTHER = split_scan(scan(2, service="other"), max_items=1)
LATER = split_scan(scan(2, end=1_700_001_200.0), max_items=1)


@pytest.mark.parametrize(
    ("parts", "expected", "held"),
    [
        pytest.param([A, B, C], [(2, "shop")], None, id="in order"),
        pytest.param([A, B], [], 0, id="waits for the last"),
        pytest.param([A, A, B, C], [(3, "shop")], None, id="publisher killed after the first"),
        pytest.param([A, B, C, A, B, C], [(2, "shop"), (5, "shop")], None, id="published twice"),
        pytest.param([B, A, B, C], [(3, "shop")], None, id="leftover before the beginning"),
        pytest.param([A, B, C, C], [(2, "shop")], None, id="leftover after the end"),
        pytest.param([A, C, B, C], [(3, "shop")], None, id="a part out of turn is ignored"),
        pytest.param([A, OTHER[0], B, OTHER[1], C], [(3, "other"), (4, "shop")], None, id="two services"),
        pytest.param([A, *LATER], [(2, "shop")], None, id="a later scan replaces one never finished"),
        pytest.param([A, LATER[1]], [], 0, id="a part of another scan does not complete it"),
        pytest.param([OTHER[0], WHOLE], [(1, "shop")], 0, id="a scan in one part passes an open one"),
    ],
)
def test_sequences_of_parts(parts: list[Scan], expected: list[tuple[int, str]], held: int | None) -> None:
    assembler = ScanAssembler()
    out = [found for record in records(parts) if (found := assembler.add(record)) is not None]
    assert [(r.offset, r.payload.service) for r in out] == expected
    assert assembler.held_from(0) == held


def test_a_joined_scan_equals_the_one_that_was_split() -> None:
    assembler = ScanAssembler()
    assert [assembler.add(r) for r in records([A, B, C])][-1] == Record("change-points", 0, 2, WHOLE)


def test_what_is_not_a_scan_passes_through() -> None:
    record = Record("windows", 3, 7, payload={"anything": 1})
    assert ScanAssembler().add(record) is record


def test_partitions_do_not_mix() -> None:
    assembler = ScanAssembler()
    assert assembler.add(records([A], partition=1)[0]) is None
    assert assembler.add(records([B], partition=2)[0]) is None
    assert (assembler.held_from(1), assembler.held_from(2)) == (0, None)


def test_forget_lets_go_of_everything() -> None:
    assembler = ScanAssembler()
    assembler.add(records([A])[0])
    assembler.forget()
    assert assembler.held_from(0) is None
    assert assembler.add(records([B], first=1)[0]) is None


@given(st.lists(st.integers(min_value=0, max_value=3), max_size=6), st.integers(min_value=1, max_value=4))
def test_attempts_cut_short_and_one_complete_give_exactly_that_scan(cuts: list[int], size: int) -> None:
    whole = scan(size)
    parts = split_scan(whole, max_items=1)
    sequence = [part for cut in cuts for part in parts[: min(cut, size - 1)]] + parts
    assembler = ScanAssembler()
    out = [found for record in records(sequence) if (found := assembler.add(record)) is not None]
    assert [r.payload for r in out] == [whole]
    assert assembler.held_from(0) is None
