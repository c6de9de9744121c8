"""Scans in parts come out whole, in order, whatever was repeated or cut short."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.messages.assembler import MAX_OPEN, ScanAssembler
from pipeline.messages.scans import split_scan
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
LATE = split_scan(scan(2), max_items=1)  # the same scan, found again without its last candidate
MOVED = split_scan(replace(WHOLE, candidates=WHOLE.candidates[::-1]), max_items=1)
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
        pytest.param(
            [A, LATE[0], B, LATE[1], C], [(3, "shop")], None, id="a former attempt with one part more"
        ),
        pytest.param(
            [A, LATE[0], B, C, LATE[1]],
            [(3, "shop"), (4, "shop")],
            None,
            id="the newer attempt is whole last",
        ),
        pytest.param([LATE[0], A, LATE[1], B], [(2, "shop")], 1, id="the older attempt is whole first"),
        pytest.param(
            [A, MOVED[0], B, MOVED[1], MOVED[2]], [(4, "shop")], None, id="as many parts, other content"
        ),
        pytest.param([A, B, MOVED[2]], [], 0, id="the last part of another attempt does not complete one"),
        pytest.param([A, B, A, C], [(3, "shop")], None, id="two publishers of one attempt, the second dies"),
        pytest.param([A, A, B, B, C, C], [(4, "shop")], None, id="two publishers of one attempt in turns"),
        pytest.param([A, LATE[0], WHOLE], [(2, "shop")], None, id="a newer attempt in one part"),
    ],
)
def test_sequences_of_parts(parts: list[Scan], expected: list[tuple[int, str]], held: int | None) -> None:
    assembler = ScanAssembler()
    out = [found for record in records(parts) if (found := assembler.add(record)) is not None]
    assert [(r.offset, r.payload.service) for r in out] == expected
    assert assembler.held_from(0) == held


@pytest.mark.parametrize(
    ("parts", "expected", "held"),
    [
        pytest.param("ABC", [2], None, id="in order"),
        pytest.param("AABC", [3], None, id="part 0 begins anew"),
        pytest.param("AB", [], 0, id="waits for the last"),
        pytest.param("ABAC", [], 2, id="a part that does not continue what is open"),
        pytest.param("Aabc", [3], None, id="the publisher was upgraded in between"),
        pytest.param("aAbBcC", [4, 5], None, id="publishers of both versions in turns"),
        pytest.param("aABb", [], 0, id="neither is whole"),
    ],
)
def test_parts_of_the_former_version_have_no_attempt(
    parts: str, expected: list[int], held: int | None
) -> None:
    present = dict(zip("abc", (A, B, C), strict=True))
    former = {name.upper(): replace(part, attempt="") for name, part in present.items()}
    assembler = ScanAssembler()
    sequence = records([{**present, **former}[name] for name in parts])
    out = [found for record in sequence if (found := assembler.add(record)) is not None]
    assert [(r.offset, r.payload) for r in out] == [(offset, WHOLE) for offset in expected]
    assert assembler.held_from(0) == held


def test_a_publisher_that_dies_again_and_again_leaves_few_attempts() -> None:
    every = [split_scan(scan(size), max_items=1)[0] for size in range(2, 2 + 3 * MAX_OPEN)]
    assembler = ScanAssembler()
    for record in records(every):
        assembler.add(record)
    assert assembler.held_from(0) == len(every) - MAX_OPEN


@given(st.data())
def test_attempts_in_any_turns_are_never_mixed(data: st.DataObject) -> None:
    attempts = [split_scan(scan(size), max_items=1) for size in (2, 3, 4)]
    left = [list(parts) for parts in attempts]
    sequence: list[Scan] = []
    while any(left):
        sequence.append(data.draw(st.sampled_from([parts for parts in left if parts])).pop(0))
    assembler = ScanAssembler()
    out = [found for record in records(sequence) if (found := assembler.add(record)) is not None]
    assert out
    assert all(record.payload in {2: scan(2), 3: scan(3), 4: scan(4)}.values() for record in out)
    newest = max(range(3), key=lambda number: sequence.index(attempts[number][0]))
    assert scan(newest + 2) in [record.payload for record in out], "nothing newer drops the newest"
    assert assembler.held_from(0) is None


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
