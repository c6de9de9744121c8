"""Traffic of entries: what most of an entry's parts agree on."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.explain.noise import Compared
from pipeline.analysis.explain.traffic import Entries, find_entries, traffic_factors
from pipeline.analysis.stacks import StackIndex, index_stacks
from pipeline.model import BoolArray, FloatArray, StackMatrix
from tests.unit.analysis.explain.trees import Stack, build_tree

TREE = build_tree()


def index_of(stacks: tuple[Stack, ...], rates: FloatArray) -> StackIndex:
    return index_stacks(StackMatrix(stacks, rates, rates, float(rates.sum()), float(rates.sum())))


INDEX = index_of(TREE.stacks, TREE.rates)


def compared(seen: FloatArray, expected: FloatArray) -> Compared:
    return Compared(seen, expected, np.maximum(expected.sum(axis=1), 1.0), 1.0)


QUIET = np.tile(TREE.rates, (8, 1))
ENTRIES = find_entries(INDEX, compared(QUIET, QUIET))


def rows_with(label: str) -> BoolArray:
    return INDEX.holding([label])


def factors(seen: FloatArray, entries: Entries = ENTRIES) -> FloatArray:
    return np.asarray(traffic_factors(INDEX, entries, compared(seen[None], TREE.rates[None]))[0])


def test_entries_are_the_branches_of_the_first_fork() -> None:
    assert len(ENTRIES.stacks) == 1 + 6
    assert {frozenset(stacks.tolist()) for stacks in ENTRIES.stacks[1:]} == {
        frozenset(np.flatnonzero(rows_with(f"entry{number}")).tolist()) for number in range(6)
    }
    assert ENTRIES.parent.tolist() == [-1, *[0] * 6]


def test_an_annotation_is_an_entry_wherever_it_stands() -> None:
    stacks = tuple(("main", "loop", f"worker{k % 2}", f"endpoint=/{k % 4}", f"f{k}") for k in range(8))
    index = index_of(stacks, np.full(8, 1000.0))
    entries = find_entries(index, compared(np.ones((1, 8)), np.ones((1, 8))))
    sizes = sorted(len(stacks) for stacks in entries.stacks)
    assert sizes == [2, 2, 2, 2, 4, 4, 8], "the whole, two workers, four endpoints"


def test_what_moved_on_earlier_days_carries_traffic_of_its_own() -> None:
    deep = tuple(("main", f"e{k % 2}", f"pool{k % 4}", f"g{k}") for k in range(32))
    index = index_of(deep, np.full(32, 2000.0))
    steady = np.full((8, 32), 2000.0)
    swings = steady * np.where(np.arange(32) % 4 == 1, np.linspace(0.7, 1.3, 8)[:, None], 1.0)
    assert len(find_entries(index, compared(steady, steady)).stacks) == 1 + 2
    # Both that share an entry, as one of them moved.
    assert len(find_entries(index, compared(swings, steady)).stacks) == 1 + 2 + 2


def test_an_entry_of_which_all_rose_has_more_traffic() -> None:
    rows = rows_with("entry3")
    got = factors(TREE.rates * np.where(rows, 1.3, 1.0))
    assert np.allclose(got[rows], 1.3, rtol=0.01)
    assert np.allclose(got[~rows], 1.0, rtol=0.01)


def test_a_drained_entry_has_hardly_any_traffic() -> None:
    rows = rows_with("entry3")
    seen = TREE.rates * np.where(rows, 0.0, 1.0)
    seen[np.flatnonzero(rows)[0]] = 2.0  # some request was still on its way
    got = factors(seen)
    assert got[rows].max() < 1e-3
    assert np.allclose(got[~rows], 1.0, rtol=0.01)


def test_one_part_that_got_dearer_is_no_traffic() -> None:
    rows = rows_with("scan3")
    assert np.allclose(factors(TREE.rates * np.where(rows, 3.0, 1.0)), 1.0, rtol=0.01)


def test_parts_that_went_ways_of_their_own_are_no_traffic() -> None:
    rows = np.flatnonzero(rows_with("entry1"))
    seen = TREE.rates.copy()
    seen[rows] *= np.linspace(0.4, 2.2, len(rows))
    assert np.allclose(factors(seen), 1.0, rtol=0.02)


def test_all_shares_fall_as_one_rises() -> None:
    rows = rows_with("scan3")
    seen = TREE.rates * np.where(rows, 3.0, 1.0)
    share = seen / seen.sum() * TREE.rates.sum()
    assert np.allclose(factors(share)[~rows], TREE.rates.sum() / seen.sum(), rtol=0.01)


def test_what_has_no_samples_has_the_traffic_of_the_whole() -> None:
    nothing = np.zeros_like(TREE.rates)
    assert traffic_factors(INDEX, ENTRIES, compared(nothing[None], nothing[None])).tolist() == [
        [1.0] * len(nothing)
    ]
