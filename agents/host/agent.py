"""The host agent: discovery → samplings → parts → messages. The caller passes time and signals."""

from __future__ import annotations

import logging
import queue
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agents.host.adaptive import WINDOW_S, AdaptiveRates, stepped
from agents.host.budget import BudgetState, adjust_level, rate_at
from agents.host.choice import choose
from agents.host.cost import CostMeter
from agents.host.discovery import Discovery, MatchedProcess, ProcessScan
from agents.host.fleet.status import ServiceDemand
from agents.host.numbers import AgentState, HostNumbers
from agents.host.parts import Encoded, Part, encode_part, merge_parts
from agents.host.proc import ProcReader
from agents.host.process_sampling import SamplingSettings
from agents.host.rules_file import HostConfig
from agents.host.samplings import Samplings
from agents.publishing.publisher import Delivery
from pipeline.model import Outgoing
from pipeline.model.clock import Clock

if TYPE_CHECKING:
    from agents.host.pruning import Pruner

log = logging.getLogger(__name__)

STOP_S = 10.0
"""Seconds that all samplings may take at the end to hand over their samples."""

Offer = Callable[[Outgoing, int], None]
"""Takes a message to publish, and the samples in it."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The agent's access to the machine. ``folder`` is for the files of kernels."""

    host: str
    reader: ProcReader
    folder: Path
    clock: Clock
    wake: Callable[[], None]  # called from threads when a sampling has ended
    max_bytes: int  # most bytes of a message's value


class HostAgent:
    """Finds and samples the processes of a host, and offers messages; each method is one step of its loop."""

    def __init__(self, config: HostConfig, edges: Edges, offer: Offer) -> None:
        self.numbers = HostNumbers()
        self._config = config
        self._edges = edges
        self._offer = offer
        self._planned_hz: dict[str, float] = {}
        self._adaptive = AdaptiveRates()
        self._pruner = _pruner(config)
        self._window_ends = 0.0
        self._budget = BudgetState()
        self._parts: queue.SimpleQueue[Part] = queue.SimpleQueue()
        self._discovery = Discovery(edges.reader, config.rules)
        self._samplings = Samplings(
            SamplingSettings(
                folder=edges.folder,
                interval_s=config.interval_s,
                clock=edges.clock,
                rate_of=self.rate_of,
                take=self._parts.put,
                wake=edges.wake,
            )
        )
        self._cost = CostMeter()
        self._cost_share = 0.0
        self._scan: ProcessScan | None = None
        self._waiting = 0
        self._reported_waiting = False

    def use(self, config: HostConfig) -> None:
        """Use other rules, bounds and budget from the next scan on; other settings stay as at the start."""
        if config.prune != self._config.prune:
            self._pruner = _pruner(config)
        self._config = config
        self._discovery.use(config.rules)

    def follow_plan(self, rates_hz: Mapping[str, float]) -> None:
        """Use the controller's rates, rounded to steps, for services whose rules leave the rate to it.

        They count from the next interval on, and the budget may lower them. Other services keep their rates.
        """
        for service, rate_hz in rates_hz.items():
            planned_hz = stepped(rate_hz)
            if self._planned_hz.get(service) != planned_hz:
                log.info("%s: %.3g Hz are planned", service, planned_hz)
            self._planned_hz[service] = planned_hz

    def rate_of(self, found: MatchedProcess) -> float:
        """Return the sampling rate of a process, in samples per second."""
        service, how = found.target.identity.service, found.target.how
        followed = self._adaptive.rates_hz if how.adaptive else self._planned_hz if how.planned else {}
        return rate_at(followed.get(service, how.rate_hz), self._budget.level)

    def scan(self) -> None:
        """Scan all processes, begin to sample new ones, and end the samplings of those no longer chosen."""
        now = self._edges.clock()
        self._scan = scan = self._discovery.scan()
        failing = self._samplings.waiting(now)
        eligible = [process for process in scan.matched if process.key not in failing]
        chosen, waiting = choose(eligible, self._samplings.keys, self._config.processes)
        self._waiting = len(waiting)
        if waiting and not self._reported_waiting:
            log.warning(
                "%d processes are not sampled: more than %d match (processes)",
                len(waiting),
                self._config.processes,
            )
        self._reported_waiting = bool(waiting)
        self._samplings.follow(chosen, scan.keys, now)

    def publish(self) -> None:
        """Offer the messages of all parts that were handed over."""
        parts = list(self._taken())
        self._adapt(parts)
        for part in merge_parts(parts, self._config.interval_s):
            encoded = self._encode(self._pruner.prune(part, self._encode) if self._pruner else part)
            if encoded.lost:
                log.warning("%d samples of stacks too large for a message were left out", encoded.lost)
            for message, samples in encoded.messages:
                self.numbers.sampled(part.identity.service, samples)
                self._offer(message, samples)

    def _encode(self, part: Part) -> Encoded:
        return encode_part(part, self._edges.host, self._edges.max_bytes)

    def keep_budget(self) -> None:
        """Measure the cost since the last call, and lower or raise all rates by it."""
        share = self._cost.share(self._scan) if self._scan else None
        if share is None:
            return
        self._cost_share = share
        before = self._budget
        self._budget = adjust_level(before, share, self._config.budget)
        if self._budget.level != before.level:
            log.warning(
                "the agent takes %.2f %% of the host's CPU, its budget is %.2f %%: from now on all rates are "
                "1/%d of what the rules say",
                *(100 * share, 100 * self._config.budget, 2**self._budget.level),
            )

    def stop(self) -> None:
        """End all samplings; their samples can be published afterwards."""
        self._samplings.stop(STOP_S)

    def state(self, delivery: Delivery, spooled_bytes: int) -> AgentState:
        """Return the present state."""
        running = self._samplings.running
        failures = self._samplings.failures()
        rates: dict[str, float] = {}
        for sampling in running:
            service = sampling.matched.target.identity.service
            rates[service] = max(sampling.rate_hz, rates.get(service, 0.0))
        processes = {
            "sampled": len(running),
            "waiting": self._waiting,
            "failing": sum(failures.values()),
            "covered": self._scan.covered if self._scan else 0,
            "passed": len(self._scan.passed) if self._scan else 0,
        }
        return AgentState(
            processes,
            rates,
            self._cost_share,
            self._config.budget,
            delivery,
            spooled_bytes,
            Counter(sampling.kernel for sampling in running),
            self._demands(),
        )

    def _demands(self) -> Mapping[str, ServiceDemand]:
        """Return the demands of the services that are sampled now and whose rates are planned."""
        demands: dict[str, ServiceDemand] = {}
        for process in self._scan.matched if self._scan else ():
            how, service = process.target.how, process.target.identity.service
            if not how.planned or process.key not in self._samplings.keys:
                continue
            before = demands.get(service)
            thresholds = [how.threshold, *([before.threshold] if before else [])]
            named = [threshold for threshold in thresholds if threshold is not None]
            demands[service] = ServiceDemand(
                threshold=min(named, default=None),
                cpus=process.cpu_share + (before.cpus if before else 0.0),
                rate_hz=self._planned_hz.get(service, 0.0),
            )
        return demands

    def _adapt(self, parts: Sequence[Part]) -> None:
        """Choose the rates of services with adaptive rates, once a window."""
        rules = self._config.rules
        if not any(rule.how.adaptive for rule in rules):
            return
        self._adaptive.count(part for part in parts if part.is_adaptive)
        now = self._edges.clock()
        if now >= self._window_ends:
            if self._window_ends:
                self._adaptive.end_window()
            self._window_ends = now + WINDOW_S

    def _taken(self) -> Iterator[Part]:
        while not self._parts.empty():
            yield self._parts.get()


def _pruner(config: HostConfig) -> Pruner | None:
    if not config.prune:
        return None
    import numpy as np  # only pruning needs this import

    from agents.host.pruning import Pruner

    return Pruner(config.prune, np.random.default_rng())
