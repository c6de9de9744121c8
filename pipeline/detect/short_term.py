"""One scan: a matrix of series in, the candidates among them out (FBDetect §5.4.1, short-term path).

First a screen of all series at once: is the level from some split in the analysis window on another than that
of the baseline before? Then, of the few that it leaves, whether the change belongs to this scan at all: a
series may have changed more in the baseline, which an earlier scan has seen, or in the extended window, which
a later one will see; then only what is left between those counts.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.detect.best_split import BestSplit, no_split
from pipeline.detect.change_interval import noise_at_scales, split_interval, split_profile
from pipeline.detect.change_point import (
    Family,
    both_sides,
    log_odds_span,
    p_values,
    ratio,
    signed_roots,
    split_sums,
)
from pipeline.detect.expected import NormaliseConfig, Normalised, normalise, one_row, residuals
from pipeline.detect.matrix import first_windows, slice_rows
from pipeline.detect.noise.scale import unit_variance
from pipeline.detect.noise.shared_prior import SharedPriorConfig, moderated
from pipeline.detect.seasonal.weekly import SAME_DAYS, beyond_last_week
from pipeline.detect.unjudged import Steps, find_unjudged, grounds_of, merge_unjudged
from pipeline.model import (
    BoolArray,
    Candidate,
    Direction,
    IntArray,
    SeriesMatrix,
    SharedVariancePrior,
    Unjudged,
)
from pipeline.units import DAY_S

_MOST_CUTS = 8
"""Changes besides the one that is looked for, until a series is too restless to judge."""

CHUNK_ROWS = 256
"""Series worked on together: few enough that what is computed of them stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Windows:
    """How a matrix divides into windows (FBDetect Figure 11), as indexes of columns."""

    analysis: int  # the historical window ends, the analysis window begins
    extended: int  # the analysis window ends, the extended window begins; equals ``end`` without one
    end: int
    history: int = 0  # the historical window begins: what lies before is there to be compared with last week


@dataclass(frozen=True, slots=True)
class ScanConfig:
    """Settings of the short-term detector."""

    significance: float = 0.01  # FBDetect §5.4.2
    min_points: int = 3  # on either side; two points fit nearly any level
    min_history: float = 0.5  # share of the history with data, see has_history: before, a service starts up
    baseline: float = 4.0  # times what follows it: a longer one lowers the error by a tenth, and may be stale
    week_before: bool = True  # whether what happened a week earlier is taken out
    week_doubt: float = 2.0  # of a change at this time last week, see pipeline.detect.seasonal.weekly
    placement: float = 6.635  # likelihood ratio by which a split elsewhere must be better (99 %)
    count_likelihood: bool = True  # of counts; else they are tested as values are
    shared_prior: SharedPriorConfig = field(default_factory=SharedPriorConfig)
    normalise: NormaliseConfig = field(default_factory=NormaliseConfig)


def find_candidates(
    matrix: SeriesMatrix,
    windows: Windows,
    *,
    direction: Direction = "up",
    config: ScanConfig | None = None,
) -> tuple[Candidate, ...]:
    """Return the candidates of ``find_steps`` alone."""
    return tuple(find_steps(matrix, windows, direction=direction, config=config)[0])


def find_steps(
    matrix: SeriesMatrix,
    windows: Windows,
    *,
    direction: Direction = "up",
    config: ScanConfig | None = None,
) -> Steps:
    """Find the series whose level changed for the worse in the analysis window.

    The level after the change is that of all windows up to the end, the extended ones included; the one
    before is that of the last part of the history. Levels are compared after the daily cycle has been taken
    out, and after what happened at the same time a week before, where that was significant.

    Args:
        matrix: All series of a service.
        windows: Where the analysis and the extended window begin.
        direction: Which way is worse.
        config: Settings.

    Returns:
        One candidate for each series that rejects "one level throughout", in the matrix's order. Its
        statistic is the likelihood ratio. It lies in the analysis window, or where it is likelier before.
    """
    config = config or ScanConfig()
    found: list[Candidate] = []
    unjudged: list[Unjudged] = []
    whole = first_windows(matrix, windows.end)
    for first in range(0, len(matrix.names), CHUNK_ROWS):
        chunk = slice_rows(whole, first, first + CHUNK_ROWS)
        steps = _find(chunk, windows, 1.0 if direction == "up" else -1.0, config)
        found += steps[0]
        unjudged += steps[1]
    return tuple(found), merge_unjudged(unjudged)


def normalised(matrix: SeriesMatrix, windows: Windows, config: ScanConfig) -> Normalised:
    """Return a matrix's series in the form in which a scan compares them."""
    start = baseline_start(windows, matrix.resolution_s, config)
    return normalise(
        matrix,
        history=windows.analysis,
        longest=windows.end - windows.analysis,
        apart=(windows.end - start) // 2,
        config=config.normalise,
    )


def _find(matrix: SeriesMatrix, windows: Windows, sign: float, config: ScanConfig) -> Steps:
    series = normalised(matrix, windows, config)
    search = _Search(series, matrix.noise, matrix.resolution_s, windows, config)
    screened = search.best(None, search.start, windows.end, windows.analysis, windows.extended - 1)
    spans = slice(windows.history, windows.analysis), slice(windows.analysis, windows.end)
    grounds = grounds_of(series, matrix.totals, screened.splits, *spans, config.min_history)
    unjudged = find_unjudged(grounds, min_points=config.min_points, significance=config.significance)
    promising = (screened.p_value < config.significance) & (sign * screened.root > 0)
    promising = grounds.has_history & (promising | search.is_disturbed(screened))
    candidates = []
    for row in np.flatnonzero(promising).tolist():
        own = search.isolate(row)
        if own is None or own.p_value[0] >= config.significance or sign * own.root[0] <= 0:
            continue
        candidates.append(
            Candidate(
                metric_kind=matrix.kinds[row],
                metric=matrix.names[row],
                kind="short_term",
                change_time=matrix.start + float(own.split[0]) * matrix.resolution_s,
                before=float(own.before[0]),
                after=float(own.after[0]),
                p_value=float(own.p_value[0]),
                statistic=float(own.root[0] ** 2),
                change_time_interval=matrix.moments(own.interval),
            )
        )
    return candidates, unjudged


class _Search:
    """Looks for the best split of series in ranges of their windows."""

    def __init__(
        self,
        series: Normalised,
        noise: SharedVariancePrior | None,
        resolution_s: float,
        windows: Windows,
        config: ScanConfig,
    ) -> None:
        self._series = self._week_ago = series
        self._noise = noise
        self._family: Family = series.family if config.count_likelihood else "values"
        self._windows = windows
        self._config = config
        self._day = DAY_S / resolution_s
        # A history of less than a week knows no weekends, and is not asked about them.
        self._weekly = (
            config.week_before and round(self._day) > 1 and round(7 * self._day) <= windows.analysis
        )
        self.start = baseline_start(windows, resolution_s, config)

    def is_disturbed(self, found: BestSplit) -> BoolArray:
        """Return which series changed more outside the analysis window, which may hide a change inside.

        A spike in the baseline lifts the level that what follows is compared with.
        """
        low, high = self.start, self._windows.end
        other = self.best(None, low, high, low + 1, high - 1, weekly=False)
        outside = (other.split < self._windows.analysis) | (other.split >= self._windows.extended)
        better = other.root**2 - found.root**2 > self._config.placement
        return np.asarray(outside & better & (other.p_value < self._config.significance))

    def isolate(self, row: int) -> BestSplit | None:
        """Return the best split of the analysis window, other changes aside; None if it has none of its own.

        The range is cut at any split outside that is clearly better than the best one inside, until there is
        none: from a change in the baseline on, and up to one in the extended window; if that goes the same
        way, likelier is enough, since a later scan sees more of it. What lies before a cut still counts where
        the level was the same, as before a spike.
        """
        rows, low, high = np.array([row]), self.start, self._windows.end
        first, last = self._windows.analysis, self._windows.extended - 1
        for _ in range(_MOST_CUTS):
            own = self.best(rows, low, high, first, min(last, high - 1))
            anywhere = self.best(rows, low, high, low + 1, high - 1, weekly=False)
            split, gain = int(anywhere.split[0]), anywhere.root[0] ** 2 - own.root[0] ** 2
            clear = gain > self._config.placement and anywhere.p_value[0] < self._config.significance
            later = split > last and gain > 0 and anywhere.root[0] * own.root[0] > 0
            if first <= split <= last or not (clear or later):
                break
            if split < first:
                low = split
            else:
                high = split - 1  # the window before, in which it began, may hold some of it
        else:
            return None
        if low > self.start:
            hidden = self._at_other_levels(row, low)
            if not hidden.all():
                search, rows, low = self._hiding(row, hidden), np.array([0]), self.start
                own = search.best(rows, low, high, first, min(last, high - 1))
                anywhere = search.best(rows, low, high, low + 1, high - 1, weekly=False)
                return search._judged(own, anywhere, 0, low, high)
        return self._judged(own, anywhere, row, low, high)

    def _at_other_levels(self, row: int, low: int) -> BoolArray:
        """Return which windows of [start, low) had another level than those from ``low`` to the analysis."""
        hidden = np.ones(low - self.start, dtype=np.bool_)
        for piece in self._pieces(row, self.start, low):
            if self._are_level(row, piece, slice(low, self._windows.analysis)):
                hidden[piece.start - self.start : piece.stop - self.start] = False
        return hidden

    def _pieces(self, row: int, low: int, high: int) -> list[slice]:
        """Divide a range into pieces of one level each."""
        whole, done = [slice(low, high)], list[slice]()
        while whole:
            piece = whole.pop()
            first, last = piece.start, piece.stop
            found = self.best(np.array([row]), first, last, first + 1, last - 1, weekly=False)
            if found.p_value[0] >= self._config.significance or len(done) + len(whole) >= _MOST_CUTS:
                done.append(piece)
            else:
                split = int(found.split[0])
                whole += [slice(piece.start, split), slice(split, piece.stop)]
        return done

    def _are_level(self, row: int, one: slice, other: slice) -> bool:
        """Say whether two ranges of a series are at one level, as far as the noise shows."""
        parts = [self._series.observed[row, one], self._series.observed[row, other]]
        exposures = [self._series.exposure[row, one], self._series.exposure[row, other]]
        if not all((exposure > 0).any() for exposure in exposures):
            return False
        split = len(parts[0])
        both = np.concatenate(parts)[None], np.concatenate(exposures)[None]
        root = signed_roots(split_sums(*both, first=split, last=split), self._family)[0, 0]
        return float(root**2 / self._series.variance[row]) <= self._config.placement

    def _hiding(self, row: int, hidden: BoolArray) -> _Search:
        """Return a search of one row that takes the hidden ones of its first windows for no data."""
        shown = np.ones(self._series.exposure.shape[1])
        shown[self.start : self.start + len(hidden)] = ~hidden
        search = copy(self)
        search._series = search._week_ago = one_row(self._series, row, shown)
        last_week = self.start - round(7 * self._day)
        if self._windows.analysis - self.start > SAME_DAYS * self._day and last_week >= 0:
            # What such a baseline leaves out, last week's leaves out of the same hours.
            shown = np.ones(len(shown))
            shown[last_week : last_week + len(hidden)] = ~hidden
            search._week_ago = one_row(self._series, row, shown)
        return search

    def _judged(self, found: BestSplit, likely: BestSplit, row: int, low: int, high: int) -> BestSplit:
        """Return a split with the p-value that it deserves, placed by the likeliest one of the whole range.

        An earlier scan may not have been sure of it; and last week says if it counts, not where it lies.
        """
        found = self._with_noise_around(found, row, low, high)
        first, split = int(likely.split[0]), int(found.split[0])
        if split < 0:
            return found
        if first != split and 0 <= first < self._windows.extended:
            likelier = likely.root[0] * found.root[0] > found.root[0] ** 2
            # What lies between has to belong to the other side, else it is another change, before or after.
            beside = slice(split, high) if first < split else slice(low, split)
            if likelier and self._are_level(row, slice(*sorted((first, split))), beside):
                found = replace(found, split=likely.split, before=likely.before, after=likely.after)
        whole = int(found.split[0]) == first
        searched = (low + 1, high - 1) if whole else (self._windows.analysis, self._windows.extended - 1)
        return replace(found, interval=self._interval(int(found.split[0]), row, low, high, searched))

    def _interval(
        self, split: int, row: int, low: int, high: int, searched: tuple[int, int]
    ) -> tuple[float, float]:
        """Return where the change lies by the plain likelihood of a range, in windows of the series."""
        series, first, last = self._series, max(searched[0], low + 1), min(searched[1], high - 1)
        observed, exposure = series.observed[row, low:high], series.exposure[row, low:high]
        allowed = self._allowed(exposure[None] > 0, first - low, last - low)[0]
        profile = split_profile(observed, exposure, allowed, self._family, first=first - low)
        past = np.s_[row : row + 1, self._windows.history : self._windows.analysis]
        noise = noise_at_scales(
            [(series.observed[past], series.exposure[past]), residuals(series, row, low, split, high)],
            apart=(self._windows.end - self.start) // 2,
            counts=series.family == "counts",
            config=self._config.normalise.noise,
        )
        begin, end = split_interval(profile, noise, split - first)
        return begin + first, end + first

    def _with_noise_around(self, found: BestSplit, row: int, low: int, high: int) -> BestSplit:
        """Judge a split by the noise of the windows around it too, if that is more than the history's.

        A subroutine that is new, or has risen, is noisier now than its history was.
        """
        split, series = int(found.split[0]), self._series
        if split < 0:
            return found
        observed, exposure = residuals(series, row, low, split, high)
        config, counts = self._config.normalise.noise, series.family == "counts"
        longest = max(1, (high - low) // config.min_blocks)
        around, degrees_of_freedom = unit_variance(
            observed, exposure, longest=longest, apart=longest, counts=counts, config=config
        )
        if self._noise is not None:
            level = np.maximum(found.before, found.after)  # the noisier one's
            around, degrees_of_freedom = moderated(
                self._noise, level, around, degrees_of_freedom, self._config.shared_prior
            )
        if around[0] <= series.variance[row]:
            return found
        root = found.root * math.sqrt(series.variance[row] / around[0])
        p_value = p_values(
            root, np.minimum(degrees_of_freedom, series.degrees_of_freedom[row]), found.span, found.splits
        )
        return replace(found, root=root, p_value=p_value)

    def best(
        self, rows: IntArray | None, low: int, high: int, first: int, last: int, *, weekly: bool = True
    ) -> BestSplit:
        """Return the best split in [first, last] of each row's windows in [low, high); of all rows if None.

        ``weekly`` is for changes to be reported: where one lies is the plain likelihood's to say.
        """
        series = self._series
        first, last = max(first, low + 1), min(last, high - 1)
        asked = slice(None) if rows is None else rows  # a view is no copy
        observed, exposure = series.observed[asked], series.exposure[asked]
        if first > last:
            return no_split(len(observed))
        deviation = np.sqrt(series.variance[asked])[:, None]
        plain = split_sums(observed[:, low:high], exposure[:, low:high], first=first - low, last=last - low)
        allowed = self._allowed(exposure[:, low:high] > 0, first - low, last - low)
        if self._weekly and weekly:
            roots, sums = beyond_last_week(
                plain,
                (observed, exposure),
                (self._week_ago.observed[asked], self._week_ago.exposure[asked]),
                deviation,
                self._family,
                columns=(low, high, first, last),
                day=self._day,
                doubt=self._config.week_doubt,
            )
        else:
            roots, sums = signed_roots(plain, self._family) / deviation, plain
        roots = np.where(allowed, roots, 0.0)
        split = np.abs(roots).argmax(axis=1)
        best = np.arange(len(split)), split
        span, splits = log_odds_span(plain, allowed), allowed.sum(axis=1)
        p_value = p_values(roots[best], series.degrees_of_freedom[asked], span, splits)
        centre, scale = series.centre[asked], series.scale[asked]
        before = centre + scale * ratio(plain.left, plain.left_exposure)[best]
        change = (ratio(sums.right, sums.right_exposure) - ratio(sums.left, sums.left_exposure))[best]
        return BestSplit(split + first, roots[best], span, splits, p_value, before, before + scale * change)

    def _allowed(self, known: BoolArray, first: int, last: int) -> BoolArray:
        left, right = both_sides(known.astype(np.float64), first, last)
        return np.asarray(np.minimum(left, right) >= self._config.min_points)


def baseline_start(windows: Windows, resolution_s: float, config: ScanConfig) -> int:
    """Return the first window of the baseline: whole days, where the history has as many."""
    length = math.ceil(config.baseline * (windows.end - windows.analysis))
    day = max(1, round(DAY_S / resolution_s))
    if length > day:
        length = -(-length // day) * day
    start = max(0, windows.analysis - length)
    # Last week's change is taken from as long a baseline, so that both hold the same days of the week.
    return max(start, 7 * day) if 8 * day <= windows.analysis else start
