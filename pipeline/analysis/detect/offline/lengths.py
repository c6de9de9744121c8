"""Description length of a segment: its residuals as autoregressive noise, and its parameters.

For u, v over the points [s, e) of a segment whose noise is a stationary AR(1) process with coefficient φ, the
product that decorrelates the noise (the exact Gaussian likelihood's, Brockwell and Davis 1991, §8.7) is

    Q(u, v) = Σ[s, e) u v − φ Σ(s, e) (u_t v_{t−1} + u_{t−1} v_t) + φ² Σ(s, e−1) u v,

a polynomial in φ of three sums over ranges. So running sums give the generalised least squares of every
segment under every φ at once. Segments are taken as independent, as in Davis, Lee and Rodriguez-Yam
(JASA 2006): the noise starts anew at each change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Running sums of a series' products, from which any segment's fit follows."""

    whole: FloatArray  # (pairs, points + 1): products of 1, t, t² and y at a point
    lagged: FloatArray  # (pairs, points): of neighbours, both ways


@dataclass(frozen=True, slots=True)
class Fits:
    """Squares that remain after a level, a line and a parabola, all (correlations, segments)."""

    level: FloatArray
    line: FloatArray
    curve: FloatArray


@dataclass(frozen=True, slots=True)
class Lengths:
    """Descriptions of segments, in nats: all (correlations, segments)."""

    nats: FloatArray
    squares: FloatArray  # that remain
    parameters: IntArray  # of the shape: 1 of a level, 2 of a line, 3 of a parabola


_CURVE = 3
"""A parabola's parameters beyond a level, as they are charged: one more than there are, since a parabola
imitates a weak step. It raised F1 for steps of 1.5 to 3 standard deviations from 0.79 to 0.86 in the zoo."""

_LEAST_BEND = 1e-12
"""Least square of time in a segment, per point, that a parabola is fitted to: below it rounding shows."""

_PAIRS = ((0, 1), (1, 1), (0, 2), (1, 2), (2, 2), (0, 3), (1, 3), (2, 3), (3, 3))


def running_sums(values: FloatArray, time: FloatArray) -> RunningSums:
    """Sum products of 1, time, its square and values up to each point.

    Args:
        values: (points,) of size about 1.
        time: (points,) ascending, within a half around 0.
    """
    points = len(values)
    rows = np.stack([np.ones(points), time, time**2, values])
    whole = np.zeros((len(_PAIRS), points + 1))
    lagged = np.zeros((len(_PAIRS), points))
    for row, (u, v) in enumerate(_PAIRS):
        np.cumsum(rows[u] * rows[v], out=whole[row, 1:])
        np.cumsum(rows[u, 1:] * rows[v, :-1] + rows[u, :-1] * rows[v, 1:], out=lagged[row, 1:])
    return RunningSums(whole, lagged)


def fit_segments(sums: RunningSums, first: IntArray, end: IntArray, correlations: FloatArray) -> Fits:
    """Fit a level, a line and a parabola to each segment under each correlation.

    Args:
        sums: Of the series.
        first: (segments,) first points.
        end: (segments,) points behind the last one; a segment has at least three.
        correlations: (correlations,) coefficients φ in [0, 1).
    """
    parts = np.stack(
        [
            sums.whole[:, end] - sums.whole[:, first],
            sums.lagged[:, first] - sums.lagged[:, end - 1],
            sums.whole[:, end - 1] - sums.whole[:, first + 1],
        ]
    )
    powers = np.stack([np.ones_like(correlations), correlations, correlations**2], axis=1)
    products = np.tensordot(powers, parts, axes=1)  # correlation, pair, segment
    level_time, time, level_square, time_square, square = np.moveaxis(products[:, :5], 1, 0)
    level_value, time_value, square_value, value = np.moveaxis(products[:, 5:], 1, 0)
    rest = (1 - correlations)[:, None]
    level = rest * (rest * (end - first) + 2 * correlations[:, None])
    # Gram and Schmidt: each shape is left with what the simpler ones do not explain.
    tiny = np.finfo(float).tiny
    ratio = level_time / level
    squares = np.maximum(value - level_value**2 / level, 0)
    slope = time_value - ratio * level_value
    spread = np.maximum(time - ratio * level_time, tiny)
    line = np.maximum(squares - slope**2 / spread, 0)
    ratio = level_square / level
    along = (time_square - ratio * level_time) / spread
    bend = square_value - ratio * level_value - along * slope
    bent = square - ratio * level_square - along**2 * spread
    bends = bent > _LEAST_BEND * (end - first)
    curve = np.where(bends, np.maximum(line - bend**2 / np.where(bends, bent, 1.0), 0), line)
    return Fits(squares, line, curve)


def describe(
    fits: Fits, points: IntArray, correlations: FloatArray, variances: FloatArray, *, flat: bool
) -> Lengths:
    """Return each segment's description length, by the shape that makes it shortest.

    A parameter estimated from n points takes ½ log n nats (Rissanen; Davis et al. 2006, eq. 9).

    Args:
        fits: Of the segments.
        points: (segments,) lengths.
        correlations: (correlations,) coefficients.
        variances: (correlations,) of the innovations, common to all segments: own ones make short segments,
            in which few points lie close together by chance, attractive.
        flat: Whether every shape is a level.
    """
    parameter = 0.5 * np.log(points)
    half = 0.5 / variances[:, None]
    nats, squares = half * fits.level, fits.level
    parameters = np.ones(nats.shape, dtype=np.int64)
    for count, charged, left in () if flat else ((2, 1, fits.line), (3, _CURVE, fits.curve)):
        slope_part = half * left + charged * parameter
        shorter = slope_part < nats
        nats = np.where(shorter, slope_part, nats)
        squares = np.where(shorter, left, squares)
        parameters[shorter] = count
    nats += parameter + points * 0.5 * np.log(2 * np.pi * variances)[:, None]
    nats -= 0.5 * np.log1p(-(correlations**2))[:, None]
    return Lengths(nats, squares, parameters)
