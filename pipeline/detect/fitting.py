"""Windows fitted to when a service has data: how wide they are, and where its history begins."""

from __future__ import annotations

import math

import numpy as np

from pipeline.model import BoolArray, SeriesMatrix

_LEAST_GAPS = 8
"""Of fewer gaps between data the middle half says little."""


def known_windows(matrix: SeriesMatrix) -> BoolArray:
    """Return which windows have data of any series: (windows,)."""
    known = matrix.totals > 0
    return np.asarray(known & ~np.isnan(matrix.samples).all(axis=0) if matrix.names else known)


def widening(known: BoolArray, most: int) -> int:
    """Return how many windows have to be one for each to have data: at least 1, at most ``most``.

    That is the interval at which data come, the mean of the middle half of the gaps between them:
    an outage does not widen windows, nor does a message that came late.

    Args:
        known: (windows,) where there is data.
        most: Windows that may be one.
    """
    gaps = np.sort(np.diff(np.flatnonzero(known)))
    if len(gaps) < _LEAST_GAPS:
        return 1
    quarter = len(gaps) // 4
    interval = float(gaps[quarter : len(gaps) - quarter].mean())
    return max(1, min(math.ceil(interval), most))


def history_start(known: BoolArray, latest: int) -> int:
    """Return the window in which a history begins: the first with data, but ``latest`` at the latest."""
    return min(int(known.argmax()), latest) if known.any() else latest
