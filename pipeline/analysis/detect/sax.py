"""Symbolic Aggregate approXimation: a series as letters (FBDetect §5.4.3; Lin et al., DMKD 2007).

SAX has two steps. Piecewise aggregation replaces blocks of windows by their means, which is what brings the
noise down until a letter says something about the level; then the value range is divided into buckets of
equal width, one letter each. A letter is valid if at least X % of the history has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_DATA = "-"


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Sums over the windows left of each place, from which the mean of any block is a difference."""

    centre: FloatArray  # (rows, 1) taken off before summing, so that the sums stay exact
    moment: FloatArray  # (rows, windows + 1) weight × (value - centre)
    weight: FloatArray  # (rows, windows + 1) weight
    known: FloatArray  # (rows, windows + 1) windows with data


def running_sums(values: FloatArray, weights: FloatArray) -> RunningSums:
    """Sum up rows of a series for ``block_means``.

    Args:
        values: (rows, windows); NaN where the weight is 0.
        weights: (rows, windows), not negative; 0 is no data.
    """
    known = weights > 0
    weight = _running(weights)
    total = _running(np.where(known, values, 0.0) * weights)[:, -1:]
    centre = np.divide(total, weight[:, -1:], out=np.zeros_like(total), where=weight[:, -1:] > 0)
    moment = _running(np.where(known, values - centre, 0.0) * weights)
    return RunningSums(centre, moment, weight, _running(known.astype(np.float64)))


def block_means(sums: RunningSums, starts: IntArray, sizes: IntArray) -> FloatArray:
    """Return the weighted mean of each block; NaN where it leaves the series or misses half of its windows.

    Args:
        sums: Of ``running_sums``.
        starts: (rows, blocks) first window of each block.
        sizes: (rows,) windows per block.
    """
    ends = starts + sizes[:, None]
    last = sums.weight.shape[1] - 1
    inside = (starts >= 0) & (ends <= last)
    left, right = np.clip(starts, 0, last), np.clip(ends, 0, last)

    def between(array: FloatArray) -> FloatArray:
        difference: FloatArray = np.take_along_axis(array, right, 1) - np.take_along_axis(array, left, 1)
        return difference

    known = inside & (between(sums.known) * 2 >= sizes[:, None])
    means: FloatArray = np.divide(
        between(sums.moment), between(sums.weight), out=np.full(starts.shape, np.nan), where=known
    )
    return means + sums.centre


def moving_starts(first: IntArray, end: IntArray, sizes: IntArray) -> IntArray:
    """Return (rows, blocks) starts of the blocks at every place within [first, end); -1 pads short rows."""
    count = np.maximum(end - first - sizes + 1, 0)
    position = np.arange(int(count.max(initial=0)), dtype=np.int64)
    return np.where(position < count[:, None], first[:, None] + position, -1)


def adjacent_starts(first: IntArray, end: IntArray, sizes: IntArray) -> IntArray:
    """Return (rows, blocks) starts of side-by-side blocks in [first, end), in order; -1 pads short rows.

    The last block ends at ``end``; what remains at the beginning is left out. The padding comes first, so
    that the last column is the last block of every row.
    """
    count = np.maximum((end - first) // sizes, 0)
    back = np.arange(int(count.max(initial=0)), 0, -1, dtype=np.int64)
    return np.where(back <= count[:, None], end[:, None] - back * sizes[:, None], -1)


def letters(values: FloatArray, *, lowest: FloatArray, highest: FloatArray, buckets: int = 20) -> IntArray:
    """Return the bucket of each value: 0 is the lowest, -1 is no data.

    Args:
        values: (rows, points); NaN is no data. What lies outside the range gets the outermost letter.
        lowest: (rows,) where the range begins.
        highest: (rows,) where it ends; a range without width has one letter, the lowest.
        buckets: N of §5.4.3.
    """
    width = (highest - lowest)[:, None] / buckets
    position = np.divide(values - lowest[:, None], width, out=np.zeros_like(values), where=width > 0)
    # Rounding must not decide about a value that is the edge of a bucket.
    bucket = np.clip(np.floor(np.nan_to_num(position) + 1e-9), 0, buckets - 1)
    return np.where(np.isnan(values), -1, bucket).astype(np.int64)


def valid_letters(found: IntArray, *, buckets: int = 20, share: float = 0.03) -> BoolArray:
    """Return (rows, buckets): which letters at least ``share`` of a row's points have (X of §5.4.3)."""
    rows = len(found)
    at = found + 1 + np.arange(rows)[:, None] * (buckets + 1)
    counts = np.bincount(at.ravel(), minlength=rows * (buckets + 1)).reshape(rows, buckets + 1)[:, 1:]
    enough: BoolArray = (counts >= share * counts.sum(axis=1, keepdims=True)) & (counts > 0)
    return enough


def spell(found: IntArray) -> str:
    """Return one row of letters as a string: ``abcdcba``, with ``-`` where there is no data."""
    return "".join(_NO_DATA if bucket < 0 else _ALPHABET[bucket] for bucket in found.tolist())


def _running(array: FloatArray) -> FloatArray:
    out = np.zeros((array.shape[0], array.shape[1] + 1))
    np.cumsum(array, axis=1, out=out[:, 1:])
    return out
