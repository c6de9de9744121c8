"""Regressions and improvements that a deployment starts: steps, slow rises, and steps after a spike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from loadgen.fleet.callgraph import Stack
from loadgen.fleet.changes import speed_up
from loadgen.fleet.inject.effects import Injected, MetricEffect
from loadgen.fleet.inject.order import Order, regression, subroutine_row, truth_row
from loadgen.fleet.inject.site import Site
from pipeline.model import SeriesKey

METRIC_OF = {"throughput": "throughput", "latency": "latency_p99_ms", "errors": "error_rate"}
"""Type → the metric that worsens."""


def inject_step(order: Order, site: Site) -> Injected:
    """Make a subroutine cost more wherever it is called from."""
    return _step(order, site, "step")


def inject_cascade(order: Order, site: Site) -> Injected:
    """Make a subroutine that many others call cost more, so that all of them and their callers follow."""
    counts = sorted((site.callers(name) for name in site.subroutines), reverse=True)
    many = counts[min(len(counts) // 20, len(counts) - 1)]
    return _step(order, site, "cascade", lambda name: site.callers(name) >= max(many, 2))


def _step(order: Order, site: Site, subkind: str, *preferences: Callable[[str], bool]) -> Injected:
    delta, deployed = order.size(), order.deployed(site.timeline)
    subroutine = site.choose(order.rng, delta, *preferences)
    effects = site.change_cost(subroutine, delta, site.timeline.step(deployed[0]))
    return regression(order, site, subroutine, effects, deployed, subkind=subkind)


def inject_scoped(order: Order, site: Site) -> Injected:
    """Make a subroutine cost more under one endpoint or metadata value, and nowhere else."""
    kind = order.type
    delta, deployed = order.size(), order.deployed(site.timeline)
    subroutine = site.choose(order.rng, delta, lambda name: len(_scopes(site, name, kind)) > 1)
    scopes = _scopes(site, subroutine, kind)
    scope = scopes[int(order.rng.integers(len(scopes)))]
    effects = site.change_cost(subroutine, delta, site.timeline.step(deployed[0]), scope=scope)
    return regression(order, site, subroutine, effects, deployed, subkind=f"{kind}_only", scope=scope)


def inject_gradual(order: Order, site: Site) -> Injected:
    """Let a subroutine's cost grow evenly from the deployment of its cause on (a cache that fills, data)."""
    delta, deployed, length_s = order.size(), order.deployed(site.timeline), order.length_s()
    subroutine, at = site.choose(order.rng, delta), deployed[0]
    effects = site.change_cost(subroutine, delta, site.timeline.step(at, length_s))
    return regression(order, site, subroutine, effects, deployed, kind="gradual", ramp_end=at + length_s)


def inject_spike_then_step(order: Order, site: Site) -> Injected:
    """Let a spike of two to four times the regression come and go some hours before the regression.

    A filter that takes the spike for the normal level would decide that the regression went away.
    """
    delta, (at, by_config) = order.size(), order.deployed(site.timeline)
    length_s, gap_s = order.length_s(), float(order.rng.uniform(3, 12)) * 3600.0
    height = float(order.rng.uniform(2, 4))
    subroutine = site.choose(order.rng, delta)
    begin = max(at - gap_s - length_s, site.timeline.start)
    end = min(begin + length_s, at)
    steps = site.change_cost(subroutine, delta, site.timeline.step(at))
    pulse = site.timeline.pulse(begin, end, rise_s=600.0, fall_s=1200.0)
    spike = site.change_cost(subroutine, min(height * delta, 0.5), pulse)
    risen = regression(order, site, subroutine, steps, (at, by_config), subkind="after_spike")
    transient = subroutine_row(order, site, "transient", subroutine, spike, start=begin, end=end)
    transient = {**transient, "id": f"{order.id}-spike", "subkind": "before_regression"}
    return replace(risen, truth=(transient, *risen.truth), stacks=(*spike, *steps))


def inject_service_metric(order: Order, site: Site) -> Injected:
    """Worsen one service-level metric by a relative step; for it ``delta`` in the truth is relative."""
    size, (at, by_config) = order.size(), order.deployed(site.timeline)
    metric = METRIC_OF[order.type]
    gain = -size if order.type == "throughput" else size
    profile = site.timeline.step(at)
    position = int(order.rng.integers(len(site.subroutines)))
    cause, setup = order.cause(site, at, profile, [site.subroutines[position]], by_config=by_config)
    row = truth_row(
        order,
        site,
        "regression",
        [(SeriesKey("service", metric), gain)],
        start=at,
        cause=cause,
        subkind=f"service_{order.type}",
        direction="down" if gain < 0 else "up",
    )
    return Injected(
        (row,), metrics=(MetricEffect(metric, gain, profile),), changes=cause.changes, setup=setup
    )


def inject_improvement(order: Order, site: Site) -> Injected:
    """Make a subroutine cost less, by up to three quarters of what it costs itself."""
    size, (at, _) = order.size(), order.deployed(site.timeline)
    largest = max(site.own_share(name) for name in site.subroutines)
    wanted = min(size, largest / 2)
    subroutine = site.choose(order.rng, wanted, lambda name: site.own_share(name) * 0.75 >= wanted)
    effects = site.change_cost(subroutine, -wanted, site.timeline.step(at), new_work=False)
    cause = speed_up(order.rng, site.service, at, [subroutine])
    row = subroutine_row(order, site, "improvement", subroutine, effects, start=at, cause=cause)
    return Injected((row,), stacks=tuple(effects), changes=cause.changes)


def _scopes(site: Site, subroutine: str, kind: str) -> list[str]:
    """Return the endpoints or metadata values under which a subroutine is the leaf."""
    return sorted({s for row in site.own_rows(subroutine) for s in _labels(site.graph.stacks[row], kind)})


def _labels(stack: Stack, kind: str) -> list[str]:
    return [label for label in stack if label.startswith(f"{kind}=")]
