"""Step regressions and improvements: a subroutine costs more, or less, from one moment on."""

from __future__ import annotations

from collections.abc import Callable

from loadgen.fleet.callgraph import Stack
from loadgen.fleet.changes import speed_up
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, regression, subroutine_row
from loadgen.fleet.inject.site import Site


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
    """Return the endpoints or metadata values under which a subroutine runs itself."""
    return sorted({s for row in site.own_rows(subroutine) for s in _labels(site.graph.stacks[row], kind)})


def _labels(stack: Stack, kind: str) -> list[str]:
    return [label for label in stack if label.startswith(f"{kind}=")]
