"""The store by present names: series, stacks, changes and reported candidates of what was renamed."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.dedup.evidence import Reported
from pipeline.counting.names import Namings
from pipeline.messages.records import plain
from pipeline.model import Profile, Record, Rename, Scan, SeriesKey
from pipeline.settings.workloads import load_workloads
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.history import memory_rows, read_history
from pipeline.stages.gather.scan_store import by_present_names
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery, SeriesQuery, StackQuery, Store
from tests.support.builders import build_candidate, build_change

T0 = 1_700_006_400.0
RENAMES = (Rename("a", "org.b"), Rename("b", "org.b"))
(LIVE,) = load_workloads(["live"])


def build_scan(renames: tuple[Rename, ...] = RENAMES) -> Scan:
    return Scan("shop", "live", T0, T0 + 120, T0 + 180, T0 + 180, 3, renames=renames)


@pytest.fixture
def counted() -> ArrayStore:
    """A minute each of main;a, main;b and main;org.b, with c beside."""
    store = ArrayStore()
    stage = AggregateStage(
        store=store,
        clock=lambda: T0 + 10**7,
        streams=one_stream("x"),
        window_s=60.0,
        stack_window_s=60.0,
        namings=Namings(),
    )
    for minute, name in enumerate(("a", "b", "org.b")):
        start = T0 + 60 * minute
        samples = np.array([minute + 1, 5], dtype=np.int64)
        flat, starts = np.array([0, 1, 0, 2]), np.array([0, 2, 4])
        profile = Profile("shop", "h", start, start + 60, ("main", name, "c"), flat, starts, samples)
        stage.handle([Record("profiles", 0, minute, profile)])
    return store


def levels(store: Store, *asked: str) -> dict[str, list[float]]:
    names = [SeriesKey("subroutine", name) for name in asked] or None
    matrix = store.series(SeriesQuery("gcpu", "shop", T0, T0 + 180, 60.0, names))
    return dict(zip(matrix.names, matrix.samples.tolist(), strict=True))


def test_a_scan_without_renames_sees_the_store_as_it_is(counted: ArrayStore) -> None:
    assert by_present_names(counted, build_scan(())) is counted


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((), {"c": [5, 5, 5], "main": [6, 7, 8], "org.b": [1, 2, 3]}),
        (("org.b",), {"org.b": [1, 2, 3]}),
        (("a", "c"), {"a": [1, 2, 3], "c": [5, 5, 5]}),
        (("gone",), {}),
    ],
    ids=["all", "the present name", "a former name stays as it was asked for", "nobody's"],
)
def test_series_have_the_history_of_former_names(
    counted: ArrayStore, asked: tuple[str, ...], expected: dict[str, list[float]]
) -> None:
    assert levels(by_present_names(counted, build_scan()), *asked) == expected


def test_stacks_have_present_names(counted: ArrayStore) -> None:
    store = by_present_names(counted, build_scan())
    matrix = store.counts(StackQuery("shop", (T0, T0 + 120), (T0 + 120, T0 + 180)))
    rows = dict(
        zip(matrix.stacks, zip(matrix.before.tolist(), matrix.after.tolist(), strict=True), strict=True)
    )
    assert rows == {("main", "org.b"): (3, 3), ("main", "c"): (10, 5)}


def test_a_change_of_the_former_name_is_one_of_the_present(counted: ArrayStore) -> None:
    row = plain(build_change("D1", ["a", "c"], time=T0))
    counted.insert("changes", {name: [value] for name, value in row.items()})
    (row,) = by_present_names(counted, build_scan()).rows(RowQuery("changes", "shop", T0 - 1, T0 + 1))
    assert row["subroutines"] == ["org.b", "c"]


def test_what_was_reported_under_a_former_name_is_known(counted: ArrayStore) -> None:
    earlier = build_candidate("a", change_time=T0 + 60)
    scan = Scan("shop", "live", T0 - 60, T0 + 60, T0 + 120, T0 + 120, 3)
    ((_, columns),) = memory_rows("dedup", scan, [Reported(earlier, "e")])
    counted.insert("memory", columns)
    store = by_present_names(counted, build_scan())
    (known,) = read_history(store, "dedup", build_scan(), {"live": LIVE}, same_workload=True)
    assert (known.candidate.metric, known.event) == ("org.b", "e")
