"""Capacity: the rate at which a service breaks its objective, found by steps, and the comparison of two."""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.experiments.replay.outcome import is_bad, pace_of
from agents.experiments.replay.plan import NamedRequest, Rewriting, at_rate, planned
from agents.experiments.replay.replayer import Replayed, Replayer
from agents.experiments.replay.trace import Trace
from pipeline.experiments.trials.student import paired_t_test
from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class Objective:
    """Objective of a service (SLO)."""

    p99_s: float = 0.5
    errors: float = 0.01
    """Share of requests without an answer, or with status 500 and more."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Rates that are tried, each a factor above the last."""

    start: float = 10.0
    factor: float = 1.1
    most: float = 10_000.0
    seconds: float = 10.0
    """Seconds of each step; its first fifth is not counted."""

    def rates(self) -> list[float]:
        """Return the rates, requests a second."""
        count = 1 + math.floor(math.log(self.most / self.start) / math.log(self.factor) + 1e-9)
        return [self.start * self.factor**step for step in range(count)]


@dataclass(frozen=True, slots=True)
class SideLoad:
    """Figures of a side at one rate."""

    rate: float
    p99_s: float
    errors: float
    lag_p99_s: float  # of the replayer

    def holds(self, objective: Objective) -> bool:
        """Return whether the side held its objective."""
        return self.p99_s <= objective.p99_s and self.errors <= objective.errors


@dataclass(frozen=True, slots=True)
class Knee:
    """The rate at which a side breaks its objective."""

    rate: float
    broke: bool  # False: it held at all rates that were tried
    loads: tuple[SideLoad, ...]


@dataclass(frozen=True, slots=True)
class CapacityComparison:
    """Knees of both sides over repeats."""

    a: float  # mean requests a second
    b: float
    difference: float  # relative to side A
    low: float  # interval of 95 %; infinite with one repeat
    high: float
    p_value: float


async def load_at(
    replayer: Replayer, chosen: Sequence[NamedRequest], rewriting: Rewriting, rate: float, seconds: float
) -> SideLoad:
    """Send requests at a rate to the single side of a replayer, and return its figures."""
    count = max(5, round(rate * seconds))
    schedule = at_rate(chosen, rate, count - count // 5, count // 5)
    replayed = await replayer.run(planned(schedule, rewriting), Trace(secrets.token_hex(8)))
    return load_of(rate, replayed)


def load_of(rate: float, replayed: Replayed) -> SideLoad:
    """Return the figures of the single side of a replay, without its warm-up."""
    counted = [exchange for exchange in replayed.exchanges if not exchange.request.warm_up]
    latencies = np.array([exchange.served[0].latency_s for exchange in counted])
    served = [exchange.served[0] for exchange in counted]
    bad = sum(not answer.status or answer.status >= 500 for answer in served)
    if all(map(is_bad, served, counted)):  # such as 401 throughout, whose latency says nothing
        bad = len(counted)
    return SideLoad(
        rate, float(np.percentile(latencies, 99)), bad / len(counted), pace_of(replayed).lag_p99_s
    )


async def find_knee(steps: Steps, objective: Objective, load: Callable[[float], Awaitable[SideLoad]]) -> Knee:
    """Raise the rate until the objective breaks, and return the knee.

    The knee is between the last rate that held and the one that broke: where linear interpolation of log p99
    crosses the objective; the geometric mean of both rates if errors broke it.

    Args:
        steps: Rates that are tried.
        objective: Bounds that have to hold.
        load: Sends requests at a rate and returns the figures.
    """
    loads: list[SideLoad] = []
    for rate in steps.rates():
        loads.append(await load(rate))
        if not loads[-1].holds(objective):
            return Knee(_crossing(loads, objective), True, tuple(loads))
    return Knee(loads[-1].rate, False, tuple(loads))


def compare_knees(a: Sequence[float], b: Sequence[float], alpha: float = 0.05) -> CapacityComparison:
    """Compare the knees of both sides, repeat by repeat, by Student's test of relative differences."""
    mean = float(np.mean(a))
    differences: FloatArray = ((np.array(b) - np.array(a)) / mean)[None]
    if len(a) < 2:
        return CapacityComparison(
            mean, float(np.mean(b)), float(differences.mean()), -math.inf, math.inf, 1.0
        )
    test = paired_t_test(differences, alpha)
    figures = (test.difference, test.low, test.high, test.p_value)
    return CapacityComparison(mean, float(np.mean(b)), *(float(figure[0]) for figure in figures))


def _crossing(loads: Sequence[SideLoad], objective: Objective) -> float:
    broken = loads[-1]
    if len(loads) < 2:
        return broken.rate
    held = loads[-2]
    if broken.p99_s <= objective.p99_s or held.p99_s <= 0:
        return math.sqrt(held.rate * broken.rate)
    share = math.log(objective.p99_s / held.p99_s) / math.log(broken.p99_s / held.p99_s)
    return held.rate * math.exp(share * math.log(broken.rate / held.rate))
