"""Symbolic Aggregate approXimation: a series as letters (FBDetect §5.4.3; Lin et al., DMKD 2007).

SAX has two steps. Piecewise aggregation replaces blocks of windows by their means, which is what brings the
noise down until a letter says something about the level; then the value range is divided into buckets of
equal width, one letter each. A letter is valid if at least X % of the history has it.
"""

from __future__ import annotations

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_DATA = "-"


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


def valid_letters(buckets_of: IntArray, *, buckets: int = 20, share: float = 0.03) -> BoolArray:
    """Return (rows, buckets): which letters at least ``share`` of a row's points have (X of §5.4.3)."""
    rows = len(buckets_of)
    at = buckets_of + 1 + np.arange(rows)[:, None] * (buckets + 1)
    counts = np.bincount(at.ravel(), minlength=rows * (buckets + 1)).reshape(rows, buckets + 1)[:, 1:]
    enough: BoolArray = (counts >= share * counts.sum(axis=1, keepdims=True)) & (counts > 0)
    return enough


def spell(row: IntArray) -> str:
    """Return one row of letters as a string: ``abcdcba``, with ``-`` where there is no data."""
    return "".join(_NO_DATA if bucket < 0 else _ALPHABET[bucket] for bucket in row.tolist())
