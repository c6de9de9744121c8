"""Replays as trials: the file that ``smidgen trial verdict`` and ``smidgen trial publish`` read."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.experiments.replay.outcome import cpu_per_request, is_bad, measured
from agents.experiments.replay.replayer import Exchange, Replayed

SIDES = ("A", "B")
_HEAD = ("trial", "side", "metric", "value", "request")


@dataclass(frozen=True, slots=True)
class Calls:
    """Downstream calls of both sides in one replay."""

    by_request: tuple[Mapping[int, int], Mapping[int, int]]
    """Number of calls by the index of the request whose id they carry."""
    alone: tuple[int, int] = (0, 0)
    """Number of calls without a request's id."""


@dataclass(slots=True)
class TrialRows:
    """Points of trials: latencies, timings, downstream calls of requests, CPU time of slices.

    Each metric exists for all requests, and for each endpoint under the endpoint's name.
    """

    timings: Sequence[str] = ()
    points: dict[str, dict[str, tuple[list[float], list[float]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: ([], [])))
    )
    """Metric → trial → points of both sides, in pairs."""
    requests: dict[str, dict[str, list[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, trial: str, replayed: Replayed, calls: Calls | None = None) -> None:
        """Add a replay to both sides; requests that a side did not serve are left out, see ``is_bad``."""
        served_by_both = [
            exchange
            for exchange in measured(replayed)
            if not any(is_bad(served, exchange) for served in exchange.served)
        ]
        for exchange in served_by_both:
            self._add_exchange(trial, exchange, calls)
        used = [cpu_per_request(replayed, side) for side in range(2)] if replayed.slices else []
        for number, (a, b) in enumerate(zip(*used, strict=True)) if used else ():
            if not np.isnan(a + b):
                self._put("cpu_ms", trial, f"slice-{number}", (float(a), float(b)))
        if calls and any(calls.alone):
            count = max(1, len(replayed.exchanges))
            self._put("downstream_total", trial, "", (calls.alone[0] / count, calls.alone[1] / count))

    def zero_on_a(self) -> list[str]:
        """Return metrics that are 0 on side A and not on side B: their relative difference is undefined."""
        return [name for name in self.points if not self._total(name, 0) and self._total(name, 1)]

    def csv(self) -> bytes:
        """Return the file; metrics that are 0 on side A, or that a trial lacks, are left out."""
        trials = {trial for by_trial in self.points.values() for trial in by_trial}
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(_HEAD)
        for metric, by_trial in self.points.items():
            if not self._total(metric, 0) or len(by_trial) < len(trials):
                continue
            for trial, sides in by_trial.items():
                names = self.requests[metric][trial]
                for side, values in zip(SIDES, sides, strict=True):
                    rows = zip(values, names, strict=True)
                    writer.writerows((trial, side, metric, repr(value), name) for value, name in rows)
        return out.getvalue().encode()

    def _add_exchange(self, trial: str, exchange: Exchange, calls: Calls | None) -> None:
        a, b = exchange.served
        points = {"latency_ms": (1000 * a.latency_s, 1000 * b.latency_s)}
        for number, name in enumerate(self.timings):
            timed = (a.timings[number], b.timings[number])
            if timed[0] is not None and timed[1] is not None:
                points[f"{name}_timing_ms"] = (timed[0], timed[1])
        if calls and (calls.by_request[0] or calls.by_request[1]):
            points["downstream"] = (
                float(calls.by_request[0].get(exchange.index, 0)),
                float(calls.by_request[1].get(exchange.index, 0)),
            )
        for metric, values in points.items():
            for name in (metric, f"{metric} {exchange.request.endpoint}"):
                self._put(name, trial, str(exchange.index), values)

    def _put(self, metric: str, trial: str, request: str, values: tuple[float, float]) -> None:
        for points, value in zip(self.points[metric][trial], values, strict=True):
            points.append(value)
        self.requests[metric][trial].append(request)

    def _total(self, metric: str, side: int) -> float:
        return sum(sum(sides[side]) for sides in self.points[metric].values())
