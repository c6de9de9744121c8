"""Long-term regressions: slow rises that no single step shows (FBDetect §5.4.5).

Season, regression, change point, in the paper's order. STL costs milliseconds a series, so that only those
get there which pass a test of the same kind on daily medians. What the paper leaves open is settled so:

- "Start" and "end" of a window are a day: the trend cannot follow faster, and a whole day holds no daily
  cycle. Without an extended window the last day stands in for it: one look at one day confirms nothing.
- The paper's two long workloads spend more than a third of what they read on the analysis window. A workload
  whose own is shorter cannot see a rise over days within it; so the analysis begins here at the last third of
  everything at the latest.
- Weekends differ from weekdays. So the baseline is also at least the level on the same weekday before the
  analysis window, where the data reach that far back.
- The difference must be significant. Its variance is that of means as long as those compared, estimated from
  neighbouring blocks (batch means; a slow rise hardly shows in their differences). Taking the larger baseline
  and the smaller current value only makes the test more careful. The medians of the same days must differ
  as significantly: there is no went-away detector on this path, and a transient of less than half a day
  moves a day's median as little as the paper wants a long-term detector to be moved.
- Gradual or not is decided, and the change point placed, on what the season leaves over, since the trend
  turns every step into a rise of a day or more: see ``ramp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from pipeline.analysis.detect.expected import values_and_weights
from pipeline.analysis.detect.matrix import has_history, slice_rows
from pipeline.analysis.detect.ramp import Rise, best_split, find_rise
from pipeline.analysis.detect.seasonal.stl import (
    SeasonConfig,
    decompose,
    find_periods,
    fold,
    moving_mean,
    points_of,
)
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.analysis.statistics.blocks import block_means
from pipeline.analysis.statistics.long_run_noise.batch_means import long_run_variance
from pipeline.model import BoolArray, Candidate, Direction, FloatArray, IntArray, SeriesMatrix
from pipeline.model.units import DAY_S, WEEK_S

CHUNK_ROWS = 2048
"""Series screened together: bounds the memory for copies of them."""


@dataclass(frozen=True, slots=True)
class LongTermConfig:
    """Settings of the long-term detector."""

    significance: float = 0.01  # FBDetect §5.4.2, of the difference between baseline and current value
    screen_significance: float = 0.05  # what the trend has to reach, with room for what STL changes
    screen_threshold: float = 0.5  # of the workload's threshold, for the same reason
    min_analysis: float = 1 / 3  # of all windows: FBDetect Table 3, adserving-long and ct-supply-long
    min_known: float = 0.5  # of a compared day, and of the historical window, must have data
    season: SeasonConfig = field(default_factory=SeasonConfig)


@dataclass(frozen=True, slots=True)
class _Days:
    """The spans whose means are compared."""

    baseline: tuple[slice, ...]
    current: tuple[slice, ...]
    length: int  # of each, in windows


@dataclass(frozen=True, slots=True)
class _Levels:
    """Levels on the days compared: (series, days) each; NaN where a day has too little data.

    The first start is the historical window's, which a younger series may lack. All others must be there: one
    that is younger than a week does not distinguish a weekend from a regression.
    """

    starts: FloatArray
    ends: FloatArray

    @property
    def baseline(self) -> FloatArray:
        """The larger of the levels at the starts (FBDetect §5.4.5)."""
        return np.asarray(np.fmax(self.starts[:, 0], self.starts[:, 1:].max(axis=1)))

    @property
    def current(self) -> FloatArray:
        """The smaller of the levels at the ends."""
        return np.asarray(self.ends.min(axis=1))


@dataclass(frozen=True, slots=True)
class _Threshold:
    """Size that a rise must have."""

    absolute: float
    relative: float

    def reached(self, levels: _Levels, share: float) -> BoolArray:
        """Return True for series that rose by a given share of the threshold."""
        bound = np.maximum(self.absolute, self.relative * np.abs(levels.baseline))
        rise = levels.current - levels.baseline
        return np.asarray((rise > 0) & (rise >= share * bound))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Settings by which rises are searched for."""

    days: _Days
    least: _Threshold
    sign: float  # 1 where a rise is worse, -1 where a fall is
    config: LongTermConfig


def find_long_term(
    matrix: SeriesMatrix,
    windows: WindowIndexes,
    *,
    direction: Direction = "up",
    absolute: float | None = None,
    relative: float | None = None,
    config: LongTermConfig | None = None,
) -> tuple[Candidate, ...]:
    """Find the series whose trend changed for the worse by at least a threshold.

    Args:
        matrix: All series of a service.
        windows: Where the analysis and the extended window begin.
        direction: Which way is worse.
        absolute: Least change of the level, in the series' unit; None for no such bound.
        relative: Least change as a share of the baseline; None for no such bound.
        config: Settings.

    Returns:
        Candidates of kind "long_term" in the matrix's order. ``before`` is the baseline and ``after`` the
        current value, ``statistic`` their difference in standard errors, ``p_value`` that of Student's test.
        None where the windows are too short to hold two days (of four eighths of the data) apart.
    """
    config = config or LongTermConfig()
    days = _days(windows, matrix.resolution_s, config)
    if days is None or not matrix.names:
        return ()
    sign = 1.0 if direction == "up" else -1.0
    comparison = _Comparison(days, _Threshold(absolute or 0.0, relative or 0.0), sign, config)
    candidates: list[Candidate] = []
    for first in range(0, len(matrix.names), CHUNK_ROWS):  # levels of all rows would take a matrix more
        part = slice_rows(matrix, first, first + CHUNK_ROWS)
        levels, weights = values_and_weights(part)
        weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), levels.shape)
        enough = has_history(weights[:, : windows.analysis] > 0, config.min_known)
        rows = np.flatnonzero(enough)
        values = np.where(weights[rows] > 0, sign * levels[rows], 0.0)
        likely = _screen(values, weights[rows], comparison)
        candidates += _examine(part, rows[likely], values[likely], weights[rows[likely]], comparison)
    return tuple(candidates)


def _examine(
    matrix: SeriesMatrix, rows: IntArray, values: FloatArray, weights: FloatArray, comparison: _Comparison
) -> list[Candidate]:
    """Return the candidates among rows that passed the screen, values turned so that a rise is worse."""
    if not len(rows):
        return []
    days, sign, config = comparison.days, comparison.sign, comparison.config
    seasonal, trend = _season_and_trend(values, weights, matrix.resolution_s, days, config)
    left = values - seasonal
    noise = long_run_variance(left, weights, longest=days.length)
    variance, degrees_of_freedom = _of_days(*noise, weights, days)
    mean = _Levels(_means(trend, days.baseline), _means(trend, days.current))
    median = _Levels(
        _medians(left, weights, days.baseline, config), _medians(left, weights, days.current, config)
    )
    statistic = np.minimum(_statistic(mean, variance), _statistic(median, np.pi / 2 * variance))
    p_value = special.stdtr(degrees_of_freedom, -statistic)
    chosen = np.flatnonzero((p_value < config.significance) & comparison.least.reached(mean, 1.0))
    rises = [
        _locate(values[i], left[i], weights[i], days, (float(noise[0][i]), float(noise[1][i])))
        for i in chosen.tolist()
    ]
    return [
        Candidate(
            metric_kind=matrix.kinds[rows[i]],
            metric=matrix.names[rows[i]],
            kind="long_term",
            change_time=matrix.start + rise.start * matrix.resolution_s,
            before=sign * float(mean.baseline[i]),
            after=sign * float(mean.current[i]),
            p_value=float(p_value[i]),
            statistic=float(statistic[i]),
            change_time_interval=matrix.moments(rise.interval),
        )
        for i, rise in zip(chosen.tolist(), rises, strict=True)
    ]


def _locate(
    values: FloatArray, left: FloatArray, weights: FloatArray, days: _Days, noise: tuple[float, float]
) -> Rise:
    """Return where a series begins to rise; its season is removed only if that makes the rise clearer.

    The season of what is new is part of its rise, carried back to when there was nothing.
    """
    seen = min((values, left), key=lambda shown: _unexplained(shown, weights))
    return find_rise(seen, weights, shortest=days.length // 2, noise=noise)


def _unexplained(values: FloatArray, weights: FloatArray) -> float:
    """Return the squared error of one step."""
    split = best_split(values, weights)
    error = 0.0
    for side in (slice(0, split), slice(split, len(values))):
        weight = float(weights[side].sum())
        if weight > 0:
            mean = float(values[side] @ weights[side]) / weight
            error += float(weights[side] @ (values[side] - mean) ** 2)
    return error


def _days(windows: WindowIndexes, resolution_s: float, config: LongTermConfig) -> _Days | None:
    """Return the spans to compare; None if the windows are too short for separate spans."""
    analysis = min(windows.analysis, windows.end - math.ceil(config.min_analysis * windows.end))
    length = min(points_of(DAY_S, resolution_s), (windows.end - analysis) // 2, windows.analysis)
    if length < 2 or analysis + 2 * length > windows.extended:
        return None
    starts = {0, analysis}
    week = points_of(WEEK_S, resolution_s)
    same_weekday = windows.end - length - week * -(-(windows.end - analysis) // week)
    if length == points_of(DAY_S, resolution_s) and same_weekday >= 0:
        starts.add(same_weekday)
    ends = (
        {windows.extended, windows.end}
        if windows.extended < windows.end
        else {windows.end - length, windows.end}
    )
    return _Days(
        tuple(slice(start, start + length) for start in sorted(starts)),
        tuple(slice(end - length, end) for end in sorted(ends)),
        length,
    )


def _screen(values: FloatArray, weights: FloatArray, comparison: _Comparison) -> IntArray:
    """Return the rows whose daily medians rose enough that the trend may have risen by the threshold."""
    days, config = comparison.days, comparison.config
    median = _Levels(
        _medians(values, weights, days.baseline, config), _medians(values, weights, days.current, config)
    )
    rows = np.flatnonzero(comparison.least.reached(median, config.screen_threshold))
    values, weights = values[rows], weights[rows]
    # A day's phases in the mean are near enough to its season for a measure of noise.
    variance, degrees_of_freedom = _mean_variance(values - fold(values, weights, days.length), weights, days)
    rose = _Levels(median.starts[rows], median.ends[rows])
    likely = special.stdtr(degrees_of_freedom, -_statistic(rose, variance)) < config.screen_significance
    return np.asarray(rows[likely])


def _medians(
    values: FloatArray, weights: FloatArray, spans: tuple[slice, ...], config: LongTermConfig
) -> FloatArray:
    """Return each day's median of three-hour means (rare things have samples in most): (series, days)."""
    columns = []
    for span in spans:
        width = max(1, (span.stop - span.start) // 8)
        means, weight = block_means(values[:, span], weights[:, span], width)
        column = np.median(means, axis=1)
        gaps = np.flatnonzero((weight == 0).any(axis=1))
        enough = gaps[(weights[gaps, span] > 0).mean(axis=1) >= config.min_known]
        column[gaps] = np.nan
        column[enough] = np.nanmedian(np.where(weight[enough] > 0, means[enough], np.nan), axis=1)
        columns.append(column)
    return np.stack(columns, axis=1)


def _season_and_trend(
    values: FloatArray, weights: FloatArray, resolution_s: float, days: _Days, config: LongTermConfig
) -> tuple[FloatArray, FloatArray]:
    """Return the season and the trend; a moving mean is the trend where the data are too short for STL."""
    day, week = points_of(DAY_S, resolution_s), points_of(WEEK_S, resolution_s)
    if day < config.season.min_points or values.shape[1] < config.season.min_cycles * day:
        return np.zeros(values.shape), moving_mean(values, weights, days.length)
    # Nothing on this path looks closer than an hour, and STL's cost grows with the windows.
    width = max(1, day // 24)
    means, weight = block_means(values, weights, width)
    weekly = find_periods(means, weight, resolution_s * width, config=config.season).weekly
    seasonal, trend = np.zeros(means.shape), np.zeros(means.shape)
    for rows, periods in ((~weekly, [day // width]), (weekly, [day // width, week // width])):
        if rows.any():
            parts = decompose(means[rows], weight[rows], periods, config=config.season)
            seasonal[rows], trend[rows] = parts.seasonal, parts.trend
    return _spread(seasonal, width, values.shape[1]), _spread(trend, width, values.shape[1])


def _spread(means: FloatArray, width: int, windows: int) -> FloatArray:
    """Return each block's value for all of its windows; the oldest windows may have no block of their own."""
    repeated = np.repeat(means, width, axis=1)
    return np.pad(repeated, ((0, 0), (windows - repeated.shape[1], 0)), mode="edge")


def _means(trend: FloatArray, spans: tuple[slice, ...]) -> FloatArray:
    return np.stack([trend[:, span].mean(axis=1) for span in spans], axis=1)


def _statistic(levels: _Levels, variance: FloatArray) -> FloatArray:
    """Return the excess of the smaller current value over the larger baseline, in standard errors."""
    size = np.maximum(np.abs(levels.baseline), np.abs(levels.current))
    # What rounding leaves of a constant series is no noise to measure a difference with.
    floor = np.maximum(1e-12 * np.nan_to_num(size), np.finfo(np.float64).tiny)
    rise = np.nan_to_num(levels.current - levels.baseline)
    return np.where(np.abs(rise) > floor, rise / np.maximum(np.sqrt(2 * variance), floor), 0.0)


def _mean_variance(values: FloatArray, weights: FloatArray, days: _Days) -> tuple[FloatArray, FloatArray]:
    """Return the variance of a day's mean, and the degrees of freedom of that estimate."""
    return _of_days(*long_run_variance(values, weights, longest=days.length), weights, days)


def _of_days(
    variance: FloatArray, degrees_of_freedom: FloatArray, weights: FloatArray, days: _Days
) -> tuple[FloatArray, FloatArray]:
    """Convert the variance of a mean of weight 1, and its degrees of freedom, to means of a day."""
    counts = np.maximum((weights > 0).sum(axis=1), 1)
    weight = days.length * np.maximum(weights.sum(axis=1) / counts, np.finfo(np.float64).tiny)
    return variance / weight, degrees_of_freedom
