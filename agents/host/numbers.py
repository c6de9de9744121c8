"""Numbers of the host agent: for its log, and for Prometheus."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.host.fleet.status import ServiceDemand
from agents.publishing.delivery_metrics import delivery_samples
from agents.publishing.pending import Tally
from agents.publishing.publisher import Delivery
from pipeline.telemetry import metrics as telemetry
from pipeline.telemetry.instruments import LabelBound, Sample

MOST_SERVICES = 100
"""Most services that are shown by name: names come from processes."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """State of an agent after an interval."""

    processes: Mapping[str, int]  # by sampled, waiting, failing, covered, passed
    rates_hz: Mapping[str, float] = field(default_factory=dict)  # by service
    cost_share: float = 0.0  # of the host's CPU
    budget: float = 0.0
    delivery: Delivery = Delivery(Tally(), Tally(), Tally())
    spooled_bytes: int = 0
    kernels: Mapping[str, int] = field(default_factory=dict)  # processes by kernel
    planned: Mapping[str, ServiceDemand] = field(default_factory=dict)  # by service


class HostNumbers:
    """Counts of one agent since it began; threads may share it."""

    def __init__(self) -> None:
        self._samples: Counter[str] = Counter()
        self._services = LabelBound(MOST_SERVICES)
        self._state = AgentState({})
        self._lock = threading.Lock()

    def sampled(self, service: str, samples: int) -> None:
        """Count the samples of a message."""
        with self._lock:
            self._samples[self._services.of(service)] += samples

    def show(self, state: AgentState) -> None:
        """Show another state from now on."""
        with self._lock:
            self._state = state

    def samples(self) -> list[Sample]:
        """Return everything, as ``pipeline.telemetry.metrics`` names it."""
        with self._lock:
            state, counted = self._state, dict(self._samples)
            rates: dict[str, float] = {}
            for service, rate_hz in state.rates_hz.items():
                shown = self._services.of(service)
                rates[shown] = max(rate_hz, rates.get(shown, 0.0))
        rows: list[Sample] = [
            (telemetry.AGENT_PROCESSES, {"state": name}, count) for name, count in state.processes.items()
        ]
        rows += [(telemetry.AGENT_SAMPLES, {"service": name}, count) for name, count in counted.items()]
        rows += [(telemetry.AGENT_RATE_HZ, {"service": name}, rate) for name, rate in rates.items()]
        rows += [(telemetry.AGENT_COST, {}, state.cost_share), (telemetry.AGENT_BUDGET, {}, state.budget)]
        return [*rows, *delivery_samples(state.delivery), (telemetry.AGENT_SPOOL, {}, state.spooled_bytes)]


def summary(state: AgentState) -> str:
    """Return one line on a state."""
    counts = ", ".join(f"{count} {name}" for name, count in state.processes.items() if count) or "none"
    return (
        f"processes: {counts}; cost {100 * state.cost_share:.2f} % of the host's CPU, "
        f"budget {100 * state.budget:g} %; waiting: {state.delivery.unsent}"
    )
