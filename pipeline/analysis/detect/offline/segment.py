"""Every change point of one series, offline: the segmentation with the shortest description.

The series is a sequence of segments, each a level, a line or a parabola, plus a cycle that runs through all
of it, plus AR(1) noise, plus transients. Which of these explains what is seen (a few steps in white noise, a
slope, a wave, or one level with slowly wandering noise) is one choice, made by minimum description length
(Rissanen; Davis, Lee and Rodriguez-Yam, JASA 2006):

1. Transients, shorter than any segment, are replaced by the running median (`segmentation.transients`).
2. A season is offered for removal (`segmentation.season`).
3. With and without it, the shortest description is found over correlations of the noise and partitions
   (`segmentation.lengths`, `segmentation.search`), and the shortest of all counts. Changes that noise with a
   longer memory than AR(1) explains are left out.
4. For the reader each change is tested: the F-test of one shape through both segments, the search included.

The settings are fixed: offline a person looks at the result, and a tuned one cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipeline.analysis.detect.offline.lengths import describe, fit_segments, running_sums
from pipeline.analysis.detect.offline.scales import Scale, scales
from pipeline.analysis.detect.offline.search import SearchBounds, Segmentation, explain
from pipeline.analysis.detect.offline.season import find_seasons
from pipeline.analysis.detect.offline.transients import far_runs, replace_transients
from pipeline.model import BoolArray, FloatArray, IntArray

_PARAMETERS = 5
"""Parameters of a description with one change: two levels, position, spread and correlation of noise."""


@dataclass(frozen=True, slots=True)
class SegmentConfig:
    """Settings of the segmentation; the command line does not offer them."""

    min_points: int = 4  # of a segment: fewer may be outliers
    shortest: float = 0.5  # times the root of the number of points: what is shorter is a transient
    # Times log(points), of changes: one for a position, one as changes are rare, less what k! orders of the
    # same positions save; a quarter stands for it, from the second change on. Few points take more, as in the
    # corrected Akaike criterion (Hurvich and Tsai 1989): they fit their own noise.
    price: float = 1.75
    first: float = 0.25  # that the first takes beyond it
    slopes: float = 2.0  # times log(points), once, of segments that are no levels: as rare as changes
    far: float = (
        10.0  # deviations: what is shorter but as large as the shortest level with so many may be one
    )
    short: float = 2.0  # times log(points), once, of such levels: as rare as changes
    logarithm: float = 0.5  # times log(points), of the logarithmic scale
    outlier: float = 3.0  # standard deviations around the running median
    correlations: tuple[float, ...] = (0.0, 0.15, 0.3, 0.45, 0.6, 0.72, 0.82, 0.9, 0.95, 0.98)  # of the noise
    finest: float = 0.001  # of the range: smaller noise counts as none
    grid: int = 48  # positions tried in a long series, and half as many where levels differ most

    def shortest_level(self, points: int) -> int:
        """Return the length of the shortest level of a series; a shorter one must stand out far."""
        return max(self.min_points, int(np.ceil(self.shortest * np.sqrt(points))))


@dataclass(frozen=True, slots=True)
class LevelShift:
    """One change: ``index`` is the first point of the new regime, levels are means up to the next one.

    Transients are left out of the means, and a season that repeats. On a slope that bends, the levels show
    little, and the index is less exact than that of a step.
    """

    index: int
    before: float
    after: float
    p_value: float


def segment(values: FloatArray, *, config: SegmentConfig | None = None) -> tuple[LevelShift, ...]:
    """Find every change of a series, up or down, in order.

    Args:
        values: (points,) finite, or NaN where one is missing; equally spaced or nearly so. What is missing
            has no weight, but its time: slopes and seasons go on through it, and it counts in ``index``.
        config: Settings.
    """
    config = config or SegmentConfig()
    positions = np.flatnonzero(~np.isnan(values))
    time, total, values = positions / len(values) - 0.5, len(values), values[positions]
    points = len(values)
    shortest = config.shortest_level(points)
    if points < 2 * shortest:
        return ()
    described = [
        _shortest(scale, scale.apply(values), positions, total, shortest, config)
        for scale in scales(values, time, longest=shortest - 1, bound=config.outlier)
    ]
    if not described:
        return ()
    best = min(described, key=lambda description: description.nats)
    bounds = best.explanation.bounds
    levels = [best.scale.level(best.clean[a:b]) for a, b in zip(bounds, bounds[1:], strict=False)]
    p_values = _p_values(best.clean, time, best.explanation, best.shortest)
    return tuple(
        LevelShift(
            int(positions[_first_lasting(values, best.odd, index, before, after)]), before, after, p_value
        )
        for index, before, after, p_value in zip(bounds[1:-1], levels, levels[1:], p_values, strict=False)
    )


def _first_lasting(values: FloatArray, odd: BoolArray, index: int, before: float, after: float) -> int:
    """Return the first point of the new regime: a transient between two regimes belongs to neither.

    A single odd point may as well be noise, and so may several that are nearer to the new level than half of
    the change.
    """
    lasting = np.flatnonzero(~odd[index:])
    length = int(lasting[0]) if len(lasting) else 0
    strays = np.abs(values[index : index + length] - after) > abs(after - before) / 2
    return index + length if length > 1 and strays.all() else index


@dataclass(frozen=True, slots=True)
class _Described:
    """A series on one scale, without transients and season, and its shortest description."""

    nats: float
    scale: Scale
    clean: FloatArray  # (points,)
    odd: BoolArray  # (points,) transients
    shortest: int  # points of a segment
    explanation: Segmentation


def _shortest(
    scale: Scale, values: FloatArray, positions: IntArray, total: int, shortest: int, config: SegmentConfig
) -> _Described:
    """Return the shortest description on one scale, with a season or without.

    Args:
        scale: The scale of the values.
        values: (points,) the points that are not missing, scaled.
        positions: (points,) their indexes in the series.
        total: Number of points including missing ones, which are interpolated to find seasons.
        shortest: Fewest points of a segment.
        config: Settings.
    """
    points = len(values)
    time = positions / total - 0.5
    whole = np.interp(np.arange(total), positions, values)
    seasons = [
        (season.component[positions], season.nats) for season in find_seasons(whole, bound=config.outlier)
    ]
    few = points / (points - _PARAMETERS - 1)
    described = []
    for component, nats in [(np.zeros(points), 0.0), *seasons]:
        left = values - component
        for length in _lengths(left, time, shortest, config):
            clean, odd = replace_transients(left, time, longest=length - 1, bound=config.outlier)
            rules = SearchBounds(
                shortest=length,
                price=config.price * np.log(points) * few,
                first=config.first * np.log(points) * few,
                slopes=config.slopes * np.log(points),
                least_variance=_least_variance(values, clean, config),
                correlations=config.correlations,
                grid=config.grid,
                peaks=config.grid // 2,
            )
            explanation = explain(clean, time, rules)
            if length < shortest and min(np.diff(explanation.bounds)) >= shortest:
                continue  # no segment is as short as this run of odd points
            length_nats = nats + explanation.nats + scale.nats(clean + component)
            length_nats += 1.5 * odd * np.log(points)  # position and size of each odd point
            length_nats += config.short * np.log(points) * (length < shortest)
            length_nats += config.logarithm * np.log(points) * scale.logarithmic
            described.append(_Described(length_nats, scale, clean, clean != left, length, explanation))
    return min(described, key=lambda description: description.nats)


def _lengths(values: FloatArray, time: FloatArray, shortest: int, config: SegmentConfig) -> list[int]:
    """Return lengths of the shortest segment to try: the usual one, and that of a run of odd points.

    The farther a run stands out, the shorter it may be. The description decides whether it is a level: two
    changes must be shorter to describe than its odd points one by one.
    """
    least = shortest * config.far
    runs = far_runs(values, time, longest=shortest - 1, bound=config.outlier, least=least)
    short = [length for length in runs if config.min_points <= length < shortest]
    return [shortest, min(short)] if short else [shortest]


def _least_variance(values: FloatArray, clean: FloatArray, config: SegmentConfig) -> float:
    """Return the least variance of noise: that of invisible differences, and that of rounding.

    Rounded values may repeat throughout a segment; then it is as if one point strayed by the rounding.
    """
    seen = config.finest * float(np.ptp(clean))
    steps = np.diff(np.sort(values))
    steps = steps[steps > max(seen, 1e-6)]
    rounding = float(steps.min()) ** 2 / 12 / len(values) if len(steps) else 0.0
    return max(seen**2, rounding, 1e-12)


def _p_values(values: FloatArray, time: FloatArray, explanation: Segmentation, shortest: int) -> list[float]:
    """Return the p-value of each change: that of the residuals if one shape fits both segments.

    The search for the position is accounted for (Šidák).
    """
    bounds = np.array(explanation.bounds)
    sums = running_sums(values, time)
    correlation, variance = np.array([explanation.correlation]), np.array([explanation.variance])

    def shapes(first: IntArray, end: IntArray) -> tuple[FloatArray, IntArray]:
        fits = fit_segments(sums, first, end, correlation)
        lengths = describe(fits, end - first, correlation, variance, flat=explanation.flat)
        return lengths.squares[0], lengths.parameters[0]

    squares, parameters = shapes(bounds[:-1], bounds[1:])
    one_squares, one_parameters = shapes(bounds[:-2], bounds[2:])
    more = np.maximum(parameters[:-1] + parameters[1:] - one_parameters, 1)
    explained = np.maximum(one_squares - squares[:-1] - squares[1:], 0)
    single = stats.f.sf(
        explained / more / explanation.variance, more, max(len(values) - int(parameters.sum()), 1)
    )
    splits = np.maximum(1, bounds[2:] - bounds[:-2] - 2 * shortest + 1)
    with np.errstate(divide="ignore"):
        return [float(p) for p in -np.expm1(splits * np.log1p(-single))]
