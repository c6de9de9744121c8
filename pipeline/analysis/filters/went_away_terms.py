"""The four terms of the went-away predicate, each over all rows at once (FBDetect §5.4.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.analysis.detect.sax import letters, valid_letters
from pipeline.analysis.filters.went_away_scale import Frame, Level, WentAwayConfig, letters_apart
from pipeline.analysis.statistics.blocks import (
    RunningSums,
    adjacent_starts,
    mean_between,
    means_at,
    moving_starts,
    ratio_or_zero,
)
from pipeline.analysis.statistics.monotonic import mann_kendall, theil_sen
from pipeline.analysis.statistics.robust import row_quantiles
from pipeline.model import BoolArray, FloatArray, IntArray

ROUNDING = 1e-9
"""Differences below this share of a level are rounding."""


@dataclass(frozen=True, slots=True)
class PredicateTerm:
    """One term of the predicate: whether it holds, its statistic, and the bound of that.

    The code says why (``pipeline.model.steps``), where that speaks against the regression.
    """

    holds: bool
    statistic: float
    bound: float
    code: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """A term for all rows."""

    holds: BoolArray
    statistic: FloatArray
    bound: FloatArray
    code: list[str]

    def row(self, row: int, *, against: bool = False, sign: float = 1.0) -> PredicateTerm:
        """Return one row's term, its numbers turned back by ``sign``; the code where ``holds is against``."""
        holds = bool(self.holds[row])
        # What has no data has no number, and messages carry only numbers.
        statistic, bound = (sign * np.nan_to_num([self.statistic[row], self.bound[row]])).tolist()
        return PredicateTerm(holds, statistic, bound, self.code[row] if holds is against else "")


def judge_gone_away(frame: Frame, level: Level, config: WentAwayConfig) -> tuple[Terms, IntArray]:
    """Judge REGRESSIONGONEAWAY; also return the window from which the series is back (else the end).

    However small the noise, a window at the level before counts no more than its share of the bound, so that
    a glitch cannot decide; and it is clipped two deviations outside both levels, so that an outlier cannot.
    """
    bound = -math.log(config.gone_significance)
    first = int(frame.change.min())
    values, weights = frame.values[:, first:], frame.weights[:, first:]
    column = np.arange(first, frame.values.shape[1])
    has_data = (weights > 0) & (column >= frame.change[:, None])
    mean_weight = ratio_or_zero(np.where(has_data, weights, 0.0).sum(axis=1), has_data.sum(axis=1))[:, None]
    share = np.where(has_data, np.minimum(ratio_or_zero(weights, mean_weight), 1.0), 0.0)
    above = np.where(has_data, values - level.before[:, None], 0.0)
    after = _After(above, share, level, bound, config)
    evidence = after.evidence(after.height())
    most, turn = after.returned_last(evidence)
    # Without an extended window the last third has to have data, or nothing could be confirmed.
    begin = frame.extended if frame.is_extended else frame.end - -(-frame.after // 3)
    untold = np.asarray(~(has_data & (column >= np.reshape(begin, (-1, 1)))).any(axis=1))
    late = has_data & (column >= (frame.end - -(-frame.after // 3))[:, None])
    between = after.returned_between(evidence, late)
    # A run of windows may end anywhere, so that there are as many more as windows (Bonferroni).
    often = bound + np.log(np.maximum(has_data.sum(axis=1), 1))
    again = (between >= often) & ~untold
    back = (most >= bound) & ~untold & ~again
    codes = np.where(untold, "unconfirmed", np.where(again, "rose_anew", "returned")).tolist()
    statistic = np.where(untold, 0.0, np.where(again, between, most))
    held_against = np.where(untold, 0.0, np.where(again, often, bound))
    terms = Terms(back | again | untold, statistic, held_against, codes)
    since: IntArray = np.where(back, np.maximum(turn + first, frame.change), frame.end)
    return terms, since


@dataclass(frozen=True, slots=True)
class _After:
    """The windows after the changes, and their evidence of a return."""

    above: FloatArray  # (rows, windows) by how much each stands above the level before
    share: FloatArray  # (rows, windows) how much each counts, at most 1; 0 before the change
    level: Level
    bound: float
    config: WentAwayConfig

    def returned_last(self, evidence: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return (rows,) the most evidence of a return up to the end, at least 0, and where it begins."""
        summed = np.cumsum(evidence[:, ::-1], axis=1)[:, ::-1]
        return np.maximum(summed.max(axis=1), 0.0), summed.argmax(axis=1)

    def returned_between(self, evidence: FloatArray, late: BoolArray) -> FloatArray:
        """Return (rows,) the most evidence of a return that ended; 0 unless another change came after it.

        The return may be from where the change led, or from what stays in the end, if letters show it.

        Args:
            evidence: (rows, windows) against where the change led.
            late: (rows, windows) which are the last.
        """
        stays = row_quantiles(np.where(late, self.above, np.nan), (0.5,))[0]
        distinct = stays >= letters_apart(self.config) * self.level.noise / np.sqrt(self.level.block)
        return np.maximum(self._run(evidence), self._run(self.evidence(np.where(distinct, stays, 0.0))))

    def _run(self, evidence: FloatArray) -> FloatArray:
        """Return (rows,) the largest sum of neighbouring windows' evidence, if another change follows them.

        It is another one if it stands above the level before, and higher or lower than what had returned, or
        if the return lasted for longer than that: else, at the same level, it was only a dip.
        """
        summed = np.concatenate([np.zeros((len(evidence), 1)), np.cumsum(evidence, axis=1)], axis=1)
        gain = summed - np.minimum.accumulate(summed, axis=1)
        column, end = np.arange(summed.shape[1]), gain.argmax(axis=1)[:, None]
        start = np.where(column <= end, summed, np.inf).argmin(axis=1)[:, None]
        sides = self.share * np.stack([column[:-1] < start, column[:-1] >= end])
        points = sides.sum(axis=2)
        first, second = ratio_or_zero((self.above * sides).sum(axis=2), points)
        variances = ratio_or_zero(np.ones_like(points), points)
        far = letters_apart(self.config) * self.level.noise
        another = np.abs(second - first) > far * np.sqrt(variances.sum(axis=0))
        another |= (end - start)[:, 0] > points[0]
        another &= second > far * np.sqrt(variances[1])
        return np.where(another & (points > 0).all(axis=0), gain.max(axis=1), 0.0)

    def evidence(self, height: FloatArray) -> FloatArray:
        """Return (rows, windows) the evidence of each for the level before, against a height above it."""
        delta, noise = height[:, None], self.level.noise[:, None]
        clipped = np.clip(self.above, -2 * noise, delta + 2 * noise)
        # At the level before, a window's evidence is delta² / 2 noise²; the half lets one window more decide.
        noise_squared = np.maximum(noise**2, delta**2 * (self.config.glitch + 0.5) / (2 * self.bound))
        gains: FloatArray = (delta / 2 - clipped) * self.share * ratio_or_zero(delta, noise_squared)
        return gains

    def height(self) -> FloatArray:
        """Return (rows,) the height of the change where it is largest, less one standard error.

        That is the measured change, unless a rise that ended within the analysis window explains the windows
        better than one level by more than the bound: then its height before it ended, which the windows after
        it would dilute.
        """
        points, sums = np.cumsum(self.share, axis=1), np.cumsum(self.above * self.share, axis=1)
        # Half the squared error that "up to here, then back" saves against one level throughout.
        gain = (ratio_or_zero(sums**2, points) - ratio_or_zero(sums[:, -1:] ** 2, points[:, -1:])) / 2
        rows, best = np.arange(len(gain)), np.where(sums > 0, gain, -np.inf).argmax(axis=1)
        ended = (gain[rows, best] > self.bound * self.level.noise**2) & (sums[rows, best] > 0)
        height = np.where(ended, ratio_or_zero(sums[rows, best], points[rows, best]), self.level.delta)
        alone = self.level.noise / np.sqrt(np.maximum(points[rows, best], 1.0))
        error = np.where(ended, alone, self.level.error)
        careful: FloatArray = np.maximum(np.maximum(height - error, height / 2), 0.0)
        return careful


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Scale by which the levels of each row become letters."""

    lowest: FloatArray
    width: FloatArray
    buckets: int
    after: IntArray  # (rows, blocks) letters after the change
    valid: BoolArray  # (rows, buckets)

    def read(self, values: FloatArray) -> IntArray:
        """Return the letters of (rows, points) levels."""
        highest = self.lowest + self.buckets * self.width
        return letters(values, lowest=self.lowest, highest=highest, buckets=self.buckets)

    def edge(self, bucket: IntArray) -> FloatArray:
        """Return the level at which a bucket begins."""
        return self.lowest + bucket * self.width

    def is_valid(self, read: IntArray) -> BoolArray:
        """Return True for (rows, points) letters that are valid in the history."""
        return np.asarray(np.take_along_axis(self.valid, np.maximum(read, 0), 1) & (read >= 0))


def spread_letters(history: FloatArray, after: FloatArray, config: WentAwayConfig) -> Alphabet:
    """Divide the range into buckets and find those that are valid in the history."""
    low, high = row_quantiles(history, (config.valid_share, 1 - config.valid_share))
    smallest, largest = row_quantiles(after, (0.0, 1.0))
    lowest, highest = np.nan_to_num(np.fmin(low, smallest)), np.nan_to_num(np.fmax(high, largest))
    apart = highest - lowest > ROUNDING * np.maximum(np.abs(highest), np.abs(lowest))
    width = np.where(apart, (highest - lowest) / config.buckets, 0.0)
    none = np.zeros((len(history), 0), dtype=np.int64)
    plain = Alphabet(lowest, width, config.buckets, none, np.zeros((0, 0), dtype=np.bool_))
    valid = valid_letters(plain.read(history), buckets=config.buckets, share=config.valid_share)
    return Alphabet(lowest, width, config.buckets, plain.read(after), valid)


@dataclass(frozen=True, slots=True)
class BlockedSeries:
    """Series with the means of their blocks, and the letters of those."""

    frame: Frame
    sums: RunningSums
    level: Level
    history: FloatArray  # (rows, blocks) means before the change, at every offset
    after: FloatArray  # (rows, blocks) means after it
    deviation: FloatArray  # (rows,) of the former
    alphabet: Alphabet


def judge_new_pattern(measured: BlockedSeries, gone: Terms, turn: IntArray, config: WentAwayConfig) -> Terms:
    """Judge NEWPATTERN: most letters after the change, and after a turn, are none of the history's."""
    frame, level, alphabet = measured.frame, measured.level, measured.alphabet
    read = alphabet.after >= 0
    foreign = read & ~alphabet.is_valid(alphabet.after)
    share = ratio_or_zero(foreign.sum(axis=1).astype(np.float64), read.sum(axis=1))
    turned = turn < frame.end
    first = int(turn.min(initial=frame.values.shape[1]))
    since = np.arange(first, frame.values.shape[1]) >= turn[:, None]
    # What has returned may be short: the median, lest one window speaks for all.
    recent = row_quantiles(np.where(since, frame.values[:, first:], np.nan), (0.5,))[0]
    average = np.where(turned, recent, mean_between(measured.sums, frame.change, frame.end))
    remains = average - level.before >= letters_apart(config) * measured.deviation
    known_again = alphabet.is_valid(alphabet.read(average[:, None]))[:, 0] | ~remains
    back = np.arange(read.shape[1], 0, -1)
    final = back <= -(-(config.glitch + 1) // level.block)[:, None]
    old = np.where(turned, known_again, ~(final & foreign).any(axis=1))
    floor = alphabet.edge(alphabet.valid.argmax(axis=1))
    unknown = ~alphabet.valid.any(axis=1) | (gone.holds & ~turned)
    holds = (share > config.most) & ~old & (average >= floor) & (level.delta > 0) & ~unknown
    bound = np.full(len(share), config.most)
    return Terms(holds, share, bound, ["letters known from the history"] * len(share))


def judge_significant(measured: BlockedSeries, config: WentAwayConfig) -> Terms:
    """Judge SIGNIFICANTREGRESSION by the largest letters and by the percentiles."""
    frame, level, alphabet = measured.frame, measured.level, measured.alphabet
    first = np.maximum(frame.change - np.maximum(frame.day, frame.after), 0)
    day = means_at(measured.sums, moving_starts(first, frame.change, level.block), level.block)
    reached = row_quantiles(measured.after, (config.after_quantile,))[0]
    usual = row_quantiles(measured.history, (config.historical_quantile,))[0]
    recent = row_quantiles(day, (config.previous_day_quantile,))[0]
    bound = np.fmax(usual, recent)
    largest_valid = alphabet.valid.shape[1] - 1 - alphabet.valid[:, ::-1].argmax(axis=1)
    lettered = alphabet.after.max(axis=1, initial=-1) >= largest_valid
    beyond = reached - bound > ROUNDING * np.abs(bound)
    holds = lettered & beyond & (level.delta > 0)
    codes = np.where(~beyond | (level.delta <= 0), "within_percentiles", "valid_letters").tolist()
    by_letter = beyond & ~lettered
    highest = row_quantiles(measured.after, (1.0,))[0]
    statistic = np.where(by_letter, highest, reached)
    return Terms(holds, statistic, np.where(by_letter, alphabet.edge(largest_valid), bound), codes)


def judge_lasting(measured: BlockedSeries, config: WentAwayConfig) -> Terms:
    """Judge LASTINGTREND by Mann-Kendall's test and Theil-Sen's slope, after the change and around it."""
    frame, level = measured.frame, measured.level
    size = -(-frame.after // config.trend_points)
    points = frame.after // size
    first = np.maximum(frame.end - 2 * points * size, 0)
    entire = means_at(measured.sums, adjacent_starts(first, frame.end, size), size)
    back = np.arange(entire.shape[1], 0, -1)
    post = np.where(back <= points[:, None], entire, np.nan)[:, -int(points.max()) :]
    critical = -float(special.ndtri(config.trend_significance))
    score, post_score = mann_kendall(entire), mann_kendall(post)
    line, post_line = theil_sen(entire), theil_sen(post)
    up, post_up = score > critical, post_score > critical
    by_post = post_up & (~up | (post_line.slope < line.slope))
    rise = np.where(by_post, post_line.slope * points, line.slope * 2 * points)
    left = post_line.intercept + post_line.slope * (post.shape[1] - 1) - level.before
    rise = np.where(post_score < -critical, np.fmin(rise, left), rise)
    threshold = config.coefficient * measured.deviation
    lasting = up | post_up
    large = rise - threshold > ROUNDING * np.abs(level.before)
    codes = np.where(lasting, "small_trend", "no_trend").tolist()
    return Terms(
        lasting & large, np.where(lasting, rise, score), np.where(lasting, threshold, critical), codes
    )
