"""Gradual regressions: a subroutine costs a little more every hour, over days."""

from __future__ import annotations

from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import Site, cost_for


def inject_gradual(order: Order, site: Site) -> Injected:
    """Let a subroutine's cost grow evenly from the deployment of its cause on (a cache that fills, data)."""
    delta, (at, by_config) = order.size(), order.deployed(site.timeline)
    length_s = order.length_s()
    subroutine = site.choose(order.rng, delta)
    if subroutine is None:
        return Injected(())
    effects = site.spread_cost(
        site.own_rows(subroutine),
        cost_for(delta, site.share(subroutine)),
        site.timeline.step(at, length_s),
    )
    cause, setup = order.cause(site, at, site.timeline.step(at), [subroutine], by_config=by_config)
    row = truth_row(
        order,
        site,
        "gradual",
        site.acting(effects),
        start=at,
        cause=cause,
        main=("subroutine", subroutine),
        cost=cost_of(effects),
        ramp_end=at + length_s,
        by="config" if by_config else "code",
    )
    return Injected((row,), stacks=tuple(effects), changes=cause.changes, setup=setup)
