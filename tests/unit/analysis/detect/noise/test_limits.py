from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.noise.limits import noise_limits
from pipeline.analysis.detect.noise.near import NearCountNoise
from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig, SeriesNoise
from pipeline.model import BoolArray, FloatArray

SERIES, HISTORY = 200, 960
LONGEST, APART = 48, 100


def draw(name: str) -> FloatArray:
    rng = np.random.default_rng(5)
    level = 10 ** rng.uniform(-2, 3, (SERIES, 1))
    if name == "dispersed":
        level = level * rng.gamma(4.0, 0.25, (SERIES, HISTORY))
    if name == "wandering":
        level = level * np.exp(np.cumsum(rng.normal(0.0, 0.02, (SERIES, HISTORY)), axis=1))
    if name == "stepping":
        level = level * np.where(np.arange(HISTORY) % 300 < 150, 1.0, 2.0)
    counts = rng.poisson(np.broadcast_to(level, (SERIES, HISTORY))).astype(np.float64)
    if name == "spiked":
        counts[:, 400:404] += 50 * level
    return counts


ALL = np.ones(HISTORY, dtype=np.bool_)


@pytest.mark.parametrize("known", [ALL, np.arange(HISTORY) % 20 != 3], ids=["all", "some"])
@pytest.mark.parametrize("name", ["steady", "dispersed", "wandering", "stepping", "spiked"])
def test_what_is_measured_lies_within_the_limits(name: str, known: BoolArray) -> None:
    counts = draw(name) * known
    level = counts.mean(axis=1, keepdims=True)
    exposure = np.where(level > 0, level, 1.0) * known
    noise, every = SeriesNoise(counts, exposure, counts=True), np.arange(SERIES)
    floor = noise.floor(every, longest=LONGEST, apart=APART)
    variance, degrees_of_freedom = noise.unit_variance(every, longest=LONGEST, apart=APART)
    limits = noise_limits(known, longest=LONGEST, apart=APART)
    assert limits is not None
    assert (floor <= variance * (1 + 1e-9)).all()
    assert np.median(floor / variance) > 0.5  # it is worth something
    assert (variance <= limits.most_variance(counts.sum(axis=1), counts, exposure)).all()
    assert (degrees_of_freedom >= limits.least_degrees).all()
    assert (degrees_of_freedom <= limits.most_degrees).all()


def test_a_pattern_that_leaves_few_pairs_has_no_limits() -> None:
    assert noise_limits(np.arange(HISTORY) % 12 < 5, longest=48, apart=102) is None
    assert noise_limits(np.zeros(0, dtype=np.bool_), longest=LONGEST, apart=APART) is None


@pytest.mark.parametrize("name", ["steady", "dispersed", "wandering", "stepping", "spiked"])
def test_the_noise_of_neighbours_is_no_more_than_its_bound(name: str) -> None:
    counts, every = draw(name), np.arange(SERIES)
    totals = np.full(HISTORY, 40_000.0)
    noise = NearCountNoise(counts, totals, np.zeros(SERIES), NoiseConfig())
    assert (noise.exact(every) <= noise.most(every)).all()
