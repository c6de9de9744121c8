"""Gradual regressions: a subroutine costs a little more every hour, over days."""

from __future__ import annotations

from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, regression
from loadgen.fleet.inject.site import Site


def inject_gradual(order: Order, site: Site) -> Injected:
    """Let a subroutine's cost grow evenly from the deployment of its cause on (a cache that fills, data)."""
    delta, deployed, length_s = order.size(), order.deployed(site.timeline), order.length_s()
    subroutine, at = site.choose(order.rng, delta), deployed[0]
    effects = site.change_cost(subroutine, delta, site.timeline.step(at, length_s))
    return regression(order, site, subroutine, effects, deployed, kind="gradual", ramp_end=at + length_s)
