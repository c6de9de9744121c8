"""Counts by sender, in every store."""

from __future__ import annotations

import numpy as np

from pipeline.model import SeriesKey, Stratum
from pipeline.storage.interface import StackQuery, Store, StrataQuery, StrataWidthQuery
from tests.contract.rows import MINUTE, NASTY, T0, stacks, strata_gcpu, strata_stacks, strata_totals

WEST = Stratum.of({"region": "west", "machine": "c5"}, host="a", release="v1")
EAST = Stratum.of({"region": "east=1"}, release="v2")


def describe(store: Store, service: str, *strata: Stratum) -> None:
    rows = [stratum.row for stratum in strata]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    store.insert("strata", {**columns, "service": [service] * len(rows), "time": [T0] * len(rows)})


def test_totals_by_windows_and_counts_of_whole_windows(store: Store, service_name: str) -> None:
    describe(store, service_name, WEST, EAST)
    store.insert(
        "strata_totals",
        strata_totals(
            service_name, [(WEST, 0, 1), (WEST, 0, 2), (EAST, 60, 4), (WEST, 120, 8), (EAST, 240, 16)]
        ),
    )
    store.insert("strata_totals", strata_totals(service_name, [(EAST, -60, 32)]))
    store.insert(
        "strata_gcpu",
        strata_gcpu(service_name, [("a.f", WEST, 0, 1), ("a.f", EAST, 0, 2), ("a.g", WEST, 120, 4)]),
    )
    store.insert(
        "strata_gcpu",
        strata_gcpu(service_name, [("a.f", WEST, 120, 8), ("a.f", WEST, 180, 16), ("a.f", WEST, -60, 32)]),
    )
    found = store.counts(StrataQuery(service_name, T0, T0 + 4 * MINUTE, MINUTE))
    assert found.strata == (EAST, WEST)
    assert found.totals.tolist() == [[0, 4, 0, 0], [3, 0, 8, 0]]
    assert found.series == (SeriesKey("subroutine", "a.f"), SeriesKey("subroutine", "a.g"))
    assert found.samples.tolist() == [[2, 9], [0, 4]]
    assert (found.start, found.resolution_s, found.counted) == (T0, MINUTE, (T0, T0 + 4 * MINUTE))


def test_series_that_are_asked_for(store: Store, service_name: str) -> None:
    describe(store, service_name, WEST)
    store.insert("strata_totals", strata_totals(service_name, [(WEST, 0, 100)]))
    store.insert(
        "strata_gcpu",
        strata_gcpu(service_name, [(name, WEST, 0, 1 + i) for i, name in enumerate(["a.f", *NASTY])]),
    )
    asked = [SeriesKey("subroutine", name) for name in (NASTY[0], NASTY[5], "a.absent")]
    found = store.counts(StrataQuery(service_name, T0, T0 + 2 * MINUTE, MINUTE, asked))
    assert dict(zip(found.series, found.samples[:, 0].tolist(), strict=True)) == {asked[0]: 2, asked[1]: 7}
    none = store.counts(StrataQuery(service_name, T0, T0 + 2 * MINUTE, MINUTE, []))
    assert (none.series, none.totals.tolist(), none.counted) == ((), [[100, 0]], (0, 0))


def test_counts_are_of_the_same_time_whichever_series_are_asked_for(store: Store, service_name: str) -> None:
    describe(store, service_name, WEST)
    store.insert("strata_totals", strata_totals(service_name, [(WEST, 0, 100)]))
    counts = [("a.f", WEST, 0, 1), ("a.f", WEST, 120, 1), ("a.rare", WEST, 60, 1)]
    store.insert("strata_gcpu", strata_gcpu(service_name, counts))
    for asked in (None, [SeriesKey("subroutine", "a.rare")], [SeriesKey("subroutine", "a.absent")]):
        found = store.counts(StrataQuery(service_name, T0, T0 + 4 * MINUTE, MINUTE, asked))
        assert found.counted == (T0, T0 + 4 * MINUTE)


def test_a_stratum_that_nobody_described_and_one_that_says_nothing(store: Store, service_name: str) -> None:
    describe(store, service_name, Stratum())
    store.insert("strata_totals", strata_totals(service_name, [(Stratum(), 0, 1), (WEST, 0, 2)]))
    found = store.counts(StrataQuery(service_name, T0, T0 + MINUTE, MINUTE))
    assert found.strata == (Stratum(), Stratum.of({"stratum": str(WEST.id)}))
    assert found.totals.tolist() == [[1], [2]]


def test_an_unknown_service_has_no_strata(store: Store, service_name: str) -> None:
    found = store.counts(StrataQuery(service_name, T0, T0 + 3 * MINUTE, MINUTE))
    assert (found.strata, found.series) == ((), ())
    assert (found.totals.shape, found.samples.shape) == ((0, 3), (0, 0))


def test_a_stratum_is_known_by_what_it_says(store: Store, service_name: str) -> None:
    """Also after a store has spelt it; a name may not hold what separates it from its value."""
    odd = Stratum.of({"a=b": "c=d", "größe": "🙂'"}, host="h'\\", release="1;2")
    describe(store, service_name, odd)
    store.insert("strata_totals", strata_totals(service_name, [(odd, 0, 1)]))
    (found,) = store.counts(StrataQuery(service_name, T0, T0 + MINUTE, MINUTE)).strata
    assert found == Stratum("h'\\", "1;2", (("a-b", "c=d"), ("größe", "🙂'")))
    assert found.id == odd.id
    assert np.uint64(found.id) == odd.id


MAIN, READ, GONE = ("main",), ("main", "größe.read"), ("main", "gone")


def count_stacks(store: Store, service: str) -> None:
    """Stacks of two strata in windows of two minutes; of one stack the frames are not there."""
    store.insert("stacks", stacks(service, [(MAIN, T0, 99), (READ, T0 + 120, 99)], width=60))
    rows = [(MAIN, WEST, 0, 1), (READ, WEST, 0, 2), (MAIN, EAST, 0, 4), (READ, WEST, 120, 8)]
    store.insert(
        "strata_stacks", strata_stacks(service, [*rows, (READ, EAST, 240, 16), (GONE, EAST, 120, 32)])
    )
    store.insert("strata_stacks", strata_stacks(service, [(READ, WEST, 120, 64)], offset=1))


def sides(
    store: Store, service: str, before: object, after: object
) -> dict[tuple[str, ...], tuple[float, float]]:
    """Counts of the strata of the first four minutes, and of those of the last four."""
    spans = (T0, T0 + 4 * MINUTE), (T0 + 2 * MINUTE, T0 + 6 * MINUTE)
    ids = tuple([stratum.id for stratum in side] for side in (before, after))  # type: ignore[attr-defined]
    found = store.counts(StackQuery(service, *spans, strata=(ids[0], ids[1])))
    assert (found.total_before, found.total_after) == (found.before.sum(), found.after.sum())
    return dict(zip(found.stacks, zip(found.before.tolist(), found.after.tolist(), strict=True), strict=True))


def test_stacks_of_some_strata_in_each_span(store: Store, service_name: str) -> None:
    count_stacks(store, service_name)
    assert sides(store, service_name, [WEST], [EAST]) == {
        MAIN: (1, 0),
        READ: (2 + 8 + 64, 16),
        ("(other)",): (0, 32),
    }
    assert sides(store, service_name, [WEST, EAST], []) == {
        MAIN: (5, 0),
        READ: (74, 0),
        ("(other)",): (32, 0),
    }
    assert sides(store, service_name, [], []) == {}


def test_stacks_of_more_strata_than_one_query_names(store: Store, service_name: str) -> None:
    hosts = [Stratum(host=f"h{number}") for number in range(200)]
    store.insert("stacks", stacks(service_name, [(MAIN, T0, 1), (READ, T0, 1)], width=60))
    rows = [(stack, host, 120, 1) for host in hosts for stack in (MAIN, READ)]
    store.insert("strata_stacks", strata_stacks(service_name, rows))
    assert sides(store, service_name, hosts, hosts[:3]) == {MAIN: (200, 3), READ: (200, 3)}


def test_a_window_by_stratum_counts_if_it_lies_wholly_inside(store: Store, service_name: str) -> None:
    count_stacks(store, service_name)
    for start, end, samples in ((0, 120, 3), (1, 240, 72), (0, 119, 0), (-60, 121, 3), (0, 240, 75)):
        span = (T0 + start, T0 + end)
        assert store.counts(StackQuery(service_name, (T0, T0), span, ([], [WEST.id]))).total_after == samples


def test_the_width_of_windows_by_stratum_is_known(store: Store, service_name: str) -> None:
    assert store.counts(StrataWidthQuery(service_name, T0 + 60)) == 0
    store.insert("strata_gcpu", strata_gcpu(service_name, [("a.f", WEST, 0, 1)]))
    assert store.counts(StrataWidthQuery(service_name, T0 + 90)) == 120
    assert store.counts(StrataWidthQuery(service_name, T0 - 60)) == 0
