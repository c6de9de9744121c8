"""Weekends under the workloads of a week's history: nothing happens that did not happen a week before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.backtest.plain import build_datasets
from pipeline.backtest.run import run_backtest
from pipeline.backtest.seriesfile import Series
from pipeline.model import FloatArray
from pipeline.model.clock import from_iso
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import load_workloads

THURSDAY = 1_767_225_600.0  # 2026-01-01
WINDOW_S = 1800.0
DAYS = np.arange(30 * 48) / 48


def weekend(begins: int) -> FloatArray:
    """Return 1 on Saturdays and Sundays of series that begin so many days after a Thursday."""
    return np.asarray((DAYS.astype(np.int64) + begins + 3) % 7 >= 5, dtype=np.float64)


def events(workload: str, series: Mapping[str, FloatArray], *, begins: int = 0) -> list[dict[str, Any]]:
    """Return the data of all that a backtest detects of relative levels, with one per cent of noise."""
    rng = np.random.default_rng(9)
    start = THURSDAY + begins * DAY_S
    points = [
        Series(
            "shop", "service", name, start + DAYS * DAY_S, 1000 * level + rng.normal(0, 10, len(DAYS)), None
        )
        for name, level in series.items()
    ]
    (dataset,) = build_datasets(points, Path("week.csv"), window_s=WINDOW_S)
    found = run_backtest(dataset, load_workloads([workload])).events
    return [event["data"] for event in found if event["type"] == "smidgen.regression.detected"]


@pytest.mark.slow
@pytest.mark.parametrize("begins", range(7), ids=["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"])
@pytest.mark.parametrize("workload", ["ct-supply-short", "ct-demand"])
def test_a_weekend_is_no_regression_once_one_is_known(workload: str, begins: int) -> None:
    day, off = 1 + 0.2 * np.sin(2 * np.pi * DAYS), weekend(begins)
    series = {
        "quiet weekends": 1 - 0.3 * off,
        "busy weekends": 1 + 0.3 * off,
        "quiet weekends and nights": (1 - 0.3 * off) * day,
        "slightly quiet weekends": (1 - 0.1 * off) * day,
        "growth": (1 - 0.3 * off) * (1 + 0.04 * DAYS / 7),
    }
    assert [(one["metric"], one["change_time"]) for one in events(workload, series, begins=begins)] == []


@pytest.mark.parametrize("step_day", [15.25, 16.75, 19.5, 21.0, 23.0], ids=str)
def test_a_step_in_throughput_is_reported_whatever_the_day(step_day: float) -> None:
    level = (1 - 0.3 * weekend(0)) * np.where(step_day <= DAYS, 0.9, 1.0)
    found, *again = events("ct-supply-short", {"throughput": level})
    assert found["metric"] == "throughput"
    assert found["after"] < found["before"]
    reported = from_iso(found["detected_time"])
    assert THURSDAY + step_day * DAY_S < reported <= THURSDAY + (step_day + 2.5) * DAY_S
    # The weekend after it lies lower than the one before, and may be taken for a second step.
    assert all(from_iso(one["change_time"]) < reported + 7 * DAY_S for one in again)


@pytest.mark.parametrize(
    ("workload", "reported"), [("ct-supply-short", "throughput"), ("ct-demand", "memory_mb")]
)
def test_improvements_are_no_regressions(workload: str, reported: str) -> None:
    late = DAYS >= 15.5
    series = {
        "latency_ms": np.where(late, 0.75, 1.0),
        "errors_per_s": np.where(late, 0.6, 1.0),
        "throughput": np.where(late, 0.85, 1.0),
        "cache_hit_ratio": np.where(late, 1.3, 1.0),
        "memory_mb": np.where(late, 1.2, 1.0),
    }
    (found,) = events(workload, series)
    assert (found["metric"], [member["metric"] for member in found["group"]]) == (reported, [])
