from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.detect.short_term import ScanConfig, WindowIndexes, baseline_start, find_candidates
from pipeline.model import BoolArray, Candidate, Direction, FloatArray, MetricKind, SeriesMatrix

WINDOWS = WindowIndexes(
    analysis=480, extended=504, end=520
)  # ten days, half a day, eight hours of half-hour windows
EXTRA = 30  # windows after the scan's end
ROWS = 6
DIRECTIONS: tuple[Direction, ...] = ("up", "down")
SERVICE: MetricKind = "service"
SUBROUTINE: MetricKind = "subroutine"


def _steps(rng: np.random.Generator, largest: float) -> FloatArray:
    """Steps of any size, most of them in the analysis window: (series, windows)."""
    position = np.arange(WINDOWS.end + EXTRA)
    at = rng.integers(WINDOWS.analysis - 20, WINDOWS.end, (ROWS, 1))
    return np.where(position >= at, rng.uniform(-largest, largest, (ROWS, 1)), 0.0)


def _gaps(rng: np.random.Generator, share: float) -> BoolArray:
    gone: BoolArray = rng.random(WINDOWS.end + EXTRA) < share
    return gone


@st.composite
def metrics(draw: st.DrawFn) -> SeriesMatrix:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cycle = np.sin(2 * np.pi * np.arange(WINDOWS.end + EXTRA) / 48) * draw(st.sampled_from([0.0, 2.0]))
    values = rng.standard_normal((ROWS, WINDOWS.end + EXTRA)) + cycle + _steps(rng, 3.0)
    values[:, _gaps(rng, draw(st.sampled_from([0.0, 0.1])))] = np.nan
    names = tuple(f"m{row}" for row in range(ROWS))
    return SeriesMatrix(1.7e9, 1800.0, (SERVICE,) * ROWS, names, values, np.ones(values.shape[1]))


@st.composite
def counts(draw: st.DrawFn) -> SeriesMatrix:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    totals = np.rint(rng.uniform(5_000, 20_000, WINDOWS.end + EXTRA))
    totals[_gaps(rng, draw(st.sampled_from([0.0, 0.1])))] = 0.0
    level = np.exp(rng.uniform(np.log(1e-5), np.log(0.3), (ROWS, 1))) * np.exp(_steps(rng, 0.7))
    samples = rng.binomial(totals.astype(np.int64), level).astype(np.float64)
    names = tuple(f"s{row}" for row in range(ROWS))
    return SeriesMatrix(1.7e9, 1800.0, (SUBROUTINE,) * ROWS, names, samples, totals)


MATRICES = st.one_of(metrics(), counts())


def find(matrix: SeriesMatrix, direction: Direction = "up") -> tuple[Candidate, ...]:
    return find_candidates(matrix, WINDOWS, direction=direction)


def reported(candidates: tuple[Candidate, ...]) -> list[tuple[str, float]]:
    return [(candidate.metric, candidate.change_time) for candidate in candidates]


def assert_similar(one: tuple[Candidate, ...], other: tuple[Candidate, ...]) -> None:
    """The same candidates, with numbers that are the same but for rounding."""
    assert reported(one) == reported(other)
    for name in ("before", "after", "p_value", "statistic"):
        actual, expected = (np.array([getattr(c, name) for c in found]) for found in (one, other))
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(metrics(), st.sampled_from([0.125, 8.0, 1024.0]), st.sampled_from([-64.0, 0.0, 16.0]))
def test_shift_and_scale_change_nothing_but_the_levels(
    matrix: SeriesMatrix, scale: float, shift: float
) -> None:
    plain = find(matrix)
    moved = find(replace(matrix, samples=scale * (matrix.samples + shift)))
    assert_similar(
        moved,
        tuple(replace(c, before=scale * (c.before + shift), after=scale * (c.after + shift)) for c in plain),
    )


@settings(deadline=None, max_examples=40)
@given(metrics())
def test_a_drop_mirrors_a_rise(matrix: SeriesMatrix) -> None:
    mirrored = find(replace(matrix, samples=-matrix.samples), "down")
    assert_similar(mirrored, tuple(replace(c, before=-c.before, after=-c.after) for c in find(matrix)))


@settings(deadline=None, max_examples=40)
@given(MATRICES, st.permutations(range(ROWS)))
def test_the_order_of_series_changes_nothing(matrix: SeriesMatrix, order: list[int]) -> None:
    names = tuple(matrix.names[row] for row in order)
    mixed = find(replace(matrix, names=names, samples=matrix.samples[order]))
    by_name = {candidate.metric: candidate for candidate in find(matrix)}
    assert list(mixed) == [by_name[name] for name in names if name in by_name]


@settings(deadline=None, max_examples=25)
@given(MATRICES)
def test_a_batch_equals_one_by_one(matrix: SeriesMatrix) -> None:
    alone = [
        candidate
        for row in range(ROWS)
        for candidate in find(
            replace(
                matrix,
                kinds=matrix.kinds[row : row + 1],
                names=matrix.names[row : row + 1],
                samples=matrix.samples[row : row + 1],
            )
        )
    ]
    assert_similar(tuple(alone), find(matrix))


def test_chunks_change_nothing() -> None:
    rng = np.random.default_rng(9)
    values = rng.standard_normal((600, WINDOWS.end)) + np.repeat(
        _steps(rng, 3.0)[:, : WINDOWS.end], 100, axis=0
    )
    names = tuple(map(str, range(600)))
    matrix = SeriesMatrix(1.7e9, 1800.0, ("service",) * 600, names, values, np.ones(WINDOWS.end))
    found = find(matrix)
    last = replace(matrix, kinds=("service",) * 150, names=names[450:], samples=values[450:])
    assert_similar(tuple(c for c in found if int(c.metric) >= 450), find(last))
    assert any(int(c.metric) < 256 for c in found)
    assert any(int(c.metric) >= 450 for c in found)


@settings(deadline=None, max_examples=40)
@given(MATRICES, st.integers(0, EXTRA), st.sampled_from(DIRECTIONS))
def test_what_comes_after_a_scan_has_no_say_in_it(
    matrix: SeriesMatrix, later: int, direction: Direction
) -> None:
    end = WINDOWS.end + later
    seen = replace(matrix, samples=matrix.samples[:, :end], totals=matrix.totals[:end])
    assert find(seen, direction) == find(matrix, direction)


@settings(deadline=None, max_examples=40)
@given(MATRICES, st.sampled_from(DIRECTIONS))
def test_candidates_lie_before_the_extended_window_and_move_the_worse_way(
    matrix: SeriesMatrix, direction: Direction
) -> None:
    for candidate in find(matrix, direction):
        window = (candidate.change_time - matrix.start) / matrix.resolution_s
        assert baseline_start(WINDOWS, matrix.resolution_s, ScanConfig()) < window < WINDOWS.extended
        assert candidate.p_value < 0.01
        assert candidate.statistic > 0
        assert (candidate.delta > 0) == (direction == "up")


@settings(deadline=None, max_examples=25)
@given(counts(), st.floats(0.02, 0.9))
def test_shares_of_half_the_samples_are_the_same_shares(matrix: SeriesMatrix, part: float) -> None:
    # Thinned out, counts are less certain and as large.
    rng = np.random.default_rng(1)
    thinned = replace(
        matrix,
        samples=rng.binomial(matrix.samples.astype(np.int64), part).astype(np.float64),
        totals=np.rint(matrix.totals * part),
    )
    whole = {candidate.metric: candidate for candidate in find(matrix)}
    for candidate in find(thinned):
        sure = whole.get(candidate.metric)
        if sure is not None and min(sure.statistic, candidate.statistic) > 100:
            assert abs(np.log(candidate.after / sure.after)) < 0.5


@settings(deadline=None, max_examples=25)
@given(MATRICES)
def test_series_without_data_beside_others_change_nothing(matrix: SeriesMatrix) -> None:
    nothing = np.nan if matrix.kinds[0] == "service" else 0.0
    more = replace(
        matrix,
        kinds=(*matrix.kinds, matrix.kinds[0]),
        names=(*matrix.names, "nothing"),
        samples=np.vstack([matrix.samples, np.full(matrix.samples.shape[1], nothing)]),
    )
    assert_similar(find(more), find(matrix))
