"""Budget: the agent's own cost as a share of the host's CPU, kept by sampling all services less often.

Rates of all services fall by the same factor, since the worth of each is not known here. The factor is a
power of a half: every rate is a stratum of its own downstream, so there should be few. The budget cannot
lower costs that do not depend on rates, such as reading /proc; rates never fall below once a minute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.host.rules import LOWEST_HZ

MOST_LEVELS = 16  # from 1,000 Hz to once a minute

MEASURED = 2
"""Intervals at one level before rates fall again: restarting kernels has a cost of its own."""

CALM = 12
"""Intervals at one level before rates rise: two minutes of ten seconds."""

RISE = 3.0
"""Largest factor by which a rate rises from one level to the next: from 1 to 3 Hz."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """Rates are those of the rules divided by ``2 ** level``; shares are those measured at this level."""

    level: int = 0
    shares: tuple[float, ...] = ()


def adjust_level(state: BudgetState, share: float, budget: float) -> BudgetState:
    """Return the state after an interval.

    Args:
        state: State before the interval.
        share: Share of the host's CPU that the agent and its children took in the interval.
        budget: Largest allowed share.
    """
    shares = (*state.shares, share)[-CALM:]
    recent = shares[-MEASURED:]
    mean = sum(recent) / len(recent)
    if len(recent) == MEASURED and mean > budget and state.level < MOST_LEVELS:
        steps = max(1, math.floor(math.log2(mean / budget)))
        return BudgetState(min(state.level + steps, MOST_LEVELS))
    is_calm = len(shares) == CALM and RISE * max(shares) <= budget
    if is_calm and state.level:
        return BudgetState(state.level - 1)
    return BudgetState(state.level, shares)


def rate_at(rate_hz: float, level: int) -> float:
    """Return the rate of a service at a level, once a minute at least.

    From 1 Hz on it is whole and odd: periodic work mostly runs at even rates.
    """
    lowered = math.ldexp(rate_hz, -level)
    if not level:
        return rate_hz
    if lowered < 1:
        return max(lowered, LOWEST_HZ)
    return float(2 * math.floor(lowered / 2) + 1)
