"""Long-run noise by batch means: the variance of the mean of a long span of windows.

Sampling alone gives a mean of n windows an n-th of one window's variance. Servers that differ and load that
wanders add variance that averages out more slowly, because neighbouring windows are similar. So the variance
is measured where it is used, on means of long blocks, and at several block lengths, of which the largest
estimate counts: with positive autocorrelation the variance per sample only grows with the length, and the
estimate of long blocks, of which there are few, may fall short by chance.

``SeriesNoise`` serves comparisons of two levels. It takes differences of blocks that lie as far apart as the
levels (Wu and Zhao, JRSSB 69, 2007, for series whose level may change). Pairs with a jump between them are
left out if enough other pairs remain: few jumps are changes, many are noise. If data come in a pattern (five
windows of twelve), few blocks may have a partner at that distance. Then the windows without data are removed
first. The levels have the same pattern, so the number of windows with data and the time between the levels
stay the same; neighbours across a gap are less similar than others, both in the estimate and in its use.

``long_run_variance`` serves trends, which such differences would count as noise. It compares each block with
the middle of its two neighbours, where a slope cancels and a change of level shows only twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special

from pipeline.analysis.statistics.blocks import BlockSums, block_means, ratio_or_zero
from pipeline.analysis.statistics.long_run_noise.jumps import find_jumps
from pipeline.analysis.statistics.robust import MEDIAN_SQUARE, may_exceed_median, medians_of_rows, row_medians
from pipeline.model import BoolArray, FloatArray, IntArray

_RANDOM_WALK = 1.0
"""Power of their length by which the variance of a random walk's means exceeds that of white noise."""

_STEPS = 20
"""Steps of the cut mean; each halves the remaining error."""

_STEPS_ALONE = 7
"""Steps made singly; after them hardly a square lies between the mean and its limit."""

_MIN_TRIPLES = 12
"""Longest blocks with two neighbours; fewer leave the estimate of ``long_run_variance`` too uncertain."""

_TRANSIENT = 9.0
"""Multiple of the typical squared deviation at which larger ones are cut: transients are not noise."""


@dataclass(frozen=True, slots=True)
class NoiseConfig:
    """Settings of the estimate."""

    min_blocks: int = 24  # of the longest scale; fewer leave the estimate too uncertain
    ratio: int = 3  # between scales
    cut: float = 1.642  # 80 % quantile of squared normal noise, at which squares are cut: see _cut_mean
    efficiency: float = 0.48  # degrees of freedom per pair of neighbours, with that cut; by simulation
    many: int = 300  # pairs above which only rows with an outlier are cut
    typical: float = 5.0  # counts per block above which they are near enough to normal for the cut
    jump: float = 1e-4  # significance, in a history, of a difference that is a change of level
    restless: float = 1.5  # ratio of the scales' variances above which jumps are searched for
    side: int = 8  # blocks on either side of a jump; more may hold a second jump
    paired: float = 0.5  # share of blocks with a partner, below which windows without data are removed
    between_jumps: float = 1 / 3  # share of pairs without a jump between, below which jumps are noise


def unit_variance(
    observed: FloatArray,
    exposure: FloatArray,
    *,
    longest: int,
    apart: int,
    counts: bool,
    config: NoiseConfig | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the noise of all series at one scale; see ``SeriesNoise.unit_variance``."""
    noise = SeriesNoise(observed, exposure, counts=counts, config=config)
    return noise.unit_variance(np.arange(len(observed)), longest=longest, apart=apart)


class SeriesNoise:
    """The noise of series at any scale; intermediate results that scales share are computed once."""

    def __init__(
        self, observed: FloatArray, exposure: FloatArray, *, counts: bool, config: NoiseConfig | None = None
    ) -> None:
        """Take series.

        The level of a block is its sum of ``observed`` divided by its sum of ``exposure``. The variance of
        that level is the result of ``unit_variance`` divided by the exposure: for counts the result is their
        dispersion, which is 1 if only sampling makes noise.

        Args:
            observed: (series, history) counts, or values times their weights.
            exposure: (series, history) or (1, history) counts expected, or weights; 0 where there is no data.
            counts: Whether ``observed`` are counts, whose noise is skewed where they are few.
            config: Settings.
        """
        self._config = config or NoiseConfig()
        self._counts = counts
        self._blocks = BlockSums(observed, exposure)
        self._whole = observed.sum(axis=1)
        self._measured: dict[tuple[Scale, bool], FloatArray] = {}

    def unit_variance(self, rows: IntArray, *, longest: int, apart: int) -> tuple[FloatArray, FloatArray]:
        """Return the variance of a mean of exposure 1, and the degrees of freedom it was estimated with.

        Args:
            rows: (rows,) of the series, ascending.
            longest: Windows of a level.
            apart: Windows between the middles of the two levels.

        Returns:
            (rows,) each; a series without any data has a variance of 0.
        """
        variance, degrees, paired = self._by_scales(rows, longest, apart)
        unpaired = np.flatnonzero(paired < self._config.paired)
        if not len(unpaired):
            return variance, degrees
        observed, exposure = self._blocks.of_rows(rows[unpaired], 1)
        exposure = np.broadcast_to(exposure, observed.shape)
        # Both levels have their data in the same pattern, so that removing gaps shortens them by its share.
        for pattern, some in _patterns(exposure > 0):
            share = float(pattern.mean())
            shorter = max(1, round(longest * share)), max(1, round(apart * share))
            shown = observed[some][:, pattern], exposure[some][:, pattern]
            dense = SeriesNoise(*shown, counts=self._counts, config=self._config)
            measured, own_degrees, _ = dense._by_scales(np.arange(len(some)), *shorter)
            part, better = unpaired[some], own_degrees > degrees[unpaired[some]]
            variance[part[better]], degrees[part[better]] = measured[better], own_degrees[better]
        return variance, degrees

    def floor(self, rows: IntArray, *, longest: int, apart: int) -> FloatArray:
        """Return a lower bound of the variance that ``unit_variance`` returns: (rows,).

        It holds for rows in which at least half of the blocks have a partner. It is the variance at the scale
        of the longest blocks, with or without pairs between jumps, whichever is less; ``unit_variance`` takes
        the largest of all scales.
        """
        scale = noise_scales(self._blocks.windows, longest, apart, self._config)[-1]
        steady, between = (self._at(scale, rows, jumps=jumps)[0] for jumps in (False, True))
        return np.asarray(np.minimum(steady, between))

    def _by_scales(
        self, rows: IntArray, longest: int, apart: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the largest variance of all scales, its degrees of freedom, and the least share of pairs."""
        config = self._config
        scales = noise_scales(self._blocks.windows, longest, apart, config)
        measured = np.stack([self._at(scale, rows) for scale in scales], axis=1)
        # If the level of a series changes, longer means differ by more.
        restless = np.flatnonzero(measured[0].max(axis=0) > config.restless * measured[0].min(axis=0))
        if len(restless):
            jumping = restless[self._jumps(rows[restless], scales[-1].width).any(axis=1)]
            if len(jumping):
                between = [self._at(scale, rows[jumping], jumps=True) for scale in scales]
                measured[:2, :, jumping] = np.stack(between, axis=1)[:2]
        variances, degrees, paired = measured
        best = variances.argmax(axis=0)
        # An estimate that is the largest cannot fall shorter of the truth than the next finer one does.
        every = np.arange(len(rows))
        growth = _growth(variances, scales[-1].width, longest)
        return variances[best, every] * growth, degrees[np.maximum(best - 1, 0), every], paired.min(axis=0)

    def _at(self, scale: Scale, rows: IntArray, *, jumps: bool = False) -> FloatArray:
        """Return variance, degrees of freedom and share of pairs at a scale, computed once: (3, rows)."""
        series = len(self._whole)
        measured = self._measured.setdefault((scale, jumps), np.full((3, series), np.nan))
        missing = rows[np.isnan(measured[0, rows])]
        if len(missing):
            observed, exposure = self._blocks.of_rows(missing, scale.width)
            jumping = self._jumps(missing, scale.width) if jumps else None
            whole = self._whole[missing] if self._counts else None
            measured[:, missing] = _at_scale(observed, exposure, whole, scale.lag, jumping, self._config)
        return measured if len(rows) == series else measured[:, rows]

    def _jumps(self, rows: IntArray, width: int) -> BoolArray:
        """Return True before each block of a width at which the level jumps: (rows, blocks)."""
        observed, exposure = self._blocks.of_rows(rows, width)
        side = max(1, min(self._config.side, observed.shape[1] // self._config.min_blocks))
        return find_jumps(observed, exposure, side=side, significance=self._config.jump)


def _patterns(has_data: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield each pattern of windows with data and the rows that have it, but for full and empty rows."""
    partly = np.flatnonzero(has_data.any(axis=1) & ~has_data.all(axis=1))
    patterns: dict[bytes, list[int]] = {}
    for row, packed in zip(partly.tolist(), np.packbits(has_data[partly], axis=1), strict=True):
        patterns.setdefault(packed.tobytes(), []).append(row)
    for rows in patterns.values():
        yield has_data[rows[0]], np.array(rows)


class Scale(NamedTuple):
    """The width of blocks in windows, and the distance of two compared blocks in blocks."""

    width: int
    lag: int


def noise_scales(history: int, longest: int, apart: int, config: NoiseConfig) -> list[Scale]:
    """Return the scales at which the noise of a history is measured, the finest first."""
    widths = [max(1, min(longest, history // config.min_blocks))]
    while widths[-1] > 1:
        widths.append(widths[-1] // config.ratio or 1)
    # In a short history a change of level would touch too many pairs that lie far apart.
    return [
        Scale(width, max(1, min(round(apart / width), history // width // 8))) for width in reversed(widths)
    ]


def _growth(variances: FloatArray, width: int, longest: int) -> FloatArray:
    """Return the factor by which the variance of means longer than any block is larger: (series,).

    The growth from the finest of (scales, series) variances to the last is continued to ``longest``.
    """
    if not longest > width > 1:
        return np.ones(variances.shape[1])
    ratios = np.divide(variances[-1], variances[0], out=np.ones(variances.shape[1]), where=variances[0] > 0)
    slope = np.log(np.clip(ratios, 1.0, None)) / math.log(width)
    growth: FloatArray = (longest / width) ** np.minimum(slope, _RANDOM_WALK)
    return growth


def _at_scale(
    observed: FloatArray,
    exposure: FloatArray,
    whole: FloatArray | None,
    lag: int,
    jumps: BoolArray | None,
    config: NoiseConfig,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance at one scale, its degrees of freedom, and the share of blocks in pairs: (series,).

    Args:
        observed: (series, blocks) sums.
        exposure: (series, blocks) or (1, blocks) sums.
        whole: (series,) sum of all counts; None if the series are not counts.
        lag: Distance of the two blocks of a pair.
        jumps: (series, blocks) True before which the level jumps; pairs with a jump between are left out.
        config: Settings.
    """
    has_data = exposure > 0
    complete = bool(has_data.all())
    has_data = has_data[:1] if complete else has_data  # one row stands for all
    inverse = 1.0 / (exposure if complete else np.where(has_data, exposure, np.inf))
    means = observed * inverse
    both = has_data[:, lag:] & has_data[:, :-lag]
    # In place: allocating an array costs as much as computing it.
    squares = means[:, lag:] - means[:, :-lag]
    squares *= squares
    spread = inverse[:, lag:] + inverse[:, :-lag]
    squares /= spread if complete else np.where(both, spread, np.inf)
    blocks = has_data.sum(axis=1)
    pairs = np.broadcast_to(both.sum(axis=1), len(squares))
    paired = pairs / np.maximum(blocks, 1)
    # If most neighbours are equal, the few differences are the noise, and a cut would remove all of it.
    few = 2 * (squares > 0).sum(axis=1) < pairs
    if whole is not None:
        # A cut removes transients; but the few samples of a rare subroutine are no outliers.
        few |= whole < config.typical * blocks
    if jumps is not None:
        level = np.cumsum(jumps, axis=1)
        between = (level[:, lag:] == level[:, :-lag]) & both
        enough = (between.sum(axis=1) >= config.between_jumps * pairs) & ~few
        squares *= between | ~enough[:, None]
        pairs = np.where(enough, between.sum(axis=1), pairs)
    variance = squares.sum(axis=1) / np.maximum(pairs, 1)
    robust = np.flatnonzero(~few)
    if squares.shape[1] > config.many:  # then only outliers make the cut mean differ from the plain one
        robust = robust[_stand_out(_taken(squares, robust), variance[robust])]
    if len(robust):
        variance[robust] = _cut_mean(_taken(squares, robust), pairs[robust], variance[robust], config.cut)
    return variance, np.maximum(pairs * config.efficiency, 1.0), paired


def _taken(values: FloatArray, rows: IntArray) -> FloatArray:
    """Return some rows, without a copy if they are all rows."""
    return values if len(rows) == len(values) else values[rows]


def _stand_out(squares: FloatArray, variance: FloatArray) -> BoolArray:
    """Return which rows have a square that is too large, by chance, for their variance: (rows,)."""
    bound = special.chdtri(1, 0.01 / squares.shape[1])
    largest = squares.max(axis=1, initial=0.0)
    result: BoolArray = largest > bound * variance
    # Also by the median, since an outlier raises the mean that it is compared with.
    rows = np.flatnonzero(~result & may_exceed_median(squares, bound / MEDIAN_SQUARE))
    if len(rows):
        result[rows] = largest[rows] > bound * (medians_of_rows(squares[rows]) / MEDIAN_SQUARE)
    return result


def _cut_mean(squares: FloatArray, pairs: FloatArray, variance: FloatArray, cut: float) -> FloatArray:
    """Return the mean of squares that are cut at a quantile of what the mean implies (Huber's proposal 2).

    _STEPS steps leave an error that does not matter. As soon as a step changes no square's side of the cut,
    every further step is the same linear map, and the remaining steps are made at once.
    """
    divisor, limited = kept_share(cut) * np.maximum(pairs, 1), np.empty_like(squares)
    for _ in range(_STEPS_ALONE):
        np.minimum(squares, (cut * variance)[:, None], out=limited)
        variance = limited.sum(axis=1) / divisor
    bound = (cut * variance)[:, None]
    cut_off = (squares > bound).sum(axis=1)
    rest_sum = np.minimum(squares, bound, out=limited).sum(axis=1) - cut_off * bound[:, 0]
    slope = cut * cut_off / divisor
    limit = rest_sum / divisor / np.where(slope < 1, 1 - slope, np.nan)
    settled = cut_off == (squares > (cut * limit)[:, None]).sum(axis=1)
    result: FloatArray = limit + slope ** (_STEPS - _STEPS_ALONE) * (variance - limit)
    rest = np.flatnonzero(~settled)
    if len(rest):
        part, variance = squares[rest], variance[rest]
        for _ in range(_STEPS - _STEPS_ALONE):
            variance = np.minimum(part, (cut * variance)[:, None]).sum(axis=1) / divisor[rest]
        result[rest] = variance
    return result


@cache
def kept_share(cut: float) -> float:
    """Return the share of the mean of squared normal variables that remains after the cut."""
    return float(special.chdtr(3, cut)) + cut * float(special.chdtrc(1, cut))


def long_run_variance(
    values: FloatArray, weights: FloatArray, *, longest: int
) -> tuple[FloatArray, FloatArray]:
    """Return the variance of a long mean of total weight 1, and the degrees of freedom of the estimate.

    Args:
        values: (series, windows); anything where the weight is 0.
        weights: (series, windows).
        longest: Windows of the longest blocks; an eighth, a quarter and half of it are tried as well.

    Returns:
        (series,) each. The variance is in the squared unit of the values, per unit of weight.
    """
    variances: list[FloatArray] = []
    degrees: list[FloatArray] = []
    for width in sorted({max(1, longest // parts) for parts in (8, 4, 2, 1)}):
        if variances and values.shape[1] // width < _MIN_TRIPLES + 2:
            break
        means, weight = block_means(values, weights, width)
        has_data = weight > 0
        complete = has_data[:, 1:-1] & has_data[:, :-2] & has_data[:, 2:]
        inverse = ratio_or_zero(np.ones(weight.shape), weight)
        spread = np.where(complete, inverse[:, 1:-1] + (inverse[:, :-2] + inverse[:, 2:]) / 4, 1.0)
        away = means[:, 1:-1] - (means[:, :-2] + means[:, 2:]) / 2
        squares = np.where(complete, away**2 / spread, 0.0)
        count = complete.sum(axis=1)
        variance = squares.sum(axis=1) / np.maximum(count, 1)
        median = np.nan_to_num(row_medians(np.where(complete, squares, np.nan))) / MEDIAN_SQUARE
        cut = _TRANSIENT * np.where(median > 0, median, variance)
        variance = np.minimum(squares, cut[:, None]).sum(axis=1) / np.maximum(count, 1)
        # Too few of the longer blocks are ignored; the shortest are used however few they are.
        variances.append(np.where((count >= _MIN_TRIPLES) | (not variances), variance, -1.0))
        # Deviations of neighbours share blocks: correlations of 2/3 and 1/6 at lags 1 and 2.
        degrees.append(np.maximum(count / (1 + 2 * (4 / 9 + 1 / 36)), 1.0))
    best = np.argmax(variances, axis=0)
    rows = np.arange(len(values))
    # An estimate that is the largest cannot fall shorter of the truth than the next finer one does.
    return np.stack(variances)[best, rows], np.stack(degrees)[np.maximum(best - 1, 0), rows]
