"""The rate of a service that the controller plans: enough for a threshold, and changed seldom.

Every rate is a stratum of its own downstream, so a rate is not changed for a host that restarts or for the
hours of a day: it rises when more was needed for minutes on end, and falls when less was enough for a day.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.host.adaptive import FASTEST_HZ
from agents.host.budget import MOST_LEVELS, rate_at
from agents.host.fleet.status import PlanReason

RISE_S = 600.0
"""Seconds for which a higher rate must have been needed before a rate rises."""

FALL_S = 24 * 3600.0
"""Seconds for which a lower rate must have been enough before a rate falls: longer than daily variation."""

RATES_HZ = tuple(sorted({rate_at(FASTEST_HZ, level) for level in range(MOST_LEVELS + 1)}))
"""Rates that are planned: from once a minute to the fastest adaptive rate."""


@dataclass(frozen=True, slots=True)
class Need:
    """Rates that a service needs and that its hosts can afford, in samples per second and busy processor."""

    enough_hz: float  # rate from which its threshold is detectable; infinite: none
    affordable_hz: float = math.inf  # rate at which its hosts use their whole budgets


@dataclass(frozen=True, slots=True)
class RatePlan:
    """The rate in force, and the target rate."""

    rate_hz: float
    target_hz: float
    reason: PlanReason  # why the target has this value
    since: float | None = None  # when the target began to be above or under the rate in force

    @property
    def changes(self) -> float | None:
        """Epoch seconds when the target comes into force unless it changes; None: it is in force."""
        if self.since is None:
            return None
        return self.since + (RISE_S if self.target_hz > self.rate_hz else FALL_S)


def plan_rate(before: RatePlan | None, need: Need, now: float) -> RatePlan:
    """Return the next plan; the first plan is in force at once.

    Args:
        before: The plan so far.
        need: Present need of the service.
        now: Epoch seconds.
    """
    target_hz, reason = target_of(need)
    if before is None or target_hz == before.rate_hz:
        return RatePlan(target_hz, target_hz, reason)
    rises = target_hz > before.rate_hz
    is_going_on = before.since is not None and (before.target_hz > before.rate_hz) == rises
    plan = RatePlan(before.rate_hz, target_hz, reason, before.since if is_going_on else now)
    if plan.changes is not None and now >= plan.changes:
        return RatePlan(target_hz, target_hz, reason)
    return plan


def target_of(need: Need) -> tuple[float, PlanReason]:
    """Return the lowest rate that is enough, within the bounds of rates and costs, and its reason."""
    enough = next((rate for rate in RATES_HZ if rate >= need.enough_hz), RATES_HZ[-1])
    affordable = max((rate for rate in RATES_HZ if rate <= need.affordable_hz), default=RATES_HZ[0])
    if affordable < enough:
        return affordable, "budget"
    if need.enough_hz > RATES_HZ[-1]:
        return enough, "fastest"
    return enough, "slowest" if need.enough_hz <= RATES_HZ[0] else "enough"
