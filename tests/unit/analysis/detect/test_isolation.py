"""Many series isolated at once are what each is by itself, whatever else changed in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.detect.matrix import slice_rows
from pipeline.analysis.detect.short_term import ScanConfig, WindowIndexes, find_candidates
from pipeline.model import Candidate, MetricKind, SeriesMatrix, SharedVariancePrior

SERIES = 12
NOISE = SharedVariancePrior(np.array([-9.0, -1.0]), np.array([0.0, 0.2]), 20.0)
GEOMETRIES = (
    (WindowIndexes(440, 464, 500), 1800.0),  # a week and more, so that last week is asked too
    (WindowIndexes(240, 264, 300), 600.0),
)


def changing_matrix(seed: int, windows: int, resolution_s: float, kind: MetricKind) -> SeriesMatrix:
    """Series with up to four steps and spikes each, most of them near the end, and some windows missing."""
    rng = np.random.default_rng(seed)
    level = np.exp(rng.uniform(-7, -1.5, (SERIES, 1))) * np.ones((1, windows))
    for row in range(SERIES):
        for _ in range(rng.integers(0, 5)):
            start = int(windows * (1 - 0.5 * rng.random() ** 2)) - 1
            end = windows if rng.random() < 0.5 else start + int(rng.integers(1, 40))
            level[row, start:end] *= rng.uniform(0.5, 2.0)
    totals = np.where(rng.random(windows) < 0.1 * rng.integers(0, 3), 0.0, 20_000.0)
    samples = rng.binomial(totals.astype(np.int64), np.minimum(level, 1.0)).astype(np.float64)
    if kind == "service":
        samples = np.divide(samples, totals, out=np.full(samples.shape, np.nan), where=totals > 0)
        samples[rng.random(samples.shape) < 0.02] = np.nan  # gaps of single series, too
    names = tuple(f"s{row}" for row in range(SERIES))
    return SeriesMatrix(
        0.0,
        resolution_s,
        (kind,) * SERIES,
        names,
        samples,
        totals,
        noise=NOISE if kind != "service" else None,
    )


def numbers(candidates: tuple[Candidate, ...]) -> np.ndarray:
    return np.array([(c.change_time, c.before, c.after, c.statistic, c.p_value) for c in candidates])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(("subroutine", "service")), up=st.booleans())
@pytest.mark.parametrize(("windows", "resolution_s"), GEOMETRIES, ids=["weekly", "short"])
def test_series_are_isolated_as_if_alone(
    windows: WindowIndexes, resolution_s: float, seed: int, kind: MetricKind, up: bool
) -> None:
    matrix = changing_matrix(seed, windows.end, resolution_s, kind)
    config = ScanConfig(significance=0.1)  # so that uncertain changes are compared, too
    asked = {"direction": "up" if up else "down", "config": config}
    together = find_candidates(matrix, windows, **asked)  # type: ignore[arg-type]
    alone = tuple(
        candidate
        for row in range(SERIES)
        for candidate in find_candidates(slice_rows(matrix, row, row + 1), windows, **asked)  # type: ignore[arg-type]
    )
    assert [c.metric for c in together] == [c.metric for c in alone]
    np.testing.assert_allclose(numbers(together), numbers(alone), rtol=1e-8, atol=1e-200)
