"""ImportanceScore, by which the candidate that stands for its group is chosen (FBDetect §5.4.7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ImportanceConfig:
    """Weights of the ImportanceScore; the defaults are those of §5.4.7."""

    relative_weight: float = 0.2
    absolute_weight: float = 0.6
    popularity_weight: float = 0.1
    cause_weight: float = 0.1


def importance_scores(
    before: FloatArray,
    after: FloatArray,
    cause_found: BoolArray,
    groups: IntArray,
    *,
    config: ImportanceConfig | None = None,
) -> FloatArray:
    """Return each candidate's ImportanceScore within its group: (candidates,), from 0 to the weights' sum.

    The paper gives no units, so every term is scaled to between 0 and 1. RelativeCostChange is the
    change as a share of the larger of both levels, which has the order of the share of the level before,
    and is 1 for a subroutine that did not exist before. AbsoluteChange is the change as a share of the
    largest change in the group. PopularityScore, the probability that a random stack sample holds the
    subroutine, is its gCPU.

    Args:
        before: (candidates,) gCPU ratios.
        after: (candidates,) gCPU ratios.
        cause_found: (candidates,) True if any potential root cause is known.
        groups: (candidates,) number of the candidate's group.
        config: Weights.
    """
    config = config or ImportanceConfig()
    changes, levels = np.abs(after - before), np.maximum(before, after)
    largest = np.zeros(int(groups.max(initial=-1)) + 1)
    np.maximum.at(largest, groups, changes)
    scores: FloatArray = (
        config.relative_weight * _share(changes, levels)
        + config.absolute_weight * _share(changes, largest[groups])
        + config.popularity_weight * (1.0 - np.clip(after, 0.0, 1.0))
        + config.cause_weight * cause_found
    )
    return scores


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
