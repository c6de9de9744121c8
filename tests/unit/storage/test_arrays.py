"""A loaded dataset answers as the same rows do when they are inserted, whatever the windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.backtest.dataset import Dataset
from pipeline.counting.count import stack_ids
from pipeline.model import MetricPoints, SeriesKey
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import CountTable, Extent, RowQuery, SeriesQuery, StackQuery
from tests.contract.rows import gcpu, position, totals
from tests.support.builders import build_change

T0 = 1_700_000_040.0
WINDOW, STACK_WINDOW, WINDOWS = 60.0, 180.0, 12
NAMES = ("b.g", "a.f", "c.never")
STACKS = (("main", "b.g"), ("main", "a.f"), ("a.f",), ("never",))


def build(seed: int = 1) -> Dataset:
    rng = np.random.default_rng(seed)
    samples = rng.integers(0, 3, (len(NAMES), WINDOWS)).astype(np.float64)
    stack_samples = rng.integers(0, 3, (len(STACKS), WINDOWS // 3)).astype(np.float64)
    samples[2] = stack_samples[3] = 0
    times = T0 + np.sort(rng.uniform(0, WINDOW * WINDOWS, 15)).round(3)
    return Dataset(
        service="s",
        start=T0,
        end=T0 + WINDOW * WINDOWS,
        window_s=WINDOW,
        stack_window_s=STACK_WINDOW,
        kinds=("subroutine", "subroutine", "subroutine"),
        names=NAMES,
        samples=samples,
        totals=rng.integers(0, 9, WINDOWS).astype(np.float64),
        stacks=STACKS,
        stack_samples=stack_samples,
        metrics=(
            MetricPoints("s", "rps", times, rng.normal(5, 1, 15)),
            MetricPoints("s", "version", times, np.ones(15), setup=True),
        ),
        changes=(build_change("c", ["a.f"], time=T0 + 5, service="s"),),
    )


def inserted(data: Dataset) -> ArrayStore:
    """The same facts, row by row."""
    store = ArrayStore()
    windows = [T0 + WINDOW * j for j in range(WINDOWS)]
    rows = [
        (name, windows[j], int(data.samples[i, j]))
        for i, name in enumerate(NAMES)
        for j in np.flatnonzero(data.samples[i]).tolist()
    ]
    store.insert("gcpu", gcpu("s", rows))
    store.insert("totals", totals("s", [(w, int(n)) for w, n in zip(windows, data.totals, strict=True)]))
    ids = stack_ids(STACKS).tolist()
    where = [(i, k) for i, k in np.argwhere(data.stack_samples > 0).tolist()]
    columns = {
        **{"service": ["s"] * len(where), "stack_id": [ids[i] for i, _ in where]},
        **{"frames": [list(STACKS[i]) for i, _ in where], "width_s": [STACK_WINDOW] * len(where)},
        **{"window": [T0 + STACK_WINDOW * k for _, k in where]},
        **{"samples": [int(data.stack_samples[i, k]) for i, k in where], **position(len(where))},
    }
    store.insert("stacks", columns)
    for points in data.metrics:
        size = len(points.values)
        columns = {
            **{
                "service": ["s"] * size,
                "metric": [points.metric] * size,
                "setup": [int(points.setup)] * size,
            },
            **{"time": points.timestamps.tolist(), "value": points.values.tolist(), **position(size)},
        }
        store.insert("metrics", columns)
    return store


@given(
    seed=st.integers(0, 5),
    start=st.integers(-400, 900),
    length=st.integers(0, 1200),
    resolution=st.sampled_from([20.0, 60.0, 120.0, 180.0, 90.0, 600.0]),
    source=st.sampled_from(["gcpu", "service"]),
)
def test_series_of_any_windows(seed: int, start: int, length: int, resolution: float, source: str) -> None:
    data = build(seed)
    span = (T0 + start, T0 + start + length, resolution)
    loaded, rows = ArrayStore(data), inserted(data)
    for _ in range(2):  # the second time from what was kept of the first
        one = loaded.series(SeriesQuery(source, "s", *span))  # type: ignore[arg-type]
        other = rows.series(SeriesQuery(source, "s", *span))  # type: ignore[arg-type]
        assert (one.kinds, one.names) == (other.kinds, other.names)
        np.testing.assert_array_equal(one.samples, other.samples)
        np.testing.assert_array_equal(one.totals, other.totals)


@given(seed=st.integers(0, 5), edges=st.lists(st.integers(-300, 1000), min_size=4, max_size=4))
def test_stacks_of_any_spans(seed: int, edges: list[int]) -> None:
    data = build(seed)
    a, b, c, d = sorted(edges)
    spans = ((T0 + a, T0 + b), (T0 + c, T0 + d))
    one, other = (
        ArrayStore(data).counts(StackQuery("s", *spans)),
        inserted(data).counts(StackQuery("s", *spans)),
    )
    assert one.stacks == other.stacks
    np.testing.assert_array_equal(one.before, other.before)
    np.testing.assert_array_equal(one.after, other.after)
    assert (one.total_before, one.total_after) == (other.total_before, other.total_after)


def test_a_dataset_and_inserted_rows_add_up() -> None:
    data = build()
    store = ArrayStore(data)
    store.insert("gcpu", gcpu("s", [("a.f", T0, 5), ("z.new", T0, 7)]))
    store.insert("totals", totals("s", [(T0, 100)]))
    found = store.series(SeriesQuery("gcpu", "s", T0, data.end, WINDOW))
    assert found.names == ("a.f", "b.g", "z.new")
    assert found.samples[0].tolist() == [data.samples[1, 0] + 5, *data.samples[1, 1:]]
    assert found.totals[0] == data.totals[0] + 100


def test_changes_of_a_dataset_are_rows() -> None:
    (row,) = ArrayStore(build()).rows(RowQuery("changes", "s", T0, T0 + 10))
    assert (row["id"], row["time"], row["subroutines"], row["files"]) == ("c", T0 + 5, ["a.f"], [])


def test_a_view_is_not_the_totals_that_callers_may_change() -> None:
    store = ArrayStore(build())
    first = store.series(SeriesQuery("gcpu", "s", T0, T0 + 600, WINDOW)).totals
    wanted = first.copy()
    first += 1
    np.testing.assert_array_equal(store.series(SeriesQuery("gcpu", "s", T0, T0 + 600, WINDOW)).totals, wanted)


@pytest.mark.parametrize("table", ["gcpu", "totals"])
def test_a_repeated_token_of_another_table_is_another_insert(table: CountTable) -> None:
    store = ArrayStore()
    store.insert("totals", totals("s", [(T0, 1)]), token="t")
    store.insert("gcpu", gcpu("s", [("a.f", T0, 1)]), token="t")
    assert store.extents([table], "stream-a")[table] == {("profiles", 0): Extent(0)}


@given(
    seed=st.integers(0, 5),
    start=st.integers(-400, 900),
    length=st.integers(0, 1200),
    resolution=st.sampled_from([20.0, 60.0, 120.0, 90.0]),
    names=st.lists(st.sampled_from([*NAMES, "z"]), max_size=5),
)
def test_named_series_are_those_rows_of_all(
    seed: int, start: int, length: int, resolution: float, names: list[str]
) -> None:
    data = build(seed)
    span = (T0 + start, T0 + start + length, resolution)
    for store in (ArrayStore(data), inserted(data)):
        every = store.series(SeriesQuery("gcpu", "s", *span))
        some = store.series(
            SeriesQuery("gcpu", "s", *span, [SeriesKey("subroutine", name) for name in names])
        )
        assert some.names == tuple(name for name in every.names if name in names)
        rows = [every.names.index(name) for name in some.names]
        np.testing.assert_array_equal(some.samples, every.samples[rows])
        np.testing.assert_array_equal(some.totals, every.totals)
