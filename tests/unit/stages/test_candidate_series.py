"""The series that the filters of a scan read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.analysis.detect.share_normalisation import share_factor
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.messages.scans import encode_progress
from pipeline.model import MetricKind, Progress, Scan, SeriesMatrix
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.candidate_series import gather_filters
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import SeriesQuery

KINDS: tuple[MetricKind, ...] = ("subroutine",)
SERIES = 150  # enough of them have a common factor
END = 1_700_006_400.0  # a midnight: every re-run boundary
RESOLUTION_S = 1800.0
WINDOWS, CHANGE = 720, 720 - 48
SHAPE = {
    "resolution": "30m",
    "rerun_interval": "12h",
    "analysis": "12h",
    "extended": "18h",
    "threshold": {"absolute": 0.00005},
}
WORKLOADS = {
    "a week before it": {**SHAPE, "name": "lead", "historical": "7d"},
    "nothing before it": {**SHAPE, "name": "no-lead", "historical": "8d"},
}


class Watched(ArrayStore):
    """Notes which series are asked for."""

    asked: list[Any]

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        self.asked.append(query.names)
        return super().series(query)


def draw_dataset() -> Dataset:
    """Return a service whose load differs from day to day, and one series of which doubles."""
    rng = np.random.default_rng(16)
    totals = np.round(40_000 * (1 + 0.3 * rng.random(WINDOWS)))
    shares = rng.uniform(0.001, 0.01, (SERIES, 1)) * np.ones(WINDOWS)
    shares[0, CHANGE:] *= 2
    return Dataset(
        service="shop",
        start=END - WINDOWS * RESOLUTION_S,
        end=END,
        window_s=RESOLUTION_S,
        stack_window_s=RESOLUTION_S,
        kinds=KINDS * SERIES,
        names=tuple(f"subroutine{row:06d}" for row in range(SERIES)),
        samples=rng.binomial(totals.astype(np.int64), shares).astype(np.float64),
        totals=totals,
        stacks=(),
        stack_samples=np.zeros((0, WINDOWS)),
        metrics=(),
        changes=(),
    )


def store() -> Watched:
    watched = Watched(draw_dataset())
    watched.asked = []
    return watched


def scan_of(watched: Watched, workload: Workload, *, is_filtered: bool = False) -> Scan:
    """Return what detect, or filter, publishes of the service; its scan ends where the data ends."""
    stages = ("detect", "filter") if is_filtered else ("detect",)
    flow = Flow(watched, (workload,), settings=Settings(), clock=lambda: END, stages=stages)
    progress = Progress("shop", "profiles", 0, END + workload.wait_s, END - workload.rerun_interval_s)
    flow.send("windows", [encode_progress(progress)])
    (scan,) = flow.scans("filtered" if is_filtered else "change-points")
    return scan


@pytest.mark.parametrize("shape", WORKLOADS)
def test_the_filters_read_their_candidates_alone(shape: str) -> None:
    workload = Workload.model_validate(WORKLOADS[shape])
    watched = store()
    scan = scan_of(watched, workload)
    watched.asked = []
    found = gather_filters(watched, "filter", scan, {workload.name: workload})
    assert scan.candidates
    assert watched.asked == [sorted({(c.metric_kind, c.metric) for c in scan.candidates})]
    assert len(found.series.names) == len(watched.asked[0])


@pytest.mark.parametrize("steps", [(), ("seasonality",)])
def test_optional_steps_are_asked_where_the_workload_names_them(steps: tuple[str, ...]) -> None:
    workload = Workload.model_validate({**WORKLOADS["a week before it"], "steps": steps})
    (candidate,) = scan_of(store(), workload, is_filtered=True).candidates
    assert {"seasonality"} & {decision.step for decision in candidate.passed} == set(steps)


@pytest.mark.parametrize("shape", WORKLOADS)
def test_what_detect_says_is_what_reading_all_series_gives(shape: str) -> None:
    workload = Workload.model_validate(WORKLOADS[shape])
    watched = store()
    scan = scan_of(watched, workload)
    one, other = (
        gather_filters(watched, "filter", each, {workload.name: workload}).series
        for each in (scan, replace(scan, share_factor=None))
    )
    assert watched.asked[-1] is None  # a scan of a former version
    assert one.names == other.names
    assert one.share_factor is not None
    assert other.share_factor is not None
    np.testing.assert_array_equal(one.share_factor, other.share_factor)
    np.testing.assert_array_equal(one.samples, other.samples)
    np.testing.assert_array_equal(one.totals, other.totals)


def test_a_factor_of_other_windows_is_not_used() -> None:
    workload = Workload.model_validate(WORKLOADS["nothing before it"])
    watched = store()
    scan = scan_of(watched, workload)
    shorter = replace(scan, share_factor=(1.0,) * 7)
    found = gather_filters(watched, "filter", shorter, {workload.name: workload}).series
    matrix = watched.series(SeriesQuery("gcpu", scan.service, scan.start, scan.end, workload.resolution_s))
    expected = share_factor(matrix, history=round(workload.historical_s / workload.resolution_s))
    assert found.share_factor is not None
    assert expected is not None
    np.testing.assert_array_equal(found.share_factor, expected)


def test_where_no_factor_is_known_nothing_else_is_read() -> None:
    workload = Workload.model_validate(WORKLOADS["nothing before it"])
    watched = store()
    scan = replace(scan_of(watched, workload), share_factor=())
    watched.asked = []
    assert gather_filters(watched, "filter", scan, {workload.name: workload}).series.share_factor is None
    assert None not in watched.asked


def test_a_scan_without_the_normalisation_reads_its_candidates_alone() -> None:
    workload = Workload.model_validate(WORKLOADS["nothing before it"])
    watched = store()
    scan = replace(scan_of(watched, workload), share_factor=None)
    watched.asked = []
    without = frozenset({"composition"})
    found = gather_filters(watched, "filter", scan, {workload.name: workload}, without).series
    assert found.share_factor is None
    assert None not in watched.asked
