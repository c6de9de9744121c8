"""The detector of the KDD 2018 paper: CUSUM on series without noise and cycles (§2.1, 2.2, 2.4).

The CUSUM statistic S_t = Σ_{s≤t} (X_s - mean) / T is divided by the series' mean or median (§2.1). Its
minimum marks the most likely change point upward. The paper tunes thresholds on labelled examples; here they
follow from the null distribution: without a change, sqrt(T) S / σ runs like a Brownian bridge, and how low
that falls by chance in the part that is scanned is known. σ is the long-run standard deviation, so that
autocorrelated noise is not taken for a change; the scale divides both S and σ, so that it sets the unit, not
the outcome. The low-pass filter leaves the slowest changes, hence σ, as they are, and can only lower the
extremes: with it the rate of false candidates is below the nominal one.

Settled where the paper says nothing of Smidgen's windows: the data end where the extended window begins,
which is there to confirm; change points are looked for in the last ``scan_s``, or in the analysis window
where that is longer, lest some fall between two scans. The filter draws the minimum of a late change towards
earlier windows, so that, as in the paper's Figure 3, the statistic must clear its threshold within what is
scanned, not have its minimum of all there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.detect.change_interval import step_interval
from pipeline.analysis.detect.expected import values_and_weights
from pipeline.analysis.detect.matrix import select_rows
from pipeline.analysis.detect.seasonal.stl import bridge, find_periods, points_of
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.analysis.published.kdd2018.butterworth import low_pass
from pipeline.analysis.published.kdd2018.fourier import remove_cycles
from pipeline.analysis.published.kdd2018.setups import EFFICIENCY_INFRA, Kdd2018Config
from pipeline.analysis.statistics.long_run_noise.batch_means import long_run_variance
from pipeline.model import Candidate, Direction, FloatArray, IntArray, SeriesMatrix

CHUNK_ROWS = 256
"""Series worked on together: bounds the memory for their transforms."""

BLOCKS = 13
"""Longest blocks that the data must hold, for a variance to be estimated from them."""

_KNOWN = 1e9
"""Degrees of freedom of a variance that is not estimated."""


@dataclass(frozen=True, slots=True)
class Cusum:
    """The most likely change upward of each series."""

    index: IntArray  # (series,) first window of the new regime
    statistic: FloatArray  # (series,) -min S_t / scale: not negative
    p_value: FloatArray  # (series,) of the Brownian bridge


def find_kdd2018(
    matrix: SeriesMatrix,
    windows: WindowIndexes,
    *,
    direction: Direction = "up",
    config: Kdd2018Config | None = None,
) -> tuple[Candidate, ...]:
    """Find the series whose CUSUM marks a change for the worse.

    Args:
        matrix: All series of a service.
        windows: Where the analysis and the extended window begin; the extended one is not looked at.
        direction: Which way is worse.
        config: Settings; one of the three teams' or one's own.

    Returns:
        Candidates of kind "short_term" in the matrix's order. ``statistic`` is the scaled CUSUM; levels are
        means without the cycles, in the series' own unit. A window of which less than half has data finds
        nothing.
    """
    config = config or EFFICIENCY_INFRA
    levels, weights = values_and_weights(matrix)
    end = windows.extended
    levels = levels[:, :end]
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), matrix.samples.shape)[:, :end]
    scan = max(points_of(config.scan_s, matrix.resolution_s), end - windows.analysis)
    enough = (weights[:, -points_of(config.cusum_s, matrix.resolution_s) :] > 0).mean(axis=1) >= 0.5
    candidates: list[Candidate] = []
    for first in range(0, len(levels), CHUNK_ROWS):
        rows = first + np.flatnonzero(enough[first : first + CHUNK_ROWS])
        if len(rows):
            values = np.where(weights[rows] > 0, levels[rows], 0.0)
            part = select_rows(matrix, rows.tolist())
            candidates += _examine(part, values, weights[rows], scan, direction, config)
    return tuple(candidates)


def cusum(
    values: FloatArray,
    weights: FloatArray,
    variance: FloatArray,
    scale: FloatArray,
    *,
    first: int = 1,
    degrees_of_freedom: FloatArray | float = _KNOWN,
) -> Cusum:
    """Return the minimum of each series' scaled CUSUM, and its chance (KDD 2018 §2.1).

    Args:
        values: (series, windows); anything where the weight is 0.
        weights: (series, windows): S_t adds up weighted deviations from the weighted mean.
        variance: (series,) long-run variance of a window of weight 1.
        scale: (series,) by which the statistic is divided, positive.
        first: Smallest index the change point may have.
        degrees_of_freedom: (series,) degrees of freedom with which the variance was estimated.
    """
    tiny = np.finfo(np.float64).tiny
    total = np.maximum(weights.sum(axis=1), tiny)
    filled = np.where(weights > 0, values, 0.0)
    mean = (filled * weights).sum(axis=1) / total
    sums = np.cumsum(np.where(weights > 0, filled - mean[:, None], 0.0) * weights, axis=1) / total[:, None]
    lowest = max(first - 1, 0) + np.argmin(sums[:, max(first - 1, 0) :], axis=1)
    depth = np.maximum(-sums[np.arange(len(values)), lowest], 0.0)
    depth[depth <= 1e-12 * np.abs(mean)] = 0.0  # what rounding leaves of a constant series is no change
    reached = np.minimum(depth / np.sqrt(np.maximum(variance / total, tiny)), 1e3)
    searched = weights[:, max(first - 1, 0) :].sum(axis=1) / total
    return Cusum(
        (lowest + 1).astype(np.int64), depth / scale, _bridge_exceeds(reached, searched, degrees_of_freedom)
    )


def _bridge_exceeds(
    bound: FloatArray, share: FloatArray, degrees_of_freedom: FloatArray | float
) -> FloatArray:
    """Return the chance that a Brownian bridge exceeds a bound within a share of its length from one end.

    The bound is in units of an estimated standard deviation: exp(-2 x²), averaged over the chi-squared
    distribution of its square, is (1 + 4 x² / ν)^(-ν/2), and Student's distribution replaces the normal one.
    """
    share = np.clip(share, 1e-9, 1.0)
    spread = np.sqrt(np.maximum(share * (1 - share), 1e-18))
    whole = np.exp(-degrees_of_freedom / 2 * np.log1p(4 * bound**2 / degrees_of_freedom))
    inside = special.stdtr(degrees_of_freedom, (2 * share - 1) * bound / spread)
    return np.asarray(special.stdtr(degrees_of_freedom, -(bound / spread)) + whole * inside)


def _examine(
    matrix: SeriesMatrix,
    values: FloatArray,
    weights: FloatArray,
    scan: int,
    direction: Direction,
    config: Kdd2018Config,
) -> list[Candidate]:
    """Return the candidates of a matrix, from the levels of its series and their weights."""
    sign = 1.0 if direction == "up" else -1.0
    plain = _without_cycles(values, weights, matrix.resolution_s, config)
    series = sign * (_logarithm(plain, weights) if config.log else plain)
    length = points_of(config.cusum_s, matrix.resolution_s)
    # Blocks as long as the levels that are compared, if the data hold enough of them.
    longest = max(1, min(length // 4, series.shape[1] // BLOCKS))
    variance, degrees_of_freedom = long_run_variance(series, weights, longest=longest)
    span = slice(-length, None)
    series, plain, weights = series[:, span], plain[:, span], weights[:, span].copy()
    scale = _scales(series, weights, config)
    smooth = _smooth(series, weights, matrix.resolution_s, config)
    if config.truncate:
        down = cusum(-smooth, weights, variance, scale, degrees_of_freedom=degrees_of_freedom)
        fallen = np.flatnonzero(down.p_value < config.significance)
        weights[fallen] *= np.arange(weights.shape[1]) >= down.index[fallen, None]
        smooth[fallen] = _smooth(series[fallen], weights[fallen], matrix.resolution_s, config)
    recent = max(series.shape[1] - scan, 1)
    up = cusum(smooth, weights, variance, scale, first=recent, degrees_of_freedom=degrees_of_freedom)
    clears = (up.p_value < config.significance) & (up.index < series.shape[1])
    index = up.index
    if config.second_pass:
        second = cusum(
            series[:, recent:], weights[:, recent:], variance, scale, degrees_of_freedom=degrees_of_freedom
        )
        index = np.minimum(recent + second.index, series.shape[1] - 1)
        clears &= second.p_value < config.second_significance
    start = matrix.start + (values.shape[1] - series.shape[1]) * matrix.resolution_s
    return [
        Candidate(
            metric_kind=matrix.kinds[i],
            metric=matrix.names[i],
            kind="short_term",
            change_time=start + float(index[i]) * matrix.resolution_s,
            before=_level(plain[i, : index[i]], weights[i, : index[i]]),
            after=_level(plain[i, index[i] :], weights[i, index[i] :]),
            p_value=float(up.p_value[i]),
            statistic=float(up.statistic[i]),
            change_time_interval=matrix.moments(
                step_interval(series[i], weights[i], (variance[i], degrees_of_freedom[i]), int(index[i])),
                values.shape[1] - series.shape[1],
            ),
        )
        for i in np.flatnonzero(clears).tolist()
    ]


def _without_cycles(
    values: FloatArray, weights: FloatArray, resolution_s: float, config: Kdd2018Config
) -> FloatArray:
    """Return series without their significant cycles (§2.4.2)."""
    if not config.cycles:
        return values
    fit = slice(-points_of(config.fit_s, resolution_s), None)
    periods = find_periods(values[:, fit], weights[:, fit], resolution_s)
    cyclic = np.flatnonzero(periods.daily | periods.weekly)
    plain = values.copy()
    plain[cyclic, fit] = remove_cycles(
        values[cyclic, fit], weights[cyclic, fit], resolution_s, config=config.fourier
    )
    return plain


def _logarithm(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return logarithms; values that are not positive count as half of the smallest positive one."""
    positive = (values > 0) & (weights > 0)
    least = np.where(positive, values, np.inf).min(axis=1, initial=np.inf)
    least = np.where(np.isfinite(least), least, 1.0)
    return np.asarray(np.log(np.where(positive, values, least[:, None] / 2)))


def _scales(values: FloatArray, weights: FloatArray, config: Kdd2018Config) -> FloatArray:
    """Return the divisor of the statistic; 1 for a level of 0, and for logarithms, which are relative."""
    if config.log:
        return np.ones(len(values))
    holes = np.where(weights > 0, values, np.nan)
    level = np.nanmean(holes, axis=1) if config.scale == "mean" else np.nanmedian(holes, axis=1)
    size = np.abs(level)
    return np.where(size > 0, size, 1.0)


def _smooth(
    values: FloatArray, weights: FloatArray, resolution_s: float, config: Kdd2018Config
) -> FloatArray:
    if not config.low_pass or not len(values):
        return values.copy()
    bridged = np.stack([bridge(*pair) for pair in zip(values, weights > 0, strict=True)])
    return low_pass(bridged, cutoff=config.cutoff_s / resolution_s, order=config.order)


def _level(values: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()
    return float((values * weights).sum() / total) if total else 0.0
