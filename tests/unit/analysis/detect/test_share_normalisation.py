from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.detect.share_normalisation import ShareNormalisationConfig, share_factor
from pipeline.analysis.detect.short_term import WindowIndexes, find_candidates
from pipeline.model import FloatArray, MetricKind, SeriesMatrix

WINDOWS = WindowIndexes(
    analysis=480, extended=528, end=540
)  # ten days, a day, six hours of half-hour windows
CHANGE = 500
POSITION = np.arange(WINDOWS.end)
TOTAL = 100_000.0


def fleet(
    shares: FloatArray,
    *,
    raised: int | None = None,
    by: float = 0.0,
    totals: FloatArray | None = None,
    kind: MetricKind = "subroutine",
) -> SeriesMatrix:
    """Counts of subroutines that share nothing; one takes ``by`` of the old whole more from ``CHANGE`` on.

    The rest of the samples is in no series.
    """
    totals = np.full(WINDOWS.end, TOTAL) if totals is None else totals
    level = np.repeat(shares[:, None], WINDOWS.end, axis=1)
    if raised is not None:
        level[raised, CHANGE:] += by
        level[:, CHANGE:] /= 1 + by
    counts = np.random.default_rng(5).poisson(level * totals).astype(np.float64)
    names = tuple(f"s{row}" for row in range(len(shares)))
    return SeriesMatrix(1_700_000_000.0, 1800.0, (kind,) * len(shares), names, counts, totals)


def many(series: int = 250) -> FloatArray:
    sizes = np.random.default_rng(6).pareto(1.2, series) + 0.1
    shares: FloatArray = 0.8 * np.minimum(sizes / sizes.sum(), 0.05)
    shares[0] = 0.05
    return shares


def with_factor(matrix: SeriesMatrix) -> SeriesMatrix:
    return replace(matrix, share_factor=share_factor(matrix, history=WINDOWS.analysis))


def found(matrix: SeriesMatrix, direction: str = "up") -> set[str]:
    normalised = with_factor(matrix)
    return {c.metric for c in find_candidates(normalised, WINDOWS, direction=direction)}  # type: ignore[arg-type]


def factor(matrix: SeriesMatrix, config: ShareNormalisationConfig | None = None) -> FloatArray:
    moved = share_factor(matrix, history=WINDOWS.analysis, config=config)
    assert moved is not None
    return moved


@pytest.mark.parametrize("by", [0.04, 0.3, -0.04], ids=["regression", "large regression", "improvement"])
def test_the_factor_is_what_the_whole_did_to_all_others(by: float) -> None:
    moved = factor(fleet(many(), raised=0, by=by))
    assert moved.shape == POSITION.shape
    assert moved[CHANGE:].mean() / moved[:CHANGE].mean() == pytest.approx(1 / (1 + by), rel=0.003)


@pytest.mark.parametrize(
    ("by", "direction", "expected"),
    [
        pytest.param(0.04, "down", set(), id="a regression elsewhere lowers nobody"),
        pytest.param(0.04, "up", {"s0"}, id="and is found itself"),
        pytest.param(-0.04, "up", set(), id="an improvement elsewhere raises nobody"),
        pytest.param(-0.04, "down", {"s0"}, id="and is found itself where a drop is asked for"),
    ],
)
def test_what_changed_elsewhere_makes_no_candidates(by: float, direction: str, expected: set[str]) -> None:
    matrix = fleet(many(), raised=0, by=by)
    others = found(matrix, direction) - {"s0"}
    assert len(others) <= 5  # of 249; one and a half are nominal
    assert found(matrix, direction) & {"s0"} == expected


def test_without_the_factor_it_would() -> None:
    matrix = fleet(many(), raised=0, by=-0.04)
    assert len(find_candidates(matrix, WINDOWS)) > 50


def test_a_series_is_measured_without_what_others_did_to_it() -> None:
    matrix = with_factor(fleet(many(), raised=0, by=0.04))
    (candidate,) = [c for c in find_candidates(matrix, WINDOWS) if c.metric == "s0"]
    assert candidate.before == pytest.approx(0.05, rel=0.01)
    assert candidate.after == pytest.approx(0.09, rel=0.01)  # of the whole as it was before


@pytest.mark.parametrize("shares", [many(99), many()[:1]], ids=["99 series", "one"])
def test_of_few_series_nothing_is_common(shares: FloatArray) -> None:
    matrix = fleet(shares)
    assert share_factor(matrix, history=WINDOWS.analysis) is None


@pytest.mark.parametrize("kind", ["endpoint", "metadata", "service"])
def test_other_kinds_of_series_take_no_part(kind: MetricKind) -> None:
    matrix = fleet(many(), kind=kind)
    assert share_factor(matrix, history=WINDOWS.analysis) is None


def test_endpoints_beside_subroutines_have_no_say() -> None:
    subroutines, endpoints = fleet(many(), raised=0, by=0.04), fleet(np.full(400, 0.02), kind="endpoint")
    both = replace(
        subroutines,
        kinds=subroutines.kinds + endpoints.kinds,
        names=subroutines.names + endpoints.names,
        samples=np.concatenate([subroutines.samples, endpoints.samples]),
    )
    np.testing.assert_array_equal(factor(both), factor(subroutines))


def test_what_is_too_rare_or_holds_most_samples_has_no_say() -> None:
    shares = np.concatenate([many(150), np.full(100, 1e-5), np.full(5, 0.95)])
    np.testing.assert_array_equal(factor(fleet(shares)), factor(fleet(shares[:150])))
    matrix = fleet(np.full(300, 2e-6))
    assert share_factor(matrix, history=WINDOWS.analysis) is None


def test_only_the_series_with_most_samples_are_looked_at() -> None:
    matrix = fleet(many(250))
    largest = np.argsort(-matrix.samples[:, : WINDOWS.analysis].sum(axis=1))[:120]
    fewer = replace(
        matrix,
        kinds=("subroutine",) * 120,
        names=matrix.names[:120],
        samples=matrix.samples[largest],
    )
    np.testing.assert_array_equal(factor(matrix, ShareNormalisationConfig(most_series=120)), factor(fewer))


def test_windows_without_samples_have_nothing_in_common() -> None:
    totals = np.full(WINDOWS.end, TOTAL)
    totals[100:110] = totals[510:514] = 0.0
    moved = factor(fleet(many(), totals=totals))
    assert moved[totals == 0].tolist() == [1.0] * 14
    assert moved[totals > 0].mean() == pytest.approx(1.0, abs=0.005)


def test_fewer_samples_in_the_analysis_window_are_no_change() -> None:
    totals = np.where(WINDOWS.analysis <= POSITION, 0.2, 1.0) * TOTAL
    moved = factor(fleet(np.random.default_rng(1).uniform(6e-5, 1e-4, 250), totals=totals))
    assert moved[WINDOWS.analysis :].mean() == pytest.approx(moved[: WINDOWS.analysis].mean(), rel=0.02)


def test_a_window_of_hardly_any_samples_is_not_taken_for_no_data() -> None:
    totals = np.full(WINDOWS.end, TOTAL)
    totals[::48] = 100.0
    assert factor(fleet(many(), totals=totals)).min() > 0.0


def test_the_order_of_series_does_not_matter() -> None:
    matrix = fleet(many(), raised=0, by=0.04)
    order = np.random.default_rng(2).permutation(len(matrix.names))
    mixed = replace(matrix, names=tuple(matrix.names[row] for row in order), samples=matrix.samples[order])
    np.testing.assert_allclose(factor(mixed), factor(matrix), rtol=1e-9)


def test_the_number_of_samples_does_not_matter() -> None:
    # Enough of them for blocks of one window.
    matrix = fleet(many(), raised=0, by=0.04)
    matrix = replace(matrix, samples=100 * matrix.samples, totals=100 * matrix.totals)
    tenfold = replace(matrix, samples=10 * matrix.samples, totals=10 * matrix.totals)
    np.testing.assert_allclose(factor(tenfold), factor(matrix), rtol=1e-9)


@pytest.mark.parametrize("renamed", [0.1, 0.45, 0.55])
def test_names_that_vanish_do_not_raise_the_others(renamed: float) -> None:
    matrix = fleet(many(), raised=0, by=0.04)
    gone = np.random.default_rng(7).random(len(matrix.names)) < renamed
    gone[0] = False
    samples = matrix.samples.copy()
    samples[gone, CHANGE:] = 0
    moved = factor(replace(matrix, samples=samples))
    assert moved[CHANGE:].mean() / moved[:CHANGE].mean() == pytest.approx(1 / 1.04, rel=0.005)


def test_where_nearly_all_names_vanish_nothing_is_common() -> None:
    matrix = fleet(many())
    samples = matrix.samples.copy()
    samples[20:, CHANGE:] = 0
    assert factor(replace(matrix, samples=samples))[CHANGE + 36 :].tolist() == [1.0] * (
        WINDOWS.end - CHANGE - 36
    )
