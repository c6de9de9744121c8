"""Transients: troubles of production that come, last for seconds to many hours, and go (FBDetect §1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadgen.fleet.inject.effects import EndpointEffect, HostEffect, Injected, MetricEffect, StackEffect
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import Site, cost_for
from pipeline.model import FloatArray

_WAVES = 6  # in how many steps a rolling update restarts the fleet


def inject_transient(order: Order, site: Site) -> Injected:
    """Let trouble of the type whose turn it is come and go, with a recovery that takes its time."""
    begin, length_s, delta = order.moment(site.timeline), order.length_s(), order.size()
    end = min(begin + length_s, site.timeline.end)
    return _KINDS[order.type](order, site, begin, end, delta)


def _server_failure(order: Order, site: Site, begin: float, end: float, delta: float) -> Injected:
    """Servers fail: fewer report, the others retry and err more."""
    pulse = _pulse(site, begin, end)
    lost = float(order.rng.uniform(0.02, 0.2))
    return _trouble(
        order,
        site,
        _rise(order, site, delta, pulse, libraries=True),
        begin,
        end,
        hosts=(HostEffect(lost, pulse),),
        metrics=(
            MetricEffect("throughput", -lost, pulse),
            MetricEffect("error_rate", 30 * lost, pulse),
            MetricEffect("latency_p99_ms", 2 * lost, pulse),
        ),
    )


def _maintenance(order: Order, site: Site, begin: float, end: float, delta: float) -> Injected:
    """Servers are drained in an orderly way; the others carry their load."""
    pulse = site.timeline.pulse(begin, end, rise_s=(end - begin) / 5, fall_s=(end - begin) / 5)
    lost = float(order.rng.uniform(0.05, 0.3))
    return _trouble(
        order,
        site,
        _rise(order, site, delta, pulse, libraries=True),
        begin,
        end,
        hosts=(HostEffect(lost, pulse),),
        metrics=(MetricEffect("throughput", -lost, pulse), MetricEffect("latency_p99_ms", lost, pulse)),
    )


def _load_spike(order: Order, site: Site, begin: float, end: float, delta: float) -> Injected:
    """One endpoint has a multiple of its traffic."""
    pulse = _pulse(site, begin, end)
    endpoint = _endpoint(order, site)
    gain = min(delta / site.share(f"endpoint={endpoint}"), 4.0)
    return _trouble(
        order,
        site,
        [],
        begin,
        end,
        endpoints=(EndpointEffect(endpoint, gain, pulse),),
        metrics=(MetricEffect("requests_per_server", gain / 2, pulse),),
    )


def _rolling_update(order: Order, site: Site, begin: float, end: float, delta: float) -> Injected:
    """Servers restart wave by wave, each with cold caches: several subroutines cost more for a while."""
    wave_s = (end - begin) / _WAVES
    knots: list[tuple[float, float]] = []
    for wave in range(_WAVES):
        at = begin + wave * wave_s
        knots += [(at, 0.2 if wave else 0.0), (at, 1.0), (at + wave_s, 0.2)]
    shape = site.timeline.shape([*knots, (end, 0.0)])
    effects: list[StackEffect] = []
    for part in (0.5, 0.3, 0.2):
        effects += _rise(order, site, part * delta, shape, libraries=False)
    return _trouble(order, site, effects, begin, end, hosts=(HostEffect(1 / _WAVES, 0.3 * shape),))


def _canary(order: Order, site: Site, begin: float, end: float, delta: float) -> Injected:
    """A few servers run a release that regressed, which is then given up."""
    share = float(order.rng.uniform(0.02, 0.1))
    return _trouble(
        order,
        site,
        _rise(order, site, max(share * delta, 1e-6), site.timeline.pulse(begin, end), libraries=False),
        begin,
        end,
        canary_share=share,
    )


def _traffic_shift(order: Order, site: Site, begin: float, end: float, delta: float) -> Injected:
    """Traffic moves from one endpoint to another, as when a region is served from elsewhere."""
    pulse = _pulse(site, begin, end)
    gaining = _endpoint(order, site)
    losing = next(e for e in _shuffled(order, site.graph.endpoints) if e != gaining)
    cost = min(delta, site.share(f"endpoint={losing}") / 2)
    shifts = (
        EndpointEffect(gaining, cost / site.share(f"endpoint={gaining}"), pulse),
        EndpointEffect(losing, -cost / site.share(f"endpoint={losing}"), pulse),
    )
    return _trouble(order, site, [], begin, end, endpoints=shifts)


def _trouble(
    order: Order,
    site: Site,
    stacks: Sequence[StackEffect],
    begin: float,
    end: float,
    *,
    endpoints: tuple[EndpointEffect, ...] = (),
    hosts: tuple[HostEffect, ...] = (),
    metrics: tuple[MetricEffect, ...] = (),
    **extra: Any,
) -> Injected:
    acting = sorted(site.acting(stacks, endpoints=endpoints), key=lambda item: item[1] < 0)
    if not acting:
        return Injected(())
    row = truth_row(
        order,
        site,
        "transient",
        acting,
        start=begin,
        end=end,
        main=max(acting, key=lambda item: item[1])[0] if endpoints else acting[0][0],
        cost=cost_of(stacks),
        metrics=metrics,
        subkind=order.type,
        **extra,
    )
    return Injected((row,), stacks=tuple(stacks), endpoints=endpoints, hosts=hosts, metrics=metrics)


def _rise(
    order: Order, site: Site, delta: float, profile: FloatArray, *, libraries: bool
) -> list[StackEffect]:
    def fits(name: str) -> bool:
        return name.startswith("lib.") or not libraries

    subroutine = site.choose(order.rng, delta, fits) or site.choose(order.rng, delta)
    if subroutine is None:
        return []
    cost = cost_for(delta, site.share(subroutine))
    return site.spread_cost(site.own_rows(subroutine), cost, profile, new_work=False)


def _pulse(site: Site, begin: float, end: float) -> FloatArray:
    """Rise fast, and recover over the last third."""
    return site.timeline.pulse(begin, end, rise_s=120.0, fall_s=(end - begin) / 3)


def _endpoint(order: Order, site: Site) -> str:
    return _shuffled(order, site.graph.endpoints)[0]


def _shuffled(order: Order, names: Sequence[str]) -> list[str]:
    return [names[int(i)] for i in order.rng.permutation(len(names))]


_KINDS: Mapping[str, Callable[[Order, Site, float, float, float], Injected]] = {
    "server_failure": _server_failure,
    "maintenance": _maintenance,
    "load_spike": _load_spike,
    "rolling_update": _rolling_update,
    "canary": _canary,
    "traffic_shift": _traffic_shift,
}
