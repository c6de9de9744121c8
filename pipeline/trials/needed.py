"""How many trials a threshold takes (ServiceLab, Figure 6)."""

from __future__ import annotations

import numpy as np
from scipy import special

from pipeline.model import FloatArray, IntArray

MOST_TRIALS = 10_000


def half_widths(history: FloatArray, trials: IntArray, confidence: float = 0.95) -> FloatArray:
    """Return half of the interval of a mean over so many trials: (trials,), relative.

    The figure's rule, two standard deviations, with Student's quantile for the few tests that there are.

    Args:
        history: (tests,) relative differences of A/A trials, two at least.
        trials: Numbers of trials.
        confidence: Of the interval.
    """
    # Which side is called A is chance: the true mean is 0.
    deviation = float(np.sqrt(np.mean(np.square(history))))
    quantile = float(special.stdtrit(len(history), 0.5 + confidence / 2.0))
    result: FloatArray = quantile * deviation / np.sqrt(trials)
    return result


def trials_needed(history: FloatArray, threshold: float, confidence: float = 0.95) -> int | None:
    """Return the fewest trials whose interval is no wider than the threshold each way; None if too many."""
    if len(history) < 2:
        return None
    one = float(half_widths(history, np.array([1]), confidence)[0])
    if one / np.sqrt(MOST_TRIALS) > threshold:
        return None
    return max(1, int(np.ceil((one / threshold) ** 2 - 1e-9)))
