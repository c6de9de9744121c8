from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.detect.long_term import find_long_term
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.model import Candidate, FloatArray, MetricKind, SeriesMatrix

WINDOWS = WindowIndexes(10 * 24, 17 * 24, 18 * 24)
ROWS = 4


def series(seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    t = np.arange(WINDOWS.end)
    begins = rng.integers(200, 380, (ROWS, 1))
    lengths = rng.integers(1, 120, (ROWS, 1))
    rises = np.clip((t - begins) / lengths, 0.0, 1.0) * rng.choice([0.0, 0.5, 2.0], (ROWS, 1))
    return np.asarray(10.0 + rng.normal(0.0, 0.4, (ROWS, WINDOWS.end)) + rises)


def build_matrix(values: FloatArray) -> SeriesMatrix:
    kinds: tuple[MetricKind, ...] = tuple("service" for _ in values)
    names = tuple(str(row) for row in range(len(values)))
    return SeriesMatrix(0.0, 3600.0, kinds, names, values, np.ones(values.shape[1]))


def find(values: FloatArray, absolute: float = 0.3) -> tuple[Candidate, ...]:
    return find_long_term(build_matrix(values), WINDOWS, absolute=absolute)


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=10)
@given(SEEDS, st.sampled_from([1e-6, 0.5, 1000.0]), st.sampled_from([0.0, -40.0, 1e3]))
def test_unit_and_offset_change_nothing_but_the_levels(seed: int, scale: float, shift: float) -> None:
    values = series(seed)
    plain, moved = find(values), find((values + shift) * scale, absolute=0.3 * scale)
    assert [c.metric for c in moved] == [c.metric for c in plain]
    assert [c.change_time for c in moved] == [c.change_time for c in plain]
    np.testing.assert_allclose([c.delta for c in moved], [c.delta * scale for c in plain], rtol=1e-6)
    np.testing.assert_allclose([c.statistic for c in moved], [c.statistic for c in plain], rtol=1e-6)


@settings(max_examples=10)
@given(SEEDS, st.permutations(range(ROWS)))
def test_the_order_of_series_changes_nothing(seed: int, order: list[int]) -> None:
    values = series(seed)
    plain = {c.metric: (c.change_time, c.before, c.after, c.p_value) for c in find(values)}
    moved = {
        str(order[int(c.metric)]): (c.change_time, c.before, c.after, c.p_value) for c in find(values[order])
    }
    assert moved.keys() == plain.keys()
    for name, row in moved.items():
        np.testing.assert_allclose(row, plain[name], rtol=1e-9)


@settings(max_examples=10)
@given(SEEDS)
def test_a_batch_equals_one_by_one(seed: int) -> None:
    values = series(seed)
    together = [(c.change_time, c.before, c.after) for c in find(values)]
    alone = [(c.change_time, c.before, c.after) for row in values for c in find(row[None, :])]
    np.testing.assert_allclose(together, alone, rtol=1e-9)


@settings(max_examples=10)
@given(SEEDS)
def test_what_rises_does_not_fall(seed: int) -> None:
    values = series(seed)
    down = {c.metric for c in find_long_term(build_matrix(values), WINDOWS, direction="down", absolute=0.3)}
    assert not down & {c.metric for c in find(values)}
