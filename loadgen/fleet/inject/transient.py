"""Transients: production troubles that last for seconds to many hours, and go (FBDetect §1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.fleet.inject.effects import EndpointEffect, HostEffect, Injected, MetricEffect, StackEffect
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import NothingFits, Site
from pipeline.model import FloatArray

_WAVES = 6  # number of steps in which a rolling update restarts the fleet


def inject_transient(order: Order, site: Site) -> Injected:
    """Inject a transient trouble of the type whose turn it is, with a gradual recovery."""
    begin, length_s, delta = order.moment(site.timeline), order.length_s(), order.size()
    end = min(begin + length_s, site.timeline.end)
    return _KINDS[order.type](_Trouble(order, site, begin, end, delta))


@dataclass(frozen=True, slots=True)
class _Trouble:
    """One transient as drawn."""

    order: Order
    site: Site
    begin: float
    end: float
    delta: float

    def draw(self, low: float, high: float) -> float:
        """Draw evenly between two bounds."""
        return float(self.order.rng.uniform(low, high))

    def endpoints(self) -> list[str]:
        """Return every endpoint in a random order."""
        names = self.site.graph.endpoints
        return [names[int(i)] for i in self.order.rng.permutation(len(names))]

    def pulse(self, *, rise_s: float = 120.0, fall_s: float | None = None) -> FloatArray:
        """Rise, by default fast, and recover, by default over the last third: (windows,)."""
        fall_s = (self.end - self.begin) / 3 if fall_s is None else fall_s
        return self.site.timeline.pulse(self.begin, self.end, rise_s=rise_s, fall_s=fall_s)

    def rise(self, delta: float, profile: FloatArray, *, libraries: bool = False) -> list[StackEffect]:
        """Make one subroutine, of a library if need be, cost more."""

        def fits(name: str) -> bool:
            return name.startswith("lib.") or not libraries

        subroutine = self.site.choose(self.order.rng, delta, fits, lambda _: True)
        return self.site.change_cost(subroutine, delta, profile, new_work=False)

    def inject(
        self,
        stacks: Sequence[StackEffect] = (),
        *,
        endpoints: tuple[EndpointEffect, ...] = (),
        hosts: tuple[HostEffect, ...] = (),
        metrics: tuple[MetricEffect, ...] = (),
        **extra: Any,
    ) -> Injected:
        """Return the effects with the truth about them.

        Raises:
            NothingFits: no series changes.
        """
        acting = sorted(self.site.acting(stacks, endpoints=endpoints), key=lambda item: item[1] < 0)
        if not acting:
            raise NothingFits
        row = truth_row(
            self.order,
            self.site,
            "transient",
            acting,
            start=self.begin,
            end=self.end,
            main=max(acting, key=lambda item: item[1])[0] if endpoints else acting[0][0],
            cost=cost_of(stacks),
            metrics=metrics,
            subkind=self.order.type,
            **extra,
        )
        return Injected((row,), stacks=tuple(stacks), endpoints=endpoints, hosts=hosts, metrics=metrics)


def _server_failure(trouble: _Trouble) -> Injected:
    """Servers fail: fewer report, the other servers retry and have more errors."""
    pulse, lost = trouble.pulse(), trouble.draw(0.02, 0.2)
    changes = {"throughput": -lost, "error_rate": 30 * lost, "latency_p99_ms": 2 * lost}
    return trouble.inject(
        trouble.rise(trouble.delta, pulse, libraries=True),
        hosts=(HostEffect(lost, pulse),),
        metrics=tuple(MetricEffect(metric, gain, pulse) for metric, gain in changes.items()),
    )


def _maintenance(trouble: _Trouble) -> Injected:
    """Servers are drained in order; the other servers carry their load."""
    fifth_s = (trouble.end - trouble.begin) / 5
    pulse = trouble.pulse(rise_s=fifth_s, fall_s=fifth_s)
    lost = trouble.draw(0.05, 0.3)
    return trouble.inject(
        trouble.rise(trouble.delta, pulse, libraries=True),
        hosts=(HostEffect(lost, pulse),),
        metrics=(MetricEffect("throughput", -lost, pulse), MetricEffect("latency_p99_ms", lost, pulse)),
    )


def _load_spike(trouble: _Trouble) -> Injected:
    """The traffic of one endpoint multiplies."""
    pulse, endpoint = trouble.pulse(), trouble.endpoints()[0]
    gain = min(trouble.delta / trouble.site.share(f"endpoint={endpoint}"), 4.0)
    return trouble.inject(
        endpoints=(EndpointEffect(endpoint, gain, pulse),),
        metrics=(MetricEffect("requests_per_server", gain / 2, pulse),),
    )


def _rolling_update(trouble: _Trouble) -> Injected:
    """Servers restart wave by wave with cold caches: several subroutines cost more for a while."""
    wave_s = (trouble.end - trouble.begin) / _WAVES
    knots: list[tuple[float, float]] = []
    for wave in range(_WAVES):
        at = trouble.begin + wave * wave_s
        knots += [(at, 0.2 if wave else 0.0), (at, 1.0), (at + wave_s, 0.2)]
    shape = trouble.site.timeline.shape([*knots, (trouble.end, 0.0)])
    effects = [effect for part in (0.5, 0.3, 0.2) for effect in trouble.rise(part * trouble.delta, shape)]
    return trouble.inject(effects, hosts=(HostEffect(1 / _WAVES, 0.3 * shape),))


def _canary(trouble: _Trouble) -> Injected:
    """A few servers run a regressed release, which is then rolled back."""
    share = trouble.draw(0.02, 0.1)
    pulse = trouble.pulse(rise_s=0.0, fall_s=0.0)
    return trouble.inject(trouble.rise(max(share * trouble.delta, 1e-6), pulse), canary_share=share)


def _traffic_shift(trouble: _Trouble) -> Injected:
    """Traffic moves from one endpoint to another, as when a region is served from elsewhere."""
    pulse, gaining = trouble.pulse(), trouble.endpoints()[0]
    losing = next(endpoint for endpoint in trouble.endpoints() if endpoint != gaining)
    gaining_share, losing_share = (trouble.site.share(f"endpoint={e}") for e in (gaining, losing))
    cost = min(trouble.delta, losing_share / 2)
    shifts = (
        EndpointEffect(gaining, cost / gaining_share, pulse),
        EndpointEffect(losing, -cost / losing_share, pulse),
    )
    return trouble.inject(endpoints=shifts)


_KINDS: Mapping[str, Callable[[_Trouble], Injected]] = {
    "server_failure": _server_failure,
    "maintenance": _maintenance,
    "load_spike": _load_spike,
    "rolling_update": _rolling_update,
    "canary": _canary,
    "traffic_shift": _traffic_shift,
}
