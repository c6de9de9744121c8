"""Series of every store: counts on their windows, metrics, and chosen ones of many."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.model import FloatArray, MetricKind, SeriesKey
from pipeline.storage.interface import SeriesQuery, Store
from tests.contract.rows import MINUTE, NASTY, T0, gcpu, metrics, totals

# Counts


def test_series_come_back_sorted_with_counts_on_their_windows(store: Store, service_name: str) -> None:
    store.insert(
        "gcpu", gcpu(service_name, [("b.g", T0, 1), ("a.f", T0 + MINUTE, 2), ("b.g", T0 + MINUTE, 3)])
    )
    store.insert("gcpu", {**gcpu(service_name, [("/checkout", T0, 4)]), "kind": ["endpoint"]})
    store.insert("totals", totals(service_name, [(T0, 10), (T0 + 2 * MINUTE, 20)]))
    found = store.series(SeriesQuery("gcpu", service_name, T0, T0 + 3 * MINUTE, MINUTE))
    assert found.kinds == ("endpoint", "subroutine", "subroutine")
    assert found.names == ("/checkout", "a.f", "b.g")
    np.testing.assert_array_equal(found.samples, [[4, 0, 0], [0, 2, 0], [1, 3, 0]])
    np.testing.assert_array_equal(found.totals, [10, 0, 20])
    assert (found.start, found.resolution_s) == (T0, MINUTE)
    assert found.samples.dtype == found.totals.dtype == np.float64


def test_counts_add_up_over_blocks_partitions_and_late_data(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1), ("a.f", T0 + MINUTE, 1)], offset=5))
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 10)], offset=6))
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 100)], partition=1, offset=6))
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1000)], stream="stream-b", offset=6))
    found = store.series(SeriesQuery("gcpu", service_name, T0, T0 + 2 * MINUTE, MINUTE))
    np.testing.assert_array_equal(found.samples, [[1111, 1]])


@pytest.mark.parametrize(
    ("start", "end", "resolution", "wanted"),
    [
        pytest.param(0, 6, 1, [1, 2, 4, 8, 16, 32], id="as stored"),
        pytest.param(0, 6, 2, [3, 12, 48], id="two windows each"),
        pytest.param(1, 5, 2, [6, 24], id="aligned to start, not to the clock"),
        pytest.param(0, 5, 2, [3, 12, 16], id="last one cut by end"),
        pytest.param(-2, 2, 2, [0, 3], id="before the first"),
        pytest.param(5, 7, 1, [32, 0], id="after the last"),
        pytest.param(3, 3, 1, [], id="no window at all"),
    ],
)
def test_windows_are_aligned_to_start(
    store: Store, service_name: str, start: int, end: int, resolution: int, wanted: list[float]
) -> None:
    counts = [(T0 + j * MINUTE, 2**j) for j in range(6)]
    store.insert("gcpu", gcpu(service_name, [("a.f", window, samples) for window, samples in counts]))
    store.insert("totals", totals(service_name, counts))
    found = store.series(
        SeriesQuery("gcpu", service_name, T0 + start * MINUTE, T0 + end * MINUTE, resolution * MINUTE)
    )
    assert found.totals.tolist() == wanted
    assert found.samples.tolist() == ([wanted] if wanted else [])


def test_a_resolution_under_a_second_keeps_its_windows(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, [("a.f", T0 + 0.25 * j, j + 1) for j in range(4)]))
    found = store.series(SeriesQuery("gcpu", service_name, T0, T0 + 1, 0.25))
    assert found.samples.tolist() == [[1, 2, 3, 4]]


def test_services_do_not_mix(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]))
    store.insert("gcpu", gcpu(service_name + "2", [("a.f", T0, 10), ("a.g", T0, 10)]))
    assert store.series(SeriesQuery("gcpu", service_name, T0, T0 + MINUTE, MINUTE)).samples.tolist() == [[1]]


def test_names_are_kept_byte_for_byte(store: Store, service_name: str) -> None:
    for service in (f"{service_name}{nasty}" for nasty in NASTY):
        store.insert("gcpu", gcpu(service, [(name, T0, 1 + i) for i, name in enumerate(NASTY)]))
        found = store.series(SeriesQuery("gcpu", service, T0, T0 + MINUTE, MINUTE))
        assert found.names == tuple(sorted(NASTY, key=str.encode))
        assert dict(zip(found.names, found.samples[:, 0], strict=True)) == {
            name: 1 + i for i, name in enumerate(NASTY)
        }


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    blocks=st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a.f", "a.g", "b.h"]), st.integers(0, 5), st.integers(0, 2**40)),
            min_size=1,
            max_size=12,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_split_into_blocks_sums_to_the_same_matrix(
    store: Store, blocks: list[list[tuple[str, int, int]]]
) -> None:
    service = f"split-{uuid4().hex}"
    wanted: dict[str, FloatArray] = {}
    for number, block in enumerate(blocks):
        store.insert(
            "gcpu", gcpu(service, [(name, T0 + w * MINUTE, n) for name, w, n in block], partition=number)
        )
        for name, window, samples in block:
            wanted.setdefault(name, np.zeros(6))[window] += samples
    found = store.series(SeriesQuery("gcpu", service, T0, T0 + 6 * MINUTE, MINUTE))
    assert found.names == tuple(sorted(wanted))
    np.testing.assert_array_equal(found.samples, [wanted[name] for name in found.names])


# Service-level metrics


def test_metrics_are_means_with_nan_where_nothing_was_measured(store: Store, service_name: str) -> None:
    points = [
        ("latency", T0, 1.0),
        ("latency", T0 + 59.9, 2.0),
        ("latency", T0 + 125, -4.5),
        ("rps", T0, 7.0),
    ]
    store.insert("metrics", metrics(service_name, points))
    store.insert("metrics", metrics(service_name, [("version", T0, 3.0)], setup=1))
    found = store.series(SeriesQuery("service", service_name, T0, T0 + 3 * MINUTE, MINUTE))
    assert (found.kinds, found.names) == (("service", "service"), ("latency", "rps"))
    nan = float("nan")
    np.testing.assert_array_equal(found.samples, [[1.5, nan, -4.5], [7.0, nan, nan]])
    np.testing.assert_array_equal(found.totals, [1, 1, 1])


def test_setup_metrics_are_a_source_of_their_own(store: Store, service_name: str) -> None:
    store.insert("metrics", metrics(service_name, [("latency", T0, 1.0)]))
    points = [("version", T0, 3.0), ("version", T0 + MINUTE, 5.0), ("share", T0, 0.5)]
    store.insert("metrics", metrics(service_name, points, setup=1))
    found = store.series(SeriesQuery("setup", service_name, T0, T0 + 2 * MINUTE, MINUTE))
    assert (found.kinds, found.names) == (("service", "service"), ("share", "version"))
    np.testing.assert_array_equal(found.samples, [[0.5, np.nan], [3.0, 5.0]])
    asked = store.series(
        SeriesQuery("setup", service_name, T0, T0 + MINUTE, MINUTE, [SeriesKey("service", "version")])
    )
    assert (asked.names, asked.samples.tolist()) == (("version",), [[3.0]])


@pytest.mark.parametrize("source", ["gcpu", "service", "setup"])
def test_an_unknown_service_has_no_series(store: Store, service_name: str, source: Any) -> None:
    found = store.series(SeriesQuery(source, service_name, T0, T0 + 3 * MINUTE, MINUTE))
    assert (found.kinds, found.names, found.samples.shape) == ((), (), (0, 3))
    np.testing.assert_array_equal(found.totals, np.zeros(3) if source == "gcpu" else np.ones(3))


# Few series of many


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        pytest.param([("subroutine", "a.g"), ("subroutine", "a.f")], ["a.f", "a.g"], id="in order"),
        pytest.param([("subroutine", "a.f"), ("subroutine", "a.f")], ["a.f"], id="asked for twice"),
        pytest.param([("endpoint", "a.f"), ("service", "a.f")], [], id="of another kind"),
        pytest.param([("subroutine", "z"), ("subroutine", "a.late")], [], id="without data in the span"),
        pytest.param([], [], id="none"),
        pytest.param([("subroutine", name) for name in NASTY], sorted(NASTY, key=str.encode), id="nasty"),
        pytest.param(
            [("subroutine", f"a.{i}.{'x' * 100}") for i in range(100)] + [("subroutine", "a.g")],
            ["a.g"],
            id="more than a URL holds",
        ),
        pytest.param(
            [("subroutine", "λ" * 4000), ("subroutine", "a.f")],
            ["a.f", "λ" * 4000],
            id="a name too long for it",
        ),
    ],
)
def test_only_named_series_are_read(
    store: Store, service_name: str, names: list[tuple[MetricKind, str]], wanted: list[str]
) -> None:
    held = ["a.f", "a.g", "b.h", "λ" * 4000, *NASTY]
    store.insert("gcpu", gcpu(service_name, [(name, T0, 1 + i) for i, name in enumerate(held)]))
    store.insert("gcpu", gcpu(service_name, [("a.late", T0 + 5 * MINUTE, 1)]))
    store.insert("totals", totals(service_name, [(T0, 100)]))
    found = store.series(
        SeriesQuery("gcpu", service_name, T0, T0 + 2 * MINUTE, MINUTE, [SeriesKey(*name) for name in names])
    )
    assert list(found.names) == wanted
    assert found.samples[:, 0].tolist() == [1 + held.index(name) for name in wanted]
    assert (found.samples.shape, found.totals.tolist()) == ((len(wanted), 2), [100, 0])


def test_only_named_metrics_are_read(store: Store, service_name: str) -> None:
    points = [("latency", T0, 1.0), ("rps", T0, 7.0), ("errors", T0, 0.5)]
    store.insert("metrics", metrics(service_name, points))
    names = [SeriesKey("service", "rps"), SeriesKey("service", "latency"), SeriesKey("subroutine", "errors")]
    found = store.series(SeriesQuery("service", service_name, T0, T0 + MINUTE, MINUTE, names))
    assert (found.names, found.samples.tolist()) == (("latency", "rps"), [[1.0], [7.0]])
