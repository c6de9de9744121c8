"""Set-up metrics of a scan: which step with a regression, and which of those explain it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.rootcause.setup_metrics import Regressed, SetupMetrics
from pipeline.model import Candidate, FloatArray, MetricKind, Scan, SeriesMatrix
from pipeline.model.units import DAY_S, HOUR_S
from tests.support.builders import build_candidate

START = 1_767_571_200.0
WINDOW_S = 600.0
WINDOWS = round(10.5 * DAY_S / WINDOW_S)
CHANGED = START + 10.1 * DAY_S
SCAN = Scan("shop", "w", START, START + 10 * DAY_S, START + 10.25 * DAY_S, START + 10.5 * DAY_S, 10)
RNG = np.random.default_rng(3)
TIMES = START + WINDOW_S * np.arange(WINDOWS)
DAILY = np.sin(2 * np.pi * TIMES / DAY_S)
WANDER = np.convolve(RNG.normal(0, 1, WINDOWS + 12), np.ones(13) / np.sqrt(13), "valid")
MISSES = (TIMES >= CHANGED) + 0.15 * WANDER
CANDIDATE = replace(
    build_candidate("shop.price", change_time=CHANGED),
    change_time_interval=(CHANGED - 600.0, CHANGED + 600.0),
)
SERIES: FloatArray = 0.1 + 0.02 * MISSES + RNG.normal(0, 0.003, WINDOWS)


def metrics(**values: FloatArray) -> SetupMetrics:
    names = tuple(sorted(values))
    rows = np.array([values[name] for name in names])
    kinds: tuple[MetricKind, ...] = tuple("service" for _ in names)
    matrix = SeriesMatrix(START, WINDOW_S, kinds, names, rows, np.ones(WINDOWS))
    return SetupMetrics(SCAN, matrix)


def explained(found: SetupMetrics, candidate: Candidate = CANDIDATE) -> list[str]:
    regressed = Regressed(candidate, SERIES, np.ones(WINDOWS))
    steps = found.stepping_with(candidate)
    return [one.metric for one in found.explain(regressed, steps, [CHANGED - HOUR_S, CHANGED])]


HITS = 0.95 - 0.1 * MISSES


GATE = np.asarray(TIMES >= CHANGED, dtype=np.float64)


@pytest.mark.parametrize(
    ("found", "names"),
    [
        pytest.param(metrics(hits=HITS), ["hits"], id="a hit ratio"),
        pytest.param(metrics(hits=HITS + 0.05 * DAILY), ["hits"], id="with a daily cycle"),
        pytest.param(metrics(queue=MISSES), ["queue"], id="a queue that fills"),
        pytest.param(metrics(hits=HITS, rest=0.15 * WANDER), ["hits"], id="another metric does not step"),
        pytest.param(metrics(servers=MISSES), [], id="the number of servers follows"),
        pytest.param(metrics(gate=GATE), [], id="a step as of the change"),
        pytest.param(metrics(hits=np.full(WINDOWS, np.nan)), [], id="no data"),
    ],
)
def test_which_metrics_explain(found: SetupMetrics, names: list[str]) -> None:
    assert explained(found) == names


def test_a_metric_that_changes_at_another_time_explains_nothing() -> None:
    later = CHANGED + 3 * HOUR_S
    other = replace(CANDIDATE, change_time=later, change_time_interval=(later - 600.0, later + 600.0))
    assert explained(metrics(hits=HITS), other) == []


def test_no_more_than_three_are_named() -> None:
    same = {f"hits{n}": HITS + RNG.normal(0, 1e-4, WINDOWS) for n in range(5)}
    assert len(explained(metrics(**same))) == 3
