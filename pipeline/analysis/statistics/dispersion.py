"""Dispersion of shares: their variance in units of that of chance, in time and between senders."""

from __future__ import annotations

import numpy as np

from pipeline.model import FloatArray, IntArray

_FEWEST_WINDOWS = 8
_LEAST_COUNT = 20.0
"""Fewest samples, with and without a series, of a series that is used."""


def between_windows(samples: FloatArray, totals: FloatArray) -> float:
    """Return the dispersion of shares from window to window: 1 by chance alone, and at least 1.

    It is estimated from differences of neighbours (von Neumann, Annals of Mathematical Statistics 12, 1941),
    so that a daily cycle does not count, and is the median of series, since some of them may have changed.

    Args:
        samples: (series, windows).
        totals: (windows,) all samples; windows without any are left out.
    """
    counted = totals > 0
    if counted.sum() < _FEWEST_WINDOWS:
        return 1.0
    residuals = _residuals(samples[:, counted], totals[counted], np.zeros(int(counted.sum()), dtype=np.int64))
    return _median(0.5 * np.mean(np.diff(residuals, axis=1) ** 2, axis=1))


def between_senders(samples: FloatArray, totals: FloatArray, side: IntArray) -> float:
    """Return the dispersion of shares between the senders of each side: at least 1; 1 for one sender a side.

    Args:
        samples: (series, senders).
        totals: (senders,) all samples.
        side: (senders,) number of the side, from 0, of each sender.
    """
    counted = totals > 0
    sides, side = np.unique(side[counted], return_inverse=True)
    degrees = int(counted.sum()) - len(sides)
    if degrees < 1:
        return 1.0
    residuals = _residuals(samples[:, counted], totals[counted], side.reshape(-1).astype(np.int64))
    return _median((residuals**2).sum(axis=1) / degrees)


def _residuals(samples: FloatArray, totals: FloatArray, group: IntArray) -> FloatArray:
    """Return the difference of counts from the share of their group: (series with enough samples, columns).

    The unit is the standard error of sampling.
    """
    members = (group[:, None] == np.arange(int(group.max(initial=0)) + 1)).astype(np.float64)
    share = ((samples @ members) / (totals @ members))[:, group]
    whole = samples.sum(axis=1) / totals.sum()
    enough = whole * (1.0 - whole) * totals.sum() >= _LEAST_COUNT
    expected = share[enough] * totals
    variance = np.maximum(expected * (1.0 - share[enough]), 1e-9)
    residuals: FloatArray = (samples[enough] - expected) / np.sqrt(variance)
    return residuals


def _median(dispersions: FloatArray) -> float:
    return max(1.0, float(np.median(dispersions))) if len(dispersions) else 1.0
