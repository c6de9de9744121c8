"""Ranks the changes deployed just before a regression by how relevant they are to it (FBDetect §5.4.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.model import BoolArray, Change, StackMatrix, Suspect
from pipeline.rootcause.attribution import attributed_fraction


@dataclass(frozen=True, slots=True)
class RankingConfig:
    """Weights of the factors, and how many suspects are told; the paper gives no numbers."""

    attribution_weight: float = 0.9
    recency_weight: float = 0.1
    min_score: float = 0.2  # under it a change is not suggested: recency alone accuses nobody
    most: int = 3  # §5.4.9: developers are presented with ranked candidates


def candidate_changes(
    changes: Sequence[Change], change_time: float, *, lookback_s: float, tolerance_s: float
) -> tuple[Change, ...]:
    """Return the changes deployed immediately before a change point, oldest first.

    Of a change that was announced several times in that span, by each host or restart, the first counts.

    Args:
        changes: Deployed changes of the service.
        change_time: Start of the first window of the new regime, epoch seconds.
        lookback_s: How long before it a change may have been deployed.
        tolerance_s: How long after it, since a change point is only as exact as its windows.
    """
    near = [c for c in changes if change_time - lookback_s <= c.time <= change_time + tolerance_s]
    first: dict[str, Change] = {}
    for change in sorted(near, key=lambda change: (change.time, change.id)):
        first.setdefault(change.id, change)
    return tuple(first.values())


def rank_suspects(
    matrix: StackMatrix,
    regressed: BoolArray,
    changes: Sequence[Change],
    change_time: float,
    *,
    lookback_s: float,
    config: RankingConfig | None = None,
) -> tuple[Suspect, ...]:
    """Rank candidate changes by the weighted sum of their factors.

    Factors, each from 0 to 1: ``attribution``, the fraction of the regression from stacks that hold a
    modified subroutine; ``recency``, 1 for a change deployed right at the change point and 0 for one
    ``lookback_s`` earlier.

    Args:
        matrix: Stack counts before and after the change point.
        regressed: (stacks,) which stacks hold the regressed series.
        changes: From ``candidate_changes``.
        change_time: Epoch seconds.
        lookback_s: As for ``candidate_changes``.
        config: Weights.

    Returns:
        The most relevant first; empty where none is relevant enough.
    """
    config = config or RankingConfig()
    suspects = []
    for change in changes:
        fraction = attributed_fraction(matrix, regressed, change.subroutines) or 0.0
        age_s = max(change_time - change.time, 0.0)
        factors = {
            "attribution": min(max(fraction, 0.0), 1.0),
            "recency": max(1.0 - age_s / lookback_s, 0.0) if lookback_s else 0.0,
        }
        score = (
            config.attribution_weight * factors["attribution"] + config.recency_weight * factors["recency"]
        )
        if score >= config.min_score:
            suspects.append(Suspect(change, score, factors))
    suspects.sort(key=lambda suspect: (-suspect.score, -suspect.change.time, suspect.change.id))
    return tuple(suspects[: config.most])
