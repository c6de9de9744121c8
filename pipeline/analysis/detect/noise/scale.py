"""How noisy a series is, at the scale on which its levels are compared.

Sampling alone gives a mean of n windows an n-th of one window's variance. Servers that differ and load that
wanders add to that, and what they add averages out more slowly: neighbours are similar. So the variance is
measured where it matters, on means of blocks as long as what is compared (batch means; Wu and Zhao 2007 for
series whose level may change): from differences of blocks that lie as far apart as what is compared. Those
that a jump lies between are left out, as far as enough others remain: where jumps are few they are changes,
where they are many they are noise. It is estimated at several scales, and the largest counts: with positive
autocorrelation the variance per sample only grows with the scale, and the estimates of long blocks, of which
there are few, may fall short by chance.

Where data come in a pattern (five windows of twelve), few blocks may have a partner at that distance. Then
the windows without data are left out first. What is compared has the same pattern, so that so many windows
with data are what one level holds, and they lie as far apart in time: neighbours across a gap are less
similar than others, in the estimate and in what it is for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special

from pipeline.analysis.detect.noise.block_sums import BlockSums
from pipeline.analysis.detect.noise.jumps import find_jumps
from pipeline.analysis.statistics.robust import MEDIAN_SQUARE, may_exceed_median, medians_of_rows
from pipeline.model import BoolArray, FloatArray, IntArray

_RANDOM_WALK = 1.0
"""Power of their length by which the variance of a random walk's means exceeds that of white noise."""


_STEPS = 20
"""Of the cut mean; each halves what is left of its error."""

_STEPS_ALONE = 7
"""Of those that are made one by one; after so many hardly a square lies between the mean and its limit."""


@dataclass(frozen=True, slots=True)
class NoiseConfig:
    """Settings of the estimate."""

    min_blocks: int = 24  # of the longest scale: fewer leave the estimate itself too uncertain
    ratio: int = 3  # between scales
    cut: float = 1.642  # a squared difference counts for no more than its 80 % quantile: see _cut_mean
    efficiency: float = 0.48  # degrees of freedom a pair of neighbours, with that cut; by simulation
    many: int = 300  # pairs from which on the cut is made only where it is needed
    typical: float = 5.0  # counts a block from which on they are near enough to normal for that
    jump: float = 1e-4  # significance, in a history, of a difference that is a change of level
    restless: float = 1.5  # by how much the noise of scales differs where jumps are looked for
    side: int = 8  # blocks on either side of a jump that it is looked for with: more may hold another
    paired: float = 0.5  # of blocks with data that have a partner: if fewer, what is empty is left out
    between_jumps: float = 1 / 3  # of all pairs: if fewer have no jump between them, jumps are the noise


def unit_variance(
    observed: FloatArray,
    exposure: FloatArray,
    *,
    longest: int,
    apart: int,
    counts: bool,
    config: NoiseConfig | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the noise of all series at one scale: see ``SeriesNoise``, which knows it at several."""
    noise = SeriesNoise(observed, exposure, counts=counts, config=config)
    return noise.unit_variance(np.arange(len(observed)), longest=longest, apart=apart)


class SeriesNoise:
    """The noise of series at any scale; what several scales have in common is measured once."""

    def __init__(
        self, observed: FloatArray, exposure: FloatArray, *, counts: bool, config: NoiseConfig | None = None
    ) -> None:
        """Take series.

        Args:
            observed: (series, history) counts, or values times their weights.
            exposure: (series, history) or (1, history) counts expected, or weights; 0 where there is no data.
                The mean of a block is what was observed by its exposure, and its variance the result by the
                exposure: for counts the dispersion, 1 if only sampling makes noise.
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
            longest: How many windows are compared as one level.
            apart: How many windows lie between the middles of the two levels.

        Returns:
            (rows,) each; a series without any data has a variance of 0.
        """
        variance, degrees, paired = self._by_scales(rows, longest, apart)
        unpaired = np.flatnonzero(paired < self._config.paired)
        if not len(unpaired):
            return variance, degrees
        observed, exposure = self._blocks.of_rows(rows[unpaired], 1)
        exposure = np.broadcast_to(exposure, observed.shape)
        # What is compared has its data in the same pattern: so many windows with data, over as long a time.
        for pattern, some in _patterns(exposure > 0):
            share = float(pattern.mean())
            shorter = max(1, round(longest * share)), max(1, round(apart * share))
            shown = observed[some][:, pattern], exposure[some][:, pattern]
            known = SeriesNoise(*shown, counts=self._counts, config=self._config)
            measured, own_degrees, _ = known._by_scales(np.arange(len(some)), *shorter)
            part, better = unpaired[some], own_degrees > degrees[unpaired[some]]
            variance[part[better]], degrees[part[better]] = measured[better], own_degrees[better]
        return variance, degrees

    def floor(self, rows: IntArray, *, longest: int, apart: int) -> FloatArray:
        """Return a variance no larger than that of ``unit_variance``, where most blocks make pairs: (rows,).

        It is that of the longest blocks, of which there are few; the largest of all scales counts.
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
        found = np.stack([self._at(scale, rows) for scale in scales], axis=1)
        # Where levels change longer means differ by more.
        restless = np.flatnonzero(found[0].max(axis=0) > config.restless * found[0].min(axis=0))
        if len(restless):
            jumping = restless[self._jumps(rows[restless], scales[-1].width).any(axis=1)]
            if len(jumping):
                between = [self._at(scale, rows[jumping], jumps=True) for scale in scales]
                found[:2, :, jumping] = np.stack(between, axis=1)[:2]
        variances, degrees, paired = found
        best = variances.argmax(axis=0)
        # An estimate that is the largest cannot fall shorter of the truth than the next finer one does.
        every = np.arange(len(rows))
        growth = _growth(variances, scales[-1].width, longest)
        return variances[best, every] * growth, degrees[np.maximum(best - 1, 0), every], paired.min(axis=0)

    def _at(self, scale: Scale, rows: IntArray, *, jumps: bool = False) -> FloatArray:
        """Return variance, degrees of freedom and share of pairs at a scale, measured or known: (3, rows)."""
        series = len(self._whole)
        known = self._measured.setdefault((scale, jumps), np.full((3, series), np.nan))
        missing = rows[np.isnan(known[0, rows])]
        if len(missing):
            observed, exposure = self._blocks.of_rows(missing, scale.width)
            jumping = self._jumps(missing, scale.width) if jumps else None
            whole = self._whole[missing] if self._counts else None
            known[:, missing] = _at_scale(observed, exposure, whole, scale.lag, jumping, self._config)
        return known if len(rows) == series else known[:, rows]

    def _jumps(self, rows: IntArray, width: int) -> BoolArray:
        """Return before which blocks of a width the level of series jumps: (rows, blocks)."""
        observed, exposure = self._blocks.of_rows(rows, width)
        side = max(1, min(self._config.side, observed.shape[1] // self._config.min_blocks))
        return find_jumps(observed, exposure, side=side, significance=self._config.jump)


def _patterns(known: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield each pattern of windows with data, and which rows have it; not where there is all or none."""
    partly = np.flatnonzero(known.any(axis=1) & ~known.all(axis=1))
    patterns: dict[bytes, list[int]] = {}
    for row, packed in zip(partly.tolist(), np.packbits(known[partly], axis=1), strict=True):
        patterns.setdefault(packed.tobytes(), []).append(row)
    for rows in patterns.values():
        yield known[rows[0]], np.array(rows)


class Scale(NamedTuple):
    """Blocks of one width, and how many of them apart those are that are compared."""

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
    """Return by how much means that are longer than any block vary more: (series,).

    Their variance goes on growing as it does from the finest of (scales, series) variances to the last.
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
    """Return the variance at one scale, its degrees of freedom, and which share of the blocks makes pairs.

    Args:
        observed: (series, blocks) sums.
        exposure: (series, blocks) or (1, blocks) sums.
        whole: (series,) all that was observed, if those are counts.
        lag: How many blocks those are apart that are compared.
        jumps: (series, blocks) before which the level jumps: it is estimated by pairs without any between.
        config: Settings.
    """
    known = exposure > 0
    complete = bool(known.all())
    known = known[:1] if complete else known  # one row says it for all
    inverse = 1.0 / (exposure if complete else np.where(known, exposure, np.inf))
    means = observed * inverse
    both = known[:, lag:] & known[:, :-lag]
    # In place: new memory costs as much as what is computed in it.
    squares = means[:, lag:] - means[:, :-lag]
    squares *= squares
    spread = inverse[:, lag:] + inverse[:, :-lag]
    squares /= spread if complete else np.where(both, spread, np.inf)
    blocks = known.sum(axis=1)
    pairs = np.broadcast_to(both.sum(axis=1), len(squares))
    paired = pairs / np.maximum(blocks, 1)
    # Where most neighbours are equal, what differs is the noise, and nothing would be left of it.
    few = 2 * (squares > 0).sum(axis=1) < pairs
    if whole is not None:
        # Transients of the past say nothing about noise; but a rare thing's few samples are no outliers.
        few |= whole < config.typical * blocks
    if jumps is not None:
        passed = np.cumsum(jumps, axis=1)
        between = (passed[:, lag:] == passed[:, :-lag]) & both
        enough = (between.sum(axis=1) >= config.between_jumps * pairs) & ~few
        squares *= between | ~enough[:, None]
        pairs = np.where(enough, between.sum(axis=1), pairs)
    variance = squares.sum(axis=1) / np.maximum(pairs, 1)
    robust = np.flatnonzero(~few)
    if squares.shape[1] > config.many:  # then the plain mean does, but where something stands out
        robust = robust[_stand_out(_taken(squares, robust), variance[robust])]
    if len(robust):
        variance[robust] = _cut_mean(_taken(squares, robust), pairs[robust], variance[robust], config.cut)
    return variance, np.maximum(pairs * config.efficiency, 1.0), paired


def _taken(values: FloatArray, rows: IntArray) -> FloatArray:
    """Return some rows, without a copy where those are all."""
    return values if len(rows) == len(values) else values[rows]


def _stand_out(squares: FloatArray, variance: FloatArray) -> BoolArray:
    """Return the rows in which a square is larger than so many of such a variance have one: (rows,)."""
    bound = special.chdtri(1, 0.01 / squares.shape[1])
    largest = squares.max(axis=1, initial=0.0)
    result: BoolArray = largest > bound * variance
    # By the median too, for what stands out far enough raises the mean that it is held against.
    rows = np.flatnonzero(~result & may_exceed_median(squares, bound / MEDIAN_SQUARE))
    if len(rows):
        result[rows] = largest[rows] > bound * (medians_of_rows(squares[rows]) / MEDIAN_SQUARE)
    return result


def _cut_mean(squares: FloatArray, pairs: FloatArray, variance: FloatArray, cut: float) -> FloatArray:
    """Return the mean of squares that are cut at a quantile of what the mean implies (Huber's proposal 2).

    It is repeated so often that the mean hardly moves. Once it moves past no square any more, each step is
    the same linear one, and the steps that are left are made at once.
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
    """Return which share of the mean of normal squares such a cut leaves."""
    return float(special.chdtr(3, cut)) + cut * float(special.chdtrc(1, cut))
