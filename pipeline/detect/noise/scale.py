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
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import ndimage, special

from pipeline.detect.change_point import ratio
from pipeline.model import BoolArray, FloatArray
from pipeline.robust import MEDIAN_SQUARE, may_exceed_median

_RANDOM_WALK = 1.0
"""Power of their length by which the variance of a random walk's means exceeds that of white noise."""


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
    """Return the variance of a mean of exposure 1, and the degrees of freedom it was estimated with.

    Args:
        observed: (series, history) counts, or values times their weights.
        exposure: (series, history) or (1, history) counts expected, or weights; 0 where there is no data. The
            mean of a block is what was observed by its exposure, and its variance the result by the exposure:
            for counts the dispersion, 1 if only sampling makes noise.
        longest: How many windows are compared as one level.
        apart: How many windows lie between the middles of the two levels.
        counts: Whether ``observed`` are counts, whose noise is skewed where they are few.
        config: Settings.

    Returns:
        (series,) each; a series without any data has a variance of 0.
    """
    config = config or NoiseConfig()
    variance, degrees, paired = _by_scales(observed, exposure, longest, apart, counts, config)
    rows = np.flatnonzero(paired < config.paired)
    if not len(rows):
        return variance, degrees
    known = np.broadcast_to(exposure > 0, observed.shape)
    rows = rows[known[rows].any(axis=1) & ~known[rows].all(axis=1)]
    # What is compared has its data in the same pattern: so many windows with data, over as long a time.
    patterns: dict[bytes, list[int]] = {}
    for row, packed in zip(rows.tolist(), np.packbits(known[rows], axis=1), strict=True):
        patterns.setdefault(packed.tobytes(), []).append(row)
    for some in patterns.values():
        part, pattern = np.array(some), known[some[0]]
        share = float(pattern.mean())
        own = observed[part][:, pattern], np.broadcast_to(exposure, observed.shape)[part][:, pattern]
        shorter = max(1, round(longest * share)), max(1, round(apart * share))
        measured, degrees_of_those, _ = _by_scales(*own, *shorter, counts, config)
        better = degrees_of_those > degrees[part]
        variance[part[better]] = measured[better]
        degrees[part[better]] = degrees_of_those[better]
    return variance, degrees


def _by_scales(
    observed: FloatArray, exposure: FloatArray, longest: int, apart: int, counts: bool, config: NoiseConfig
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the largest variance of all scales, its degrees of freedom, and the least share of pairs."""
    history = observed.shape[1]
    scales = _scales(history, longest, apart, config)
    at_scale = partial(_at_scale, counts=counts, config=config)
    found = [at_scale(observed, exposure, scale) for scale in scales]
    variances, degrees, paired = (np.stack(column) for column in zip(*found, strict=True))
    # Where levels change longer means differ by more.
    rows = np.flatnonzero(variances.max(axis=0) > config.restless * variances.min(axis=0))
    own = observed[rows], np.broadcast_to(exposure, observed.shape)[rows]
    jumping = _find_jumps(*_block_ratios(*own, scales[-1].width), config).any(axis=1)
    if jumping.any():
        rows, own = rows[jumping], (own[0][jumping], own[1][jumping])
        found = [at_scale(*own, scale, jumps=True) for scale in scales]
        variances[:, rows], degrees[:, rows], _ = (np.stack(column) for column in zip(*found, strict=True))
    best = variances.argmax(axis=0)
    # An estimate that is the largest cannot fall shorter of the truth than the next finer one does.
    rows = np.arange(len(observed))
    growth = _growth(variances, scales[-1].width, longest)
    return variances[best, rows] * growth, degrees[np.maximum(best - 1, 0), rows], paired.min(axis=0)


class _Scale(NamedTuple):
    """Blocks of one width, and how many of them apart those are that are compared."""

    width: int
    lag: int


def _scales(history: int, longest: int, apart: int, config: NoiseConfig) -> list[_Scale]:
    """Return the scales at which the noise of a history is measured, the finest first."""
    widths = [max(1, min(longest, history // config.min_blocks))]
    while widths[-1] > 1:
        widths.append(widths[-1] // config.ratio or 1)
    # In a short history a change of level would touch too many pairs that lie far apart.
    return [
        _Scale(width, max(1, min(round(apart / width), history // width // 8))) for width in reversed(widths)
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
    scale: _Scale,
    *,
    counts: bool,
    config: NoiseConfig,
    jumps: bool = False,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance at one scale, its degrees of freedom, and which share of the blocks makes pairs.

    With ``jumps``, they are estimated by pairs without any.
    """
    width, lag = scale
    means, inverse = _block_ratios(observed, exposure, width)
    known = inverse > 0
    both = known[:, lag:] & known[:, :-lag]
    spread = np.where(both, inverse[:, lag:] + inverse[:, :-lag], np.inf)
    squares = means[:, lag:] - means[:, :-lag]
    squares *= squares
    squares /= spread
    pairs = np.broadcast_to(both.sum(axis=1), len(squares))
    paired = pairs / np.maximum(known.sum(axis=1), 1)
    # Transients of the past say nothing about noise; but a rare thing's few samples are no outliers.
    few = np.zeros(len(means), dtype=np.bool_)
    if counts:
        few = observed.sum(axis=1) < config.typical * known.sum(axis=1)
    # Where most neighbours are equal, what differs is the noise, and nothing would be left of it.
    few = few | (2 * (squares > 0).sum(axis=1) < pairs)
    if jumps:
        passed = np.cumsum(_find_jumps(means, inverse, config), axis=1)
        whole = (passed[:, lag:] == passed[:, :-lag]) & both
        enough = (whole.sum(axis=1) >= config.between_jumps * pairs) & ~few
        squares *= whole | ~enough[:, None]
        pairs = np.where(enough, whole.sum(axis=1), pairs)
    variance = squares.sum(axis=1) / np.maximum(pairs, 1)
    robust = np.flatnonzero(~few)
    if squares.shape[1] > config.many:  # then the plain mean does, but where something stands out
        robust = robust[_stand_out(squares[robust], variance[robust])]
    if len(robust):
        variance[robust] = _cut_mean(squares[robust], pairs[robust], variance[robust], config.cut)
    return variance, np.maximum(pairs * config.efficiency, 1.0), paired


def _stand_out(squares: FloatArray, variance: FloatArray) -> BoolArray:
    """Return the rows in which a square is larger than so many of such a variance have one: (rows,)."""
    bound = special.chdtri(1, 0.01 / squares.shape[1])
    largest = squares.max(axis=1, initial=0.0)
    result: BoolArray = largest > bound * variance
    # By the median too, for what stands out far enough raises the mean that it is held against.
    rows = np.flatnonzero(~result & may_exceed_median(squares, bound / MEDIAN_SQUARE))
    result[rows] = largest[rows] > bound * (np.median(squares[rows], axis=1) / MEDIAN_SQUARE)
    return result


def _block_ratios(observed: FloatArray, exposure: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """Return (series, blocks) what was observed by its exposure, and the inverse of that; 0 without."""
    exposure = _block_sums(exposure, width)
    inverse = 1.0 / np.where(exposure > 0, exposure, np.inf)
    return _block_sums(observed, width) * inverse, inverse


def _find_jumps(means: FloatArray, inverse: FloatArray, config: NoiseConfig) -> BoolArray:
    """Return before which blocks the level jumps: (series, blocks).

    A jump is where the means of some blocks before and after differ by more than such means usually do, and
    by more than at the places around it.
    """
    side = max(1, min(config.side, means.shape[1] // config.min_blocks))
    weight = ratio(np.ones_like(inverse), inverse)
    block_weights = _moving_sums(weight, side)
    levels, spread = (
        ratio(_moving_sums(means * weight, side), block_weights),
        ratio(np.ones_like(block_weights), block_weights),
    )
    both = (block_weights[:, side:] > 0) & (block_weights[:, :-side] > 0)
    apart = np.where(both, levels[:, side:] - levels[:, :-side], 0.0)
    squares = ratio(apart**2, spread[:, side:] + spread[:, :-side])
    jumps = np.zeros(means.shape, dtype=np.bool_)
    if not squares.size:
        return jumps
    bound = special.chdtri(1, config.jump / squares.shape[1])
    rows = np.flatnonzero(may_exceed_median(squares, bound / MEDIAN_SQUARE))
    squares = squares[rows]
    usual = np.median(squares, axis=1, keepdims=True) / MEDIAN_SQUARE
    outlying = squares > bound * usual
    highest = squares == ndimage.maximum_filter1d(squares, 2 * side + 1, axis=1)
    # A block that a jump lies in differs from both its neighbours.
    jumps[rows, side : side + squares.shape[1]] = outlying & ndimage.maximum_filter1d(highest, 3, axis=1)
    return jumps


def _moving_sums(values: FloatArray, length: int) -> FloatArray:
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    return np.asarray(sums[:, length:] - sums[:, :-length])


def _block_sums(values: FloatArray, width: int) -> FloatArray:
    """Return sums of blocks; what fills none is left out at the old end, as new windows matter most."""
    first = values.shape[1] % width
    sums = values[:, first::width]
    # By the index in the block: sums over an axis as short as most blocks are cost several times as much.
    for index in range(first + 1, first + width):
        sums = sums + values[:, index::width]
    return sums


def _cut_mean(squares: FloatArray, pairs: FloatArray, variance: FloatArray, cut: float) -> FloatArray:
    """Return the mean of squares that are cut at a quantile of what the mean implies (Huber's proposal 2)."""
    kept = special.chdtr(3, cut) + cut * special.chdtrc(1, cut)
    divisor, limited = kept * np.maximum(pairs, 1), np.empty_like(squares)
    for _ in range(20):
        np.minimum(squares, (cut * variance)[:, None], out=limited)
        variance = limited.sum(axis=1) / divisor
    return variance
