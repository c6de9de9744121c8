"""Seasonality: a rise that returns every day or week is not a regression (FBDetect §5.4.4).

The season is taken off, and the medians of trend + residual before and after the change point are compared,
in units of the residual's standard deviation, in the analysis and in the extended window. What the paper
leaves open is settled so:

- The season is fitted to what precedes the change point and carried on beyond it. A decomposition of the
  whole series would take a part of a true step for a season of the last day.
- "Before" are the last three days before the change point: long enough that their median is less noisy than
  the one after, short enough to follow a drift, and whole, so that what is left of a daily cycle cancels.
- The threshold is a number of standard errors, since a regression far below one standard deviation of a
  single window is still one. The standard error is that of the very same statistic at all earlier places of
  the series, which accounts for autocorrelation and odd distributions; it is never below that of independent
  noise, nor of that statistic at the same time of earlier days, which shows how far one day's cycle differs
  from another's. It grows by what the season's own estimate adds.
- A season must account for the change: one that does not rise there, beyond its own error, is no reason to
  drop. A pulse shorter than half of what is compared moves the mean only, so that either may show it.
- A week that has been seen only once is too little for an autocorrelation. There the same rise, a week
  earlier and gone since, stands in for it. It is compared with one day before, lest the week's own shape
  enter the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import special

from pipeline.analysis.detect.seasonal.stl import (
    SeasonConfig,
    bridge,
    carry_on,
    decompose,
    find_periods,
    points_of,
)
from pipeline.analysis.filters.evidence import ChangeSpans, FilterCase, decide_by_rows
from pipeline.analysis.statistics.robust import MAD_TO_DEVIATION
from pipeline.model import Candidate, Decision, FloatArray
from pipeline.model.units import DAY_S, WEEK_S


@dataclass(frozen=True, slots=True)
class SeasonalityConfig:
    """Settings of the filter."""

    significance: float = 0.01  # FBDetect §5.4.2: a seasonal rise remains beyond it so often in each window
    accounted: float = 0.001  # a season-free series shows a season's rise so often, by chance
    before_days: int = 3
    returned: float = 0.5  # nearer to the level before than to the one after counts as gone
    season: SeasonConfig = field(default_factory=SeasonConfig)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A change point and the windows that are compared there."""

    change: int
    before: slice  # the days before the change point
    spans: tuple[slice, ...]  # after it: those of analysis and extended window that have data
    day: int  # in windows


@dataclass(frozen=True, slots=True)
class _Season:
    """A season, known beyond the change point as well."""

    values: FloatArray  # (windows,)
    share: float  # variance of its estimate, as a share of the series' own


_STEP = "seasonality"
_UNSEASONAL = Decision(_STEP, True, code="no_season")


def decide(candidates: Sequence[Candidate], case: FilterCase) -> list[Decision]:
    """Decide on each candidate by its series with the daily cycle in it."""
    shown = case.levels.levels + case.levels.cycles
    return decide_by_rows("seasonality", candidates, case, shown, judge_seasonality)


def judge_seasonality(
    values: FloatArray, weights: FloatArray, spans: ChangeSpans, config: SeasonalityConfig | None = None
) -> list[Decision]:
    """Drop candidates without a change after their season is removed.

    Args:
        values: (series, windows), one row a candidate; what has weight 0 may be NaN.
        weights: (windows,) or (series, windows).
        spans: Where they change, and how the scan's windows divide; periods are looked for in the history.
        config: Settings.

    Returns:
        One decision a row. ``statistic`` is the pseudo z-score of the window that speaks most for a
        regression, ``bound`` what it must exceed; both 0 where no season accounts for the change.
    """
    config = config or SeasonalityConfig()
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), values.shape)
    has_data = weights > 0
    moved = np.where(has_data, values if spans.rising else -values, np.nan)
    history, resolution_s = slice(None, spans.analysis_index), spans.resolution_s
    cycles = find_periods(moved[:, history], weights[:, history], resolution_s, config=config.season)
    day, week = points_of(DAY_S, resolution_s), points_of(WEEK_S, resolution_s)
    decisions = []
    for row, change in enumerate(spans.change_index.tolist()):
        edge = max(spans.extended_index, change)
        after = (slice(change, edge), slice(edge, values.shape[1]))
        observed = tuple(span for span in after if has_data[row, span].any())
        compared = _Compared(change, slice(max(change - day, 0), change), observed, day)
        if day < config.season.min_points or not observed or not has_data[row, compared.before].any():
            decisions.append(_UNSEASONAL)
            continue
        periods = [p for p, has in ((day, cycles.daily[row]), (week, cycles.weekly[row])) if has]
        decisions.append(_judge(moved[row], compared, periods, week, config))
    return decisions


def _judge(
    values: FloatArray, day_before: _Compared, periods: Sequence[int], week: int, config: SeasonalityConfig
) -> Decision:
    """Judge one series, turned so that a rise is the regression."""
    change, day = day_before.change, day_before.day
    season = _fit(values, change, periods, config)
    left = values - season.values
    history = bridge(left[:change], np.isfinite(left[:change]))
    # What a median's variance is, had the season been known: the fit took its share of the noise with it.
    variances = [_variance(history, s.stop - s.start, day) / (1 - season.share) for s in day_before.spans]
    days_before = replace(day_before, before=slice(max(change - config.before_days * day, 0), change))
    decision = _UNSEASONAL
    if _accounts(season, variances, days_before, config):
        cyclic = [
            max(variance, _variance_by_day(history, span, day_before) / (1 - season.share))
            for variance, span in zip(variances, day_before.spans, strict=True)
        ]
        decision = _compare(left, history, season.share, cyclic, days_before, config)
    if not decision.passed:
        return decision
    estimated = [variance * (1 + season.share) for variance in variances]
    weekly = _week_before(history, estimated, day_before, week, config)
    if weekly is None:
        return decision
    return _compare(left - weekly.values, history, weekly.share, estimated, day_before, config)


def _compare(
    left: FloatArray,
    history: FloatArray,
    share: float,
    variances: Sequence[float],
    compared: _Compared,
    config: SeasonalityConfig,
) -> Decision:
    """Compare medians before and after the change, without the season, in each of the windows."""
    bound = _deviations(config.significance)
    remaining, needed = max(
        (
            (_rise(left, span, compared), bound * _error(variance, span, compared) * np.sqrt(1 + share))
            for span, variance in zip(compared.spans, variances, strict=True)
        ),
        key=lambda pair: pair[0] - pair[1],
    )
    spread = _spread(history)
    more = bool(remaining > needed)
    code = "" if more else "seasonal"
    return Decision(_STEP, more, remaining / spread, float(needed) / spread, code)


def _fit(values: FloatArray, change: int, periods: Sequence[int], config: SeasonalityConfig) -> _Season:
    """Fit the season to what precedes the change point, and carry it on."""
    if not periods:
        return _Season(np.zeros(len(values)), 0.0)
    history = values[None, :change]
    parts = decompose(history, np.isfinite(history).astype(np.float64), periods, config=config.season)
    carried = carry_on(parts.seasonal, max(periods), len(values))[0]
    return _Season(carried, sum(period / change for period in periods))


def _week_before(
    history: FloatArray, variances: Sequence[float], compared: _Compared, week: int, config: SeasonalityConfig
) -> _Season | None:
    """Return the change at the same time of earlier weeks, if it was a rise like a season's.

    The rise must have been there, and must have gone since: a regression of a week ago is still there.
    """
    weeks = compared.before.start // week
    if weeks < 1:
        return None
    later = np.arange(compared.before.start, compared.spans[-1].stop)
    back = np.maximum(-(-(later - compared.change + 1) // week), 1)
    level = np.mean([history[later - week * (back + earlier)] for earlier in range(weeks)], axis=0)
    season = _Season(np.zeros(compared.spans[-1].stop), 1 / weeks)
    season.values[compared.before.start :] = level
    if not _accounts(season, variances, compared, config):
        return None
    rise = max(_rise(season.values, span, compared) for span in compared.spans)
    stayed = float(np.median(history[compared.before]) - np.median(season.values[compared.before]))
    return season if stayed < config.returned * rise else None


def _accounts(
    season: _Season, variances: Sequence[float], compared: _Compared, config: SeasonalityConfig
) -> bool:
    """Return whether a season rises at the change point by more than its own error."""
    bound = _deviations(config.accounted)
    return any(
        max(_rise(season.values, span, compared), _mean_rise(season.values, span, compared))
        > bound * _error(variance, span, compared) * np.sqrt(season.share)
        for span, variance in zip(compared.spans, variances, strict=True)
    )


def _rise(values: FloatArray, span: slice, compared: _Compared) -> float:
    """Return the median in a span less the one before the change point."""
    return float(np.nanmedian(values[span]) - np.nanmedian(values[compared.before]))


def _mean_rise(values: FloatArray, span: slice, compared: _Compared) -> float:
    return float(values[span].mean() - values[compared.before].mean())


def _variance(history: FloatArray, windows: int, day: int) -> float:
    """Return the variance of the difference between the median of some windows and that of the day before.

    It is measured at all places of the history, robustly, and is at least that of independent noise.
    """
    windows = max(1, min(windows, (len(history) - day) // 4))
    independent = np.pi / 2 * _spread(history) ** 2 * (1 / windows + 1 / day)
    if len(history) <= day + windows:
        return float(independent)
    step = max(1, windows // 3)
    after = np.median(sliding_window_view(history[day:], windows)[::step], axis=1)
    before = np.median(sliding_window_view(history[:-windows], day)[::step], axis=1)
    typical = MAD_TO_DEVIATION * float(np.median(np.abs(after - before)))
    return max(typical**2, float(independent))


def _variance_by_day(history: FloatArray, span: slice, compared: _Compared) -> float:
    """Return the mean square of the same difference at the same time of earlier days; 0 if too few."""
    shifts = np.arange(compared.day, compared.before.start + 1, compared.day)
    shifts = shifts[span.stop - shifts <= compared.change]
    if len(shifts) < 3:
        return 0.0
    rises = [
        np.median(history[span.start - shift : span.stop - shift])
        - np.median(history[compared.before.start - shift : compared.change - shift])
        for shift in shifts.tolist()
    ]
    return float(np.mean(np.square(rises)))


def _error(variance: float, span: slice, compared: _Compared) -> float:
    """Return the standard error of a comparison with more than the day before."""
    after = span.stop - span.start
    before = compared.before.stop - compared.before.start
    return float(np.sqrt(variance * (1 / after + 1 / before) / (1 / after + 1 / compared.day)))


def _spread(history: FloatArray) -> float:
    """Return a robust standard deviation of a series; never quite 0."""
    spread = MAD_TO_DEVIATION * float(np.median(np.abs(history - np.median(history))))
    return max(spread, 1e-12 * float(np.abs(history).max()), 1e-300)


def _deviations(probability: float) -> float:
    return -float(special.ndtri(probability))
