"""RegressionGoneAway: has the series returned in its last points? (FBDetect §5.4.3, the last term)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.filters.verdict import Verdict
from pipeline.model import Candidate, FloatArray


@dataclass(frozen=True, slots=True)
class GoneAwayConfig:
    """Settings of the check."""

    remaining: float = 0.5  # nearer to the level before than to the level after counts as gone
    last_share: float = 1 / 3  # of the points after the change, where there is no extended window


def judge_gone_away(
    candidate: Candidate,
    values: FloatArray,
    weights: FloatArray,
    *,
    change_index: int,
    extended_index: int,
    config: GoneAwayConfig | None = None,
) -> Verdict:
    """Pass a candidate whose level at the end is still nearer to the level after than to the one before.

    The end is the extended window, or the last third of the points after the change without one. The one
    window that speaks most for the regression is left out, so that a single spike there cannot hold up a
    change that has gone.

    Args:
        candidate: The change point and its levels.
        values: (windows,) of the candidate's series; NaN where the weight is 0.
        weights: (windows,).
        change_index: First window of the new regime.
        extended_index: First window of the extended window; the number of windows without one.
        config: Settings.
    """
    config = config or GoneAwayConfig()
    if extended_index >= len(values):
        after = len(values) - change_index
        extended_index = len(values) - max(round(after * config.last_share), 1)
    first = max(extended_index, change_index)
    known = weights[first:] > 0
    if not known.any():
        return Verdict(False, 0.0, config.remaining, "no data yet that could confirm it")
    level = _level_without_extreme(values[first:][known], weights[first:][known], rising=candidate.delta > 0)
    remaining = (level - candidate.before) / candidate.delta if candidate.delta else 0.0
    return Verdict(remaining >= config.remaining, remaining, config.remaining, "returned to the level before")


def _level_without_extreme(values: FloatArray, weights: FloatArray, *, rising: bool) -> float:
    """Return the weighted mean without the most extreme point, if there is more than one."""
    if len(values) > 1:
        extreme = int(np.argmax(values) if rising else np.argmin(values))
        values, weights = np.delete(values, extreme), np.delete(weights, extreme)
    return float(np.average(values, weights=weights))
