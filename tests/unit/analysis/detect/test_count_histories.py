"""Only what may have changed is measured, and that is all that a scan can find."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.detect import count_histories
from pipeline.analysis.detect.search import Found, SearchConfig, find_change_points
from pipeline.analysis.detect.short_term import Windows
from pipeline.model import Direction, MetricKind, SeriesMatrix
from tests.support.calibration import calibrated

SERIES, HISTORY, END = 300, 336, 372
WINDOWS = Windows(analysis=HISTORY, extended=348, end=END)
START = 1_700_000_000.0


def service(name: str) -> SeriesMatrix:
    rng = np.random.default_rng(7)
    totals = rng.poisson(20_000.0, END).astype(np.float64)
    level = np.repeat(10 ** rng.uniform(-5.5, -1, (SERIES, 1)), END, axis=1)
    for first, row in ((340, 3), (345, 4), (200, 5), (360, 6)):
        level[row::17, first:] *= rng.choice([0.7, 1.4, 3.0])
    if name == "wandering":
        level *= np.exp(np.cumsum(rng.normal(0.0, 0.01, level.shape), axis=1))
    if name == "dispersed":
        level *= rng.gamma(30.0, 1 / 30, level.shape)
    if name == "daily":
        level *= 1 + 0.3 * np.sin(2 * np.pi * np.arange(END) / 48)
    if name == "weekly":  # of one-hour windows: the history holds two weeks
        level[::5] *= np.where(np.arange(END) % 168 > 140, 1.5, 1.0)
    if name == "with gaps":
        totals[100:115] = totals[341:343] = 0.0
    if name == "few samples":
        totals = np.floor(totals / 500)
    if name == "young":
        totals[:250] = 0.0
    samples = rng.binomial(totals.astype(np.int64), np.minimum(level, 1.0)).astype(np.float64)
    names = tuple(f"s{row}" for row in range(SERIES))
    resolution_s = 3600.0 if name == "weekly" else 1800.0
    kinds: tuple[MetricKind, ...] = ("subroutine",)
    return SeriesMatrix(START, resolution_s, kinds * SERIES, names, samples, totals)


def search(matrix: SeriesMatrix, direction: Direction, *, prior: bool) -> Found:
    config = SearchConfig(("short_term",), direction=direction, absolute=1e-5, shared_prior=prior)
    return find_change_points(matrix, WINDOWS, config)


@pytest.mark.parametrize(
    ("direction", "prior"), calibrated(itertools.product(("up", "down"), (True, False)), ("up", True).__eq__)
)
@pytest.mark.parametrize(
    "name",
    ["steady", "wandering", "dispersed", "daily", "weekly", "with gaps", "few samples", "young"],
)
def test_what_is_not_measured_is_not_missed(
    name: str, direction: Direction, prior: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = service(name)
    found = search(matrix, direction, prior=prior)
    monkeypatch.setattr(count_histories, "noise_limits", lambda *_, **__: None)
    of_all = search(matrix, direction, prior=prior)
    assert found.unjudged == of_all.unjudged
    assert [one.metric for one in found.candidates] == [one.metric for one in of_all.candidates]
    for one, other in zip(found.candidates, of_all.candidates, strict=True):
        assert replace(one, p_value=0.0, statistic=0.0) == replace(other, p_value=0.0, statistic=0.0)
        assert (one.p_value, one.statistic) == pytest.approx((other.p_value, other.statistic), rel=1e-9)


def test_most_series_of_a_steady_service_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    learn = count_histories.CountHistories.learn_noise

    def counted(self: count_histories.CountHistories, *arguments: np.ndarray) -> None:
        measured.append(len(arguments[0]))
        learn(self, *arguments)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(count_histories.CountHistories, "learn_noise", counted)
    search(service("steady"), "up", prior=False)
    assert sum(measured) < SERIES / 2
