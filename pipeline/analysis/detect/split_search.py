"""The best split of each series in a range of its windows, for many series and ranges at once."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pipeline.analysis.detect.best_split import BestSplit, no_split
from pipeline.analysis.detect.change_interval import Noise, NoiseAtScale, split_intervals, split_profile
from pipeline.analysis.detect.change_point import (
    Family,
    SideSums,
    both_sides,
    log_odds_span,
    p_values,
    ratio,
    root_bounds,
    signed_roots,
    split_sums,
)
from pipeline.analysis.detect.noise.shared_prior import moderated
from pipeline.analysis.detect.normalised import Normalised, residuals, some_rows
from pipeline.analysis.detect.scan_config import ScanConfig, WindowIndexes, baseline_start
from pipeline.analysis.detect.seasonal.weekly import SAME_DAYS, WeekSpan, beyond_last_week
from pipeline.analysis.statistics.long_run_noise.batch_means import unit_variance
from pipeline.model import BoolArray, FloatArray, IntArray, SharedVariancePrior
from pipeline.model.units import DAY_S

_ROUNDING = 1e-6
"""Relative rounding error of sums in different orders."""

Index = int | IntArray
"""An index of a window: one for all series, or (series,) one each."""


@dataclass(frozen=True, slots=True)
class SplitSpan:
    """The windows [low, high) that are compared, and the splits [first, last] that are searched."""

    low: Index
    high: Index
    first: Index
    last: Index

    @classmethod
    def whole(cls, low: Index, high: Index) -> SplitSpan:
        """Return the span of windows with all splits in it."""
        return cls(low, high, low + 1, high - 1)

    def columns(self, series: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return low, high and those of the splits that lie between, (series,) each."""
        low, high, first, last = (
            np.broadcast_to(np.asarray(index, dtype=np.int64), (series,))
            for index in (self.low, self.high, self.first, self.last)
        )
        return low, high, np.maximum(first, low + 1), np.minimum(last, high - 1)


@dataclass(frozen=True, slots=True, eq=False)
class LargestChanges:
    """Largest changes of series around the analysis window, and in it: (series,) each."""

    roots: tuple[FloatArray, ...]  # by a noise of variance 1; none is larger
    spans: tuple[FloatArray, ...]  # of the searches, see p_values
    splits: tuple[IntArray, ...]  # that are searched

    def may_count(
        self, rows: IntArray, variance: FloatArray, degrees_of_freedom: FloatArray, significance: float
    ) -> BoolArray:
        """Return True for rows that may be significant at a given noise: (rows,)."""
        result, deviation = np.zeros(len(rows), dtype=np.bool_), np.sqrt(variance)
        for root, span, splits in zip(self.roots, self.spans, self.splits, strict=True):
            chances = p_values(root[rows] / deviation, degrees_of_freedom, span[rows], splits[rows])
            result |= chances < significance
        return result


class SplitSearch:
    """Looks for the best split of series in ranges of their windows."""

    def __init__(
        self,
        series: Normalised,
        noise: SharedVariancePrior | None,
        resolution_s: float,
        windows: WindowIndexes,
        config: ScanConfig,
    ) -> None:
        self.series = self._week_ago = series
        self.windows = windows
        self.config = config
        self.start = baseline_start(windows, resolution_s, config)
        self._noise = noise
        self.family: Family = series.family if config.count_likelihood else "values"
        self._day = DAY_S / resolution_s
        # A history of less than a week knows no weekends, and is not asked about them.
        self._weekly = (
            config.week_before and round(self._day) > 1 and round(7 * self._day) <= windows.analysis
        )

    def of_series(self, series: Normalised) -> SplitSearch:
        """Return the same search in other series of the service."""
        search = copy(self)
        search.series = search._week_ago = series
        return search

    def hiding(self, rows: IntArray, hidden: BoolArray) -> SplitSearch:
        """Return a search of some rows that treats hidden windows as no data.

        Args:
            rows: (rows,) of this search.
            hidden: (rows, windows) none of which lies in the analysis window or later.
        """
        shown = np.where(hidden, 0.0, 1.0)
        search = self.of_series(some_rows(self.series, rows, shown))
        start, end = self.start, self.windows.analysis
        last_week = start - round(7 * self._day)
        if end - start > SAME_DAYS * self._day and last_week >= 0:
            # What such a baseline leaves out, last week's leaves out of the same hours.
            earlier = np.ones(shown.shape)
            earlier[:, last_week : last_week + end - start] = shown[:, start:end]
            search._week_ago = some_rows(self.series, rows, earlier)
        return search

    def best(self, rows: IntArray | None, span: SplitSpan, *, weekly: bool = True) -> BestSplit:
        """Return the best split of each row's span; of all rows if None.

        ``weekly`` is for changes to be reported: where one lies is the plain likelihood's to say.
        """
        series = self.series
        asked = slice(None) if rows is None else rows  # a view is no copy
        observed, exposure = series.observed[asked], series.exposure[asked]
        low, high, first, last = span.columns(len(observed))
        some = first <= last
        if not some.any():
            return no_split(len(observed))
        begin, end = int(low[some].min()), int(high[some].max())
        splits = np.arange(first[some].min(), last[some].max() + 1)
        observed, exposure = _within(observed, exposure, (begin, end), low, high)
        deviation = np.sqrt(series.variance[asked])[:, None]
        at = {"first": int(splits[0]) - begin, "last": int(splits[-1]) - begin}
        plain = split_sums(observed, exposure, **at)
        searched = (splits >= first[:, None]) & (splits <= last[:, None])
        allowed = searched & _with_data(exposure, self.config.min_points, **at)
        sums = plain
        if self._weekly and weekly:
            roots, sums = beyond_last_week(
                plain,
                (series.observed[asked], series.exposure[asked]),
                (self._week_ago.observed[asked], self._week_ago.exposure[asked]),
                deviation,
                self.family,
                span=WeekSpan(low, high, first, last, splits, self._day),
                doubt=self.config.week_doubt,
            )
        else:
            roots = signed_roots(plain, self.family) / deviation
        roots = np.where(allowed, roots, 0.0)
        prior = _gap_prior(exposure, **at)
        likelihood = np.where(allowed, roots**2 + prior, np.where(searched, 0.0, -1.0))
        best = np.arange(len(roots)), likelihood.argmax(axis=1)
        width, count = log_odds_span(plain, allowed), allowed.sum(axis=1)
        p_value = p_values(roots[best], series.degrees_of_freedom[asked], width, count)
        levels = _levels(plain, sums, best, series.centre[asked], series.scale[asked])
        gap = np.where(allowed, prior, 0.0)[best]
        split = BestSplit(best[1] + splits[0], roots[best], width, count, p_value, *levels, gap)
        return split if some.all() else split.put(np.flatnonzero(~some), no_split(int((~some).sum())))

    def largest_changes(self, sign: float) -> LargestChanges:
        """Return upper bounds of the changes that ``best`` would find, for a fraction of its cost.

        The changes are those in the analysis window and around it. Last week is not looked at: it can only
        lower a change, so the bounds hold.
        """
        series, config, windows = self.series, self.config, self.windows
        first = max(windows.analysis - self.start, 1)
        last = min(windows.extended, windows.end) - self.start - 1
        if first > last:
            nothing, none = np.zeros(len(series.scale)), np.zeros(len(series.scale), dtype=np.int64)
            return LargestChanges((nothing, nothing), (nothing, nothing), (none, none))
        compared = slice(self.start, windows.end)
        observed, exposure = series.observed[:, compared], series.exposure[:, compared]
        at = {"first": 1, "last": observed.shape[1] - 1}
        sums, allowed = split_sums(observed, exposure, **at), _with_data(exposure, config.min_points, **at)
        bounds, inside = root_bounds(sums, self.family) * allowed, slice(first - 1, last)
        within = (sign * bounds[:, inside]).max(axis=1, initial=0.0)
        bounds[:, inside] = 0.0
        around = np.maximum(bounds.max(axis=1), -bounds.min(axis=1))
        parts = slice(None), inside
        return LargestChanges(
            (around * (1 + _ROUNDING), within * (1 + _ROUNDING)),
            tuple(log_odds_span(sums.of_splits(part), allowed[:, part]) for part in parts),
            tuple(np.broadcast_to(allowed[:, part].sum(axis=1), around.shape) for part in parts),
        )

    def are_level(self, rows: IntArray, ones: tuple[Index, Index], choice: tuple[Index, Index]) -> BoolArray:
        """Say whether two ranges [low, high) of each row are at one level, as far as the noise shows."""
        series, columns = self.series, np.arange(self.series.observed.shape[1])
        sides = []
        for low, high in (ones, choice):
            within = (columns >= np.reshape(low, (-1, 1))) & (columns < np.reshape(high, (-1, 1)))
            sides += [(part[rows] * within).sum(axis=1) for part in (series.observed, series.exposure)]
        sums = SideSums(*sides)
        has_data = (sums.left_exposure > 0) & (sums.right_exposure > 0)
        roots = signed_roots(sums, self.family)
        return np.asarray(has_data & (roots**2 / series.variance[rows] <= self.config.placement))

    def with_noise_around(self, splits: BestSplit, low: IntArray, high: IntArray) -> BestSplit:
        """Judge the splits of all rows by the noise of [low, high) too, if that is more than the history's.

        A subroutine that is new, or has risen, is noisier now than its history was.
        """
        series = self.series
        variance = series.variance.copy()
        degrees_of_freedom = series.degrees_of_freedom.copy()
        searched = np.flatnonzero(splits.split >= 0)
        for columns, group in _ranges(low[searched], high[searched]):
            rows = searched[group]
            around, own_degrees = self._noise_of(rows, splits.rows(rows), columns)
            noisier = around > variance[rows]
            variance[rows[noisier]] = around[noisier]
            degrees_of_freedom[rows[noisier]] = np.minimum(own_degrees, degrees_of_freedom[rows])[noisier]
        changed = np.flatnonzero(variance > series.variance)
        root = splits.root.copy()
        root[changed] *= np.sqrt(series.variance[changed] / variance[changed])
        p_value = splits.p_value.copy()
        p_value[changed] = p_values(
            root[changed], degrees_of_freedom[changed], splits.span[changed], splits.splits[changed]
        )
        return replace(splits, root=root, p_value=p_value)

    def _noise_of(self, rows: IntArray, splits: BestSplit, columns: slice) -> tuple[FloatArray, FloatArray]:
        counts, noise = self.series.family == "counts", self.config.normalise.noise
        observed, exposure = residuals(self.series, rows, columns, splits.split)
        longest = max(1, observed.shape[1] // noise.min_blocks)
        around, own_degrees = unit_variance(
            observed, exposure, longest=longest, apart=longest, counts=counts, config=noise
        )
        if self._noise is None:
            return around, own_degrees
        noisier = np.maximum(splits.before, splits.after)
        return moderated(self._noise, noisier, around, own_degrees, self.config.shared_prior)

    def intervals(self, split: IntArray, low: IntArray, high: IntArray, span: SplitSpan) -> FloatArray:
        """Return where the change of each row lies by the plain likelihood of a range: (series, 2).

        Args:
            split: (series,) that is reported.
            low: (series,) first window that is compared.
            high: (series,) end of those.
            span: What was searched.

        Returns:
            Both in windows of the series.
        """
        series = self.series
        _, _, first, last = span.columns(len(split))
        profiles = []
        for row, (begin, end, before, after) in enumerate(
            zip(low.tolist(), high.tolist(), first.tolist(), last.tolist(), strict=True)
        ):
            observed, exposure = series.observed[row, begin:end], series.exposure[row, begin:end]
            left, right = both_sides((exposure[None] > 0).astype(np.float64), before - begin, after - begin)
            allowed = np.minimum(left, right)[0] >= self.config.min_points
            profiles.append(split_profile(observed, exposure, allowed, self.family, first=before - begin))
        noise = self._noise_at_scales(split, low, high)
        return split_intervals(profiles, noise, split - first) + first[:, None]

    def _noise_at_scales(self, split: IntArray, low: IntArray, high: IntArray) -> Noise:
        """Return the noise of rows at any scale: the history's, or that of residuals of two levels."""
        series, windows = self.series, self.windows
        noise_of = partial(
            NoiseAtScale,
            apart=(windows.end - self.start) // 2,
            counts=series.family == "counts",
            config=self.config.normalise.noise,
        )
        history = slice(windows.history, windows.analysis)
        before = noise_of(series.observed[:, history], series.exposure[:, history])
        ranges = list(_ranges(low, high))
        around = [noise_of(*residuals(series, rows, columns, split[rows])) for columns, rows in ranges]
        of_range, index = np.zeros((2, len(split)), dtype=np.int64)
        for number, (_, rows) in enumerate(ranges):
            of_range[rows], index[rows] = number, np.arange(len(rows))

        def at_scale(rows: IntArray, width: int) -> tuple[FloatArray, FloatArray]:
            variance, own_degrees = before(rows, width)
            for number in np.unique(of_range[rows]).tolist():
                part = np.flatnonzero(of_range[rows] == number)
                nearer, degrees = around[number](index[rows[part]], width)
                larger = nearer > variance[part]
                larger |= (nearer == variance[part]) & (degrees > own_degrees[part])
                variance[part[larger]], own_degrees[part[larger]] = nearer[larger], degrees[larger]
            return variance, own_degrees

        return at_scale


def _levels(
    plain: SideSums, sums: SideSums, best: tuple[IntArray, IntArray], centre: FloatArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the levels before and after splits, less last week's change: (series,) each."""
    before = centre + scale * ratio(plain.left[best], plain.left_exposure[best])
    after = ratio(sums.right[best], sums.right_exposure[best])
    until = ratio(sums.left[best], sums.left_exposure[best])
    return before, before + scale * (after - until)


def _with_data(exposure: FloatArray, least: int, *, first: int, last: int) -> BoolArray:
    """Return True for splits in [first, last] with enough data on either side: (series or 1, splits)."""
    has_data = exposure > 0
    has_data = has_data[:1] if (has_data == has_data[:1]).all() else has_data
    left, right = both_sides(has_data.astype(np.float64), first, last)
    return np.asarray(has_data[:, first : last + 1] & (np.minimum(left, right) >= least))


def _ranges(low: IntArray, high: IntArray) -> Iterator[tuple[slice, IntArray]]:
    """Yield each range of columns [low, high), and which rows have it."""
    if not len(low):
        return
    ranges, group = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    for index, (begin, end) in enumerate(ranges.tolist()):
        yield slice(begin, end), np.flatnonzero(group.reshape(-1) == index)


def _gap_prior(exposure: FloatArray, *, first: int, last: int) -> FloatArray:
    """Return what the time that splits in [first, last] stand for adds to their likelihood ratios.

    A level begins with data: what came in a gap, or over night, is dated to the first window after it. A
    change is as likely at any moment, so that this window stands for all of the gap.

    Returns:
        (series, splits), or (1, splits) if there is data everywhere.
    """
    if (exposure[:, first : last + 1] > 0).all():
        return np.zeros((1, last - first + 1))
    columns = np.arange(exposure.shape[1])
    latest = np.maximum.accumulate(np.where(exposure > 0, columns, -1), axis=1)
    since = columns - np.concatenate([np.full((len(latest), 1), -1), latest[:, :-1]], axis=1)
    return np.asarray(2 * np.log(since[:, first : last + 1]))


def _within(
    observed: FloatArray, exposure: FloatArray, columns: tuple[int, int], low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return columns of series, without data outside each row's [low, high)."""
    begin, end = columns
    observed, exposure = observed[:, begin:end], exposure[:, begin:end]
    if (low == begin).all() and (high == end).all():
        return observed, exposure
    index = np.arange(begin, end)
    inside = (index >= low[:, None]) & (index < high[:, None])
    return observed * inside, exposure * inside
