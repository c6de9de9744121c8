"""Detection threshold: the least change that matters (FBDetect §5.2, Table 3)."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.analysis.filters.evidence import FilterCase
from pipeline.model import Candidate, Decision


def decide(candidates: Sequence[Candidate], case: FilterCase) -> list[Decision]:
    """Decide on each candidate by the workload's threshold."""
    config = case.config
    return [judge_threshold(c, absolute=config.absolute, relative=config.relative) for c in candidates]


def judge_threshold(
    candidate: Candidate, *, absolute: float | None = None, relative: float | None = None
) -> Decision:
    """Pass a change of at least ``absolute`` (the series' unit) or ``relative`` (share of the level before).

    Exactly one of the two is given. The size counts, not the direction.
    """
    if absolute is not None:
        statistic, bound, code = abs(candidate.delta), absolute, "absolute"
    elif relative is not None:
        statistic, bound, code = abs(candidate.relative), relative, "relative"
    else:
        raise ValueError("give either absolute or relative")
    # What did not exist before has an infinite relative change, which no message can carry.
    statistic = min(statistic, 1e9)
    reached = statistic >= bound * (1 - 1e-9)  # 0.011 - 0.01 falls short of 0.001 by rounding alone
    return Decision("threshold", reached, statistic, bound, "" if reached else code)
