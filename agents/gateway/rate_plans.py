"""The plans of all services of a fleet, from the statuses of its hosts."""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.gateway.rate_plan import Need, RatePlan, plan_rate
from agents.host.adaptive import stepped
from agents.host.fleet.status import SILENT_S, ServicePlan
from agents.host.rules_file import HostConfig
from pipeline.model.errors import ConfigError
from pipeline.settings.workloads import Workload

log = logging.getLogger(__name__)

DEFAULT_THRESHOLD = 0.00005
"""Threshold where neither a rule nor a workload has one: FBDetect's smallest."""

PLAN_S = 60.0
"""Seconds between two plans."""

AVERAGED_S = 24 * 3600.0
"""Seconds over which the busy processors of a service on a host are averaged."""

MOST_SERVICES = 2_000
"""Most services that are planned: names come from hosts."""


@dataclass(slots=True)
class _Busy:
    """Busy processors of a host that runs a service, on average."""

    cpus: float
    seen_s: float = 0.0  # seconds that are averaged, at most AVERAGED_S

    def take(self, cpus: float, lasted_s: float) -> None:
        """Add busy processors that were seen for some seconds."""
        self.seen_s = min(self.seen_s + lasted_s, AVERAGED_S)
        self.cpus += (cpus - self.cpus) * lasted_s / max(self.seen_s, lasted_s)


@dataclass(slots=True)
class _Seen:
    """Statements of all hosts about a service."""

    thresholds: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    rates_hz: list[float] = field(default_factory=list)  # rates planned before, as hosts report them
    affordable_hz: list[float] = field(default_factory=list)


class RatePlans:
    """Plans by statuses. None are made in the first minutes, in which not all hosts have been heard."""

    def __init__(self, workloads: Sequence[Workload], now: float) -> None:
        self.plans: Mapping[str, ServicePlan] = {}
        self._workloads = tuple(workloads)
        self._begins = now + SILENT_S
        self._planned: float | None = None  # time of the last plan
        self._rates: dict[str, RatePlan] = {}
        self._busy: dict[str, _Busy] = {}
        self._needed_per_s: Mapping[float, float] = {}  # by threshold
        self._default = DEFAULT_THRESHOLD

    def follow(self, config: HostConfig, where: str) -> None:
        """Use the thresholds of other rules from now on.

        Raises:
            ConfigError: ``where`` and the rule whose threshold no workload reports; then nothing changes.
        """
        from agents.sampling.rates.policy import samples_needed, smallest_threshold  # scipy, for who plans

        needed: dict[float, float] = {}
        for number, rule in enumerate(config.rules):
            threshold = rule.how.threshold
            if threshold is None or threshold in needed:
                continue
            needed[threshold] = samples_needed(threshold, self._workloads)
            if math.isinf(needed[threshold]):
                raise ConfigError(
                    f"{where}: rules.{number}.threshold: no workload reports so small a rise of gCPU"
                )
        self._default = smallest_threshold(self._workloads) or DEFAULT_THRESHOLD
        needed.setdefault(self._default, samples_needed(self._default, self._workloads))
        self._needed_per_s = needed

    def is_due(self, now: float) -> bool:
        """Return whether it is time to plan."""
        return now >= self._begins and (self._planned is None or now - self._planned >= PLAN_S)

    def update(self, statuses: Iterable[bytes], now: float) -> None:
        """Plan anew.

        Args:
            statuses: As JSON, of the hosts that are not silent.
            now: Epoch seconds.
        """
        lasted_s = PLAN_S if self._planned is None else now - self._planned
        self._planned = now
        seen = self._by_service(statuses)
        plans: dict[str, ServicePlan] = {}
        rates: dict[str, RatePlan] = {}
        for service in sorted(seen)[:MOST_SERVICES]:
            demand = seen[service]
            busy = self._busy.setdefault(service, _Busy(statistics.fmean(demand.cpus)))
            busy.take(statistics.fmean(demand.cpus), lasted_s)
            rates[service], plans[service] = self._plan(service, demand, busy.cpus * len(demand.cpus), now)
        self._rates, self.plans = rates, plans
        self._busy = {service: self._busy[service] for service in plans}

    def rates_hz(self, services: Iterable[str]) -> dict[str, float]:
        """Return the rates in force of those services that are planned."""
        return {service: self.plans[service].rate_hz for service in services if service in self.plans}

    def _plan(self, service: str, seen: _Seen, cpus: float, now: float) -> tuple[RatePlan, ServicePlan]:
        threshold = min(seen.thresholds)
        enough_hz = self._needed_per_s[threshold] / cpus if cpus > 0 else math.inf
        need = Need(enough_hz, statistics.median(seen.affordable_hz))
        before = self._rates.get(service) or _followed(seen.rates_hz)
        rate = plan_rate(before, need, now)
        if before is None or rate.rate_hz != before.rate_hz:
            log.info("%s: %.3g Hz are planned for %g %% of gCPU", service, rate.rate_hz, 100 * threshold)
        return rate, ServicePlan(
            threshold=threshold,
            hosts=len(seen.cpus),
            cpus=cpus,
            enough_hz=enough_hz if enough_hz <= _MOST_HZ else None,
            rate_hz=rate.rate_hz,
            target_hz=rate.target_hz,
            reason=rate.reason,
            changes=rate.changes,
        )

    def _by_service(self, statuses: Iterable[bytes]) -> dict[str, _Seen]:
        """Return the hosts' statements by service; thresholds of unknown rules count as the default."""
        seen: dict[str, _Seen] = {}
        for body in statuses:
            status = orjson.loads(body)  # validated on arrival; models would take seconds
            for service, demand in status["planned"].items():
                service_seen = seen.setdefault(service, _Seen())
                threshold = demand["threshold"]
                service_seen.thresholds.append(
                    threshold if threshold in self._needed_per_s else self._default
                )
                service_seen.cpus.append(demand["cpus"])
                service_seen.affordable_hz.append(_affordable_hz(status, service))
                if demand["rate_hz"]:
                    service_seen.rates_hz.append(demand["rate_hz"])
        return seen


_MOST_HZ = 1e6


def _followed(rates_hz: Sequence[float]) -> RatePlan | None:
    """Return the plan that hosts follow, for use after a restart of the gateway; None: they follow none."""
    if not rates_hz:
        return None
    rate_hz = stepped(statistics.median(rates_hz))
    return RatePlan(rate_hz, rate_hz, "enough")


def _affordable_hz(status: Mapping[str, Any], service: str) -> float:
    """Return the rate at which a host uses its whole budget, infinite if that is not known."""
    rate_hz: float = status["rates_hz"].get(service, 0.0)
    if not rate_hz or not status["cost_share"]:
        return math.inf
    return rate_hz * float(status["budget"] / status["cost_share"])
