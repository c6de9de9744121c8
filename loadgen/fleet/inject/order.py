"""Order of one injection: its number in a group, and the draws that all kinds have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.fleet.changes import DeployedCause, deploy
from loadgen.fleet.inject.effects import Injected, MetricEffect, SetupMetric, StackEffect
from loadgen.fleet.inject.site import Site, caller_of
from loadgen.fleet.scenario import CAUSED, ChangesSpec, InjectionSpec
from loadgen.fleet.streams import log_uniform
from loadgen.fleet.timeline import Timeline
from pipeline.model import FloatArray, SeriesKey

NOTICEABLE = 0.01
"""From which change of the whole service's cost on its service-level metrics follow visibly."""

_RISE_WITH_COST = ("cpu_utilisation", "latency_p50_ms", "latency_p99_ms")


@dataclass(frozen=True, slots=True)
class Order:
    """Injection number ``ordinal`` of a group, with a generator of its own."""

    spec: InjectionSpec
    ordinal: int
    rng: np.random.Generator
    releases: ChangesSpec

    @property
    def id(self) -> str:
        """The id of the injection's truth row."""
        return f"{self.spec.key}-{self.ordinal + 1:03d}"

    @property
    def type(self) -> str:
        """The type of this injection: types take turns."""
        return self.spec.type_of(self.ordinal)

    def size(self) -> float:
        """Draw a delta, log-uniform (as the sizes of regressions are, FBDetect §1)."""
        return log_uniform(self.rng, *self.spec.sizes)

    def length_s(self) -> float:
        """Draw a duration, log-uniform."""
        return log_uniform(self.rng, *self.spec.lengths_s)

    def moment(self, timeline: Timeline) -> float:
        """Draw the start of an injection that does not depend on a deployment."""
        return timeline.at(float(self.rng.uniform(*self.spec.between)))

    def deployed(self, timeline: Timeline) -> tuple[float, bool]:
        """Draw the time at which a change takes effect, and whether it is a configuration change.

        Code is deployed with the releases, configuration at any time.
        """
        by_config = bool(self.rng.random() < self.spec.config) and self.spec.kind in CAUSED
        at = self.moment(timeline)
        if not by_config:
            every = self.releases.release_every_s
            release = timeline.start + math.floor((at - timeline.start) / every) * every
            at = release + float(self.rng.uniform(0, min(600.0, every / 2)))
        return max(at, timeline.start), by_config

    def cause(
        self, site: Site, at: float, profile: FloatArray, subroutines: Sequence[str], *, by_config: bool
    ) -> tuple[DeployedCause, tuple[SetupMetric, ...]]:
        """Deploy the cause of a regression at ``at``, or nothing for a regression without a root cause.

        A gate has a set-up metric that shows how far it is open.
        """
        if self.rng.random() < self.spec.no_culprit:
            return DeployedCause(), ()
        if self.releases.elsewhere and self.rng.random() < self.releases.elsewhere:
            subroutines = [_caller(site, name) for name in subroutines]
        cause = deploy(self.rng, site.service, at, subroutines, by_config=by_config, gate=self._gate())
        opened = (SetupMetric(f"setup.gate.{self._gate()}", profile),) if by_config else ()
        return cause, opened

    def _gate(self) -> str:
        return f"enable_{self.id.replace('-', '_')}"


def _caller(site: Site, subroutine: str) -> str:
    """Return the most frequent caller of a subroutine, or the subroutine itself if it has none."""
    heaviest = max(site.own_rows(subroutine), key=lambda row: site.graph.weights[row])
    return caller_of(site.graph.stacks[heaviest]) or subroutine


def truth_row(
    order: Order,
    site: Site,
    kind: str,
    acting: Sequence[tuple[SeriesKey, float]],
    *,
    start: float,
    end: float | None = None,
    cause: DeployedCause | None = None,
    main: SeriesKey | None = None,
    cost: float = 0.0,
    metrics: Sequence[MetricEffect] = (),
    **extra: Any,
) -> Mapping[str, Any]:
    """Return the truth row of an injection.

    ``delta`` is that of ``main``, by default the nearest series. ``subroutines`` are the names of all series,
    of any kind, that move in the same direction, nearest the cause first. ``series`` also has series that
    move in the other direction, each with its kind and its own change. Service-level metrics come last: those
    of ``metrics``, and those that follow if ``cost`` makes the whole service noticeably more expensive; their
    changes are relative.
    """
    follows = {effect.metric: effect.gain for effect in metrics}
    if abs(cost) >= NOTICEABLE:
        follows = {**dict.fromkeys(_RISE_WITH_COST, cost), "throughput": -cost / (1 + cost), **follows}
    metric_kind, name = main = main or acting[0][0]
    delta = dict(acting)[main]
    names = [label for (_, label), change in acting if change * delta > 0 and label != name]
    return {
        "id": order.id,
        "kind": kind,
        "service": site.service,
        "subroutines": [name, *names, *(metric for metric in follows if metric != name)],
        "metric_kind": metric_kind,
        "start": start,
        "end": end,
        "delta": delta,
        "change": cause.id if cause else None,
        **({"code_change": cause.code_id} if cause and cause.code_id else {}),
        **extra,
        "series": [
            *([k, n, change] for (k, n), change in acting),
            *(["service", metric, gain] for metric, gain in follows.items() if metric != name),
        ],
    }


def subroutine_row(
    order: Order, site: Site, kind: str, subroutine: str, effects: Sequence[StackEffect], **facts: Any
) -> Mapping[str, Any]:
    """Return the truth row of a change of one subroutine's cost; ``facts`` as ``truth_row`` takes them."""
    main = SeriesKey("subroutine", subroutine)
    return truth_row(order, site, kind, site.acting(effects), main=main, cost=cost_of(effects), **facts)


def regression(
    order: Order,
    site: Site,
    subroutine: str,
    effects: Sequence[StackEffect],
    deployed: tuple[float, bool],
    *,
    kind: str = "regression",
    **facts: Any,
) -> Injected:
    """Deploy a change that makes a subroutine cost more, at the moment that ``Order.deployed`` drew.

    The effect starts then unless ``facts`` have another ``start``.
    """
    at, by_config = deployed
    cause, setup = order.cause(site, at, site.timeline.step(at), [subroutine], by_config=by_config)
    facts = {"start": at, **facts, "cause": cause, "by": "config" if by_config else "code"}
    row = subroutine_row(order, site, kind, subroutine, effects, **facts)
    return Injected((row,), stacks=tuple(effects), changes=cause.changes, setup=setup)


def cost_of(effects: Sequence[StackEffect]) -> float:
    """Return the relative rise of the service's cost with all of ``effects``."""
    return sum(effect.cost for effect in effects)
