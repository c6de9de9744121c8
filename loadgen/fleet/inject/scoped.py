"""Regressions of a subroutine only where it serves one endpoint or one metadata value."""

from __future__ import annotations

from loadgen.fleet.callgraph import Stack
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import Site, cost_for


def inject_scoped(order: Order, site: Site) -> Injected:
    """Make a subroutine cost more under one endpoint or metadata value, and nowhere else."""
    kind = order.type
    delta, (at, by_config) = order.size(), order.deployed(site.timeline)
    subroutine = site.choose(order.rng, delta, lambda name: len(_scopes(site, name, kind)) > 1)
    if subroutine is None:
        return Injected(())
    scopes = _scopes(site, subroutine, kind)
    scope = scopes[int(order.rng.integers(len(scopes)))]
    profile = site.timeline.step(at)
    rows = [row for row in site.own_rows(subroutine) if scope in site.graph.stacks[row]]
    effects = site.spread_cost(rows, cost_for(delta, site.share(subroutine)), profile)
    cause, setup = order.cause(site, at, profile, [subroutine], by_config=by_config)
    row = truth_row(
        order,
        site,
        "regression",
        site.acting(effects),
        start=at,
        cause=cause,
        main=("subroutine", subroutine),
        cost=cost_of(effects),
        subkind=f"{kind}_only",
        scope=scope,
        by="config" if by_config else "code",
    )
    return Injected((row,), stacks=tuple(effects), changes=cause.changes, setup=setup)


def _scopes(site: Site, subroutine: str, kind: str) -> list[str]:
    """Return the endpoints or metadata values under which a subroutine runs itself."""
    return sorted({s for row in site.own_rows(subroutine) for s in _labels(site.graph.stacks[row], kind)})


def _labels(stack: Stack, kind: str) -> list[str]:
    return [label for label in stack if label.startswith(f"{kind}=")]
