"""Confidence interval test: comparison with recent differences of two runs of the same code (§4.2)."""

from __future__ import annotations

import numpy as np

from pipeline.experiments.trials.estimate import Estimates
from pipeline.model import FloatArray

DRAWS = 4095
_MOST_DRAWN = 4_000_000  # differences at a time, which bounds memory
_SEED = 20240711


def interval_test(differences: FloatArray, history: FloatArray, alpha: float) -> Estimates:
    """Compare the mean of trials' differences with those of A/A tests.

    Equal runs are assigned to sides by chance, so absolute differences alone count. One trial is ranked among
    the sizes of the history: exact, however these are distributed. Several are ranked among means of as many,
    drawn from it with signs at random.

    Args:
        differences: (experiments, trials), relative.
        history: (tests,) relative differences of single A/A trials.
        alpha: Chance that equal sides differ significantly.
    """
    observed = differences.mean(axis=1)
    usual = np.sort(_usual_sizes(np.abs(history), differences.shape[1]))
    count = len(usual)
    reached = count - np.searchsorted(usual, np.abs(observed), side="left")
    p_value = (1.0 + reached) / (count + 1.0)
    rank = int(np.ceil((1.0 - alpha) * (count + 1.0) - 1e-9))
    half = usual[rank - 1] if rank <= count else np.inf
    return Estimates(observed, observed - half, observed + half, p_value)


def _usual_sizes(sizes: FloatArray, trials: int) -> FloatArray:
    if trials == 1 or not len(sizes):
        return sizes
    draw = np.random.default_rng(_SEED)
    step = max(1, _MOST_DRAWN // trials)
    parts = []
    for first in range(0, DRAWS, step):
        chosen = sizes[draw.integers(0, len(sizes), size=(min(step, DRAWS - first), trials))]
        signs = draw.choice([-1.0, 1.0], size=chosen.shape)
        parts.append(np.abs((signs * chosen).mean(axis=1)))
    return np.concatenate(parts)
