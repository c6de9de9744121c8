"""Number of trials that a threshold takes (ServiceLab, Figure 6)."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.analysis.statistics.always_valid import t_radius
from pipeline.model import FloatArray, IntArray

MOST_TRIALS = 10_000


def half_widths(history: FloatArray, trials: IntArray, confidence: float = 0.95) -> FloatArray:
    """Return half of the interval of a mean over each number of trials: (trials,), relative.

    The figure's rule, two standard deviations, with Student's quantile for the few tests that there are.

    Args:
        history: (tests,) relative differences of A/A trials, two at least.
        trials: Numbers of trials.
        confidence: Of the interval.
    """
    quantile = float(special.stdtrit(len(history), 0.5 + confidence / 2.0))
    result: FloatArray = quantile * _deviation(history) / np.sqrt(trials)
    return result


def trials_needed(
    history: FloatArray, threshold: float, alpha: float = 0.05, *, sequential: bool = False
) -> int | None:
    """Return the fewest trials whose interval is no wider than the threshold each way; None if too many.

    Args:
        history: (tests,) relative differences of A/A trials.
        threshold: Relative.
        alpha: Chance that the interval misses the true difference.
        sequential: Whether one looks after every trial.
    """
    if len(history) < 2:
        return None
    if sequential:
        trials = np.arange(2, MOST_TRIALS + 1)
        with np.errstate(invalid="ignore"):  # without a spread, and before there is an interval
            half = t_radius(trials, alpha) * _deviation(history) / np.sqrt(trials)
        enough = np.flatnonzero(half <= threshold)
        return int(trials[enough[0]]) if len(enough) else None
    width_of_one = float(half_widths(history, np.array([1]), 1.0 - alpha)[0])
    if not width_of_one / np.sqrt(MOST_TRIALS) <= threshold:
        return None
    return max(1, int(np.ceil((width_of_one / threshold) ** 2 - 1e-9)))


def _deviation(history: FloatArray) -> float:
    """Return the spread around 0, the true mean: sides of A/A trials are assigned by chance."""
    return float(np.sqrt(np.mean(np.square(history))))
