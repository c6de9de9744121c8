"""The detection threshold: is a change large enough to matter? (FBDetect §5.2, Table 3) And sure enough?"""

from __future__ import annotations

from pipeline.model import Candidate, Decision

BY_CHANCE = 0.01
"""False change points per scan that are tolerated."""


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


def judge_significance(candidate: Candidate, *, series: int, expected: float = BY_CHANCE) -> Decision:
    """Pass a change point of which a scan of so many steady series yields at most ``expected`` by chance.

    A scan looks at thousands of series: at the detector's level of 0.01 each (§5.4.2), dozens of them are
    candidates whenever nothing happened at all. The paper leaves those to its other filters.

    Args:
        candidate: Its ``p_value`` is for its series alone.
        series: How many series the scan looked at.
        expected: False change points per scan that are tolerated.
    """
    statistic = candidate.p_value * series
    rare = statistic <= expected
    return Decision("significance", rare, statistic, expected, "" if rare else "chance")
