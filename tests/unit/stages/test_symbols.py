"""Names from frames to series: counted by symbols, and read by today's rules however they were counted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pipeline.counting.names import VERSION, Naming, Namings, Pattern
from pipeline.model import MetricPoints, Profile, Record, SeriesKey, SeriesMatrix
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.stages.gather.symbols import MARGIN_S, SymbolStore
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery, SeriesQuery, StackQuery
from tests.support.builders import build_profile

T0 = 1_700_006_400.0  # a whole day
RAW = ("main", "a(int)", "a(long)", "b()")
EVERY = Namings()
NONE = Namings(Naming(rules=()))
ASKED = [SeriesKey("subroutine", "a"), SeriesKey("subroutine", "b")]


def send(
    store: ArrayStore, namings: Namings, offset: int, start: float, frames: tuple[str, ...] = RAW
) -> None:
    """Count one profile: one sample each in main;a(int), main;a(long) and main;b(), or frames of these."""
    stage = AggregateStage(
        store=store,
        clock=lambda: T0 + 10**7,
        streams=one_stream("x"),
        window_s=60.0,
        stack_window_s=60.0,
        namings=namings,
    )
    flat, starts = np.array([0, 1, 0, 2, 0, 3]), np.array([0, 2, 4, 6])
    profile = Profile("shop", "h", start, start + 60, frames, flat, starts, np.ones(3, dtype=np.int64))
    stage.handle([Record("profiles", 0, offset, profile)])


def names_in(store: ArrayStore) -> set[str]:
    return set(store.series(SeriesQuery("gcpu", "shop", T0, T0 + 10**6, 60.0)).names)


def test_samples_are_counted_by_symbols_with_an_example_of_each() -> None:
    store = ArrayStore()
    send(store, EVERY, 0, T0)
    assert names_in(store) == {"main", "a", "b"}
    rows = store.rows(RowQuery("symbols", "shop", 0, T0 * 2))
    assert {row["symbol"]: row["name"] for row in rows} == {"a": "a(int)", "b": "b()"}
    assert store.counts(StackQuery("shop", (T0, T0 + 60), (T0, T0 + 60))).stacks in (
        (("main", "a"), ("main", "b")),
        (("main", "b"), ("main", "a")),
    )


def test_the_version_in_force_is_noted_once_and_again_when_it_changes() -> None:
    store = ArrayStore()
    for offset, namings in enumerate([NONE, NONE, EVERY, EVERY, NONE]):
        send(store, namings, offset, T0 + 60 * offset)
    rows = store.rows(RowQuery("naming", "shop", 0, T0 * 2))
    assert [(row["version"], row["before"], row["time"] - T0) for row in rows] == [
        ("0", 0, 0.0),
        (str(VERSION), 1, 120.0),
        ("0", 1, 240.0),
    ]


def test_what_was_counted_under_mangled_names_goes_on_under_symbols() -> None:
    store, frames = ArrayStore(), ("main", "_ZN4shop4Cart3addEi", "_ZN4shop4Cart3addEl", "_RNvC4shop5total")
    send(store, NONE, 0, T0, frames)
    send(store, EVERY, 1, T0 + 60, frames)
    matrix = SymbolStore(store, EVERY).series(SeriesQuery("gcpu", "shop", T0, T0 + 120, 60.0))
    rows = dict(zip(matrix.names, matrix.samples, strict=True))
    assert set(rows) == {"main", "shop::Cart::add", "shop::total"}
    assert_allclose(rows["shop::Cart::add"], [2, 2])
    examples = {row["symbol"]: row["name"] for row in store.rows(RowQuery("symbols", "shop", 0, T0 * 2))}
    assert examples["shop::total"] == "_RNvC4shop5total"


def test_an_upgrade_makes_no_series_new() -> None:
    store = ArrayStore()
    send(store, NONE, 0, T0)
    send(store, EVERY, 1, T0 + 60)
    read = SymbolStore(store, EVERY)
    for names in (None, ASKED):
        matrix = read.series(SeriesQuery("gcpu", "shop", T0, T0 + 120, 60.0, names))
        assert set(matrix.names) == ({"main", "a", "b"} if names is None else {"a", "b"})
        rows = dict(zip(matrix.names, matrix.samples, strict=True))
        assert_allclose(rows["a"], [2, 2])
        assert_allclose(rows["b"], [1, 1])
    stacks = read.counts(StackQuery("shop", (T0, T0 + 60), (T0 + 60, T0 + 120)))
    assert sorted(zip(stacks.stacks, stacks.before, stacks.after, strict=True)) == [
        (("main", "a"), 2, 2),
        (("main", "b"), 1, 1),
    ]


def test_a_worker_of_the_version_before_may_go_on_for_a_while() -> None:
    store = ArrayStore()
    send(store, NONE, 0, T0)
    send(store, EVERY, 1, T0 + 60)
    send(store, NONE, 2, T0 + 120)
    send(store, EVERY, 3, T0 + 180)
    matrix = SymbolStore(store, EVERY).series(SeriesQuery("gcpu", "shop", T0, T0 + 240, 60.0, ASKED))
    assert_allclose(matrix.samples, [[2, 2, 2, 2], [1, 1, 1, 1]])


def test_what_was_reported_by_its_former_name_is_read_under_it() -> None:
    store = ArrayStore()
    send(store, NONE, 0, T0)
    send(store, EVERY, 1, T0 + 60)
    asked = [SeriesKey("subroutine", "a(int)"), SeriesKey("subroutine", "gone")]
    matrix = SymbolStore(store, EVERY).series(SeriesQuery("gcpu", "shop", T0, T0 + 120, 60.0, asked))
    assert matrix.names == ("a(int)",)
    assert_allclose(matrix.samples, [[2, 2]])


def test_series_that_were_always_counted_by_symbols_are_read_as_they_are() -> None:
    store = ArrayStore()
    send(store, EVERY, 0, T0)
    read = SymbolStore(store, EVERY)
    found = read.series(SeriesQuery("gcpu", "shop", T0, T0 + 60, 60.0, ASKED))
    assert_allclose(
        found.samples, store.series(SeriesQuery("gcpu", "shop", T0, T0 + 60, 60.0, ASKED)).samples
    )
    assert read._since == {"shop": -np.inf}


def test_after_the_margin_what_is_asked_for_is_read_alone() -> None:
    store = ArrayStore()
    send(store, NONE, 0, T0)
    send(store, EVERY, 1, T0 + 60)
    read = SymbolStore(store, EVERY)
    read.series(SeriesQuery("gcpu", "shop", T0, T0 + 60, 60.0))
    assert read._since == {"shop": T0 + 60 + MARGIN_S}


class Reads(ArrayStore):
    """A store that notes how series are read: from when to when, and whether all."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[float, float, bool]] = []

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        self.noted.append((query.start - T0, query.end - T0, query.names is None))
        return super().series(query)


PLAIN = ("main", "a", "b", "c")


def test_where_no_name_changes_what_is_asked_for_is_read_alone() -> None:
    """No naming is noted of the service, or it was counted by another before."""
    store = Reads()
    send(store, NONE, 0, T0, PLAIN)
    read = SymbolStore(store, EVERY)
    for start, end in ((0, 120), (0, 120), (60, 120), (60, 180), (60, 180)):
        found = read.series(SeriesQuery("gcpu", "shop", T0 + start, T0 + end, 60.0, ASKED))
        assert set(found.names) == ({"a", "b"} if not start else set())
    assert store.noted == [
        (0, 120, True),
        (0, 120, False),
        (60, 120, False),
        (0, 180, True),
        (60, 180, False),
        (60, 180, False),
    ]


def test_a_former_name_that_comes_late_is_seen() -> None:
    store = Reads()
    send(store, NONE, 0, T0, PLAIN)
    read = SymbolStore(store, EVERY)
    read.series(SeriesQuery("gcpu", "shop", T0, T0 + 60, 60.0, ASKED))
    send(store, NONE, 1, T0 + 60)
    for end in (120, 180):
        matrix = read.series(SeriesQuery("gcpu", "shop", T0, T0 + end, 60.0, ASKED))
        assert_allclose(matrix.samples[:, :2], [[1, 2], [1, 1]])
    assert read.series(SeriesQuery("gcpu", "shop", T0, T0 + 60, 60.0, ASKED)).names == ("a", "b")


def test_what_lies_before_is_looked_at_again() -> None:
    store = Reads()
    send(store, NONE, 0, T0 + 60, PLAIN)
    read = SymbolStore(store, EVERY)
    read.series(SeriesQuery("gcpu", "shop", T0 + 60, T0 + 120, 60.0, ASKED))
    send(store, NONE, 1, T0)
    matrix = read.series(SeriesQuery("gcpu", "shop", T0, T0 + 120, 60.0, ASKED))
    assert_allclose(matrix.samples, [[2, 1], [1, 1]])


def test_a_pattern_that_is_added_takes_more_away() -> None:
    store = ArrayStore()
    send(store, EVERY, 0, T0)
    later = Namings(Naming(patterns=(Pattern("^[ab]$", "x"),)))
    send(store, later, 1, T0 + 60)
    matrix = SymbolStore(store, later).series(
        SeriesQuery("gcpu", "shop", T0, T0 + 120, 60.0, [SeriesKey("subroutine", "x")])
    )
    assert_allclose(matrix.samples, [[3, 3]])


def test_changes_and_reported_candidates_come_by_symbols() -> None:
    store = ArrayStore()
    texts = {name: [""] for name in ("title", "author", "summary", "content")}
    lists: dict[str, list[list[str]]] = {"files": [[]], "gates": [[]], "subroutines": [["shop::A<int>::f()"]]}
    store.insert("changes", {"id": ["c"], "service": ["shop"], "time": [T0], **texts, **lists})
    what = {"stage": "dedup", "service": "shop", "workload": "w", "kind": "short_term", "regression": "r"}
    levels = {"time": T0, "before": 0.1, "after": 0.2, "scan_end": T0}
    for kind, metric in (("subroutine", "f(int)"), ("endpoint", "/f(int)")):
        row = {**what, **levels, "metric_kind": kind, "metric": metric}
        store.insert("memory", {name: [value] for name, value in row.items()})
    read = SymbolStore(store, EVERY)
    assert read.rows(RowQuery("changes", "shop", T0, T0 + 1))[0]["subroutines"] == ["shop::A::f"]
    rows = read.rows(RowQuery("memory", "shop", T0, T0 + 1))
    assert {(row["metric"], row["stored_metric"]) for row in rows} == {
        ("f", "f(int)"),
        ("/f(int)", "/f(int)"),
    }


def test_services_by_the_thousand_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.stages.aggregate.MOST_NAMED", 3)
    monkeypatch.setattr("pipeline.stages.aggregate.MOST_SAID", 3)
    store = ArrayStore()
    stage = AggregateStage(
        store=store,
        clock=lambda: T0 + 10**7,
        streams=one_stream("x"),
        window_s=60.0,
        stack_window_s=60.0,
    )
    for number in range(20):
        profile = build_profile({"main;a(int)": 1}, service=f"shop-{number % 10}", start=T0)
        stage.handle([Record("profiles", 0, number, profile)])
        points = MetricPoints(
            f"shop-{number % 10}",
            "latency",
            np.array([T0]),
            np.array([1.0]),
            unit="s",
        )
        stage.handle([Record("metrics", 0, number, points)])
    assert len(stage._shown) == len(stage._said) == 3
    for number in range(10):
        assert len(store.rows(RowQuery("naming", f"shop-{number}", 0, T0 * 2))) == 1
        assert len(store.rows(RowQuery("symbols", f"shop-{number}", 0, T0 * 2))) == 1
        assert len(store.rows(RowQuery("metric_metadata", f"shop-{number}", 0, T0 * 2))) == 1
