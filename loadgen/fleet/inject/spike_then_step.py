"""A transient spike just before a true regression of the same subroutine (FBDetect, Figure 14)."""

from __future__ import annotations

from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import Site, cost_for


def inject_spike_then_step(order: Order, site: Site) -> Injected:
    """Let a spike of two to four times the regression come and go some hours before the regression.

    A filter that took the spike for the normal level would believe that the regression went away.
    """
    delta, (at, by_config) = order.size(), order.deployed(site.timeline)
    length_s, gap_s = order.length_s(), float(order.rng.uniform(3, 12)) * 3600.0
    height = float(order.rng.uniform(2, 4))
    subroutine = site.choose(order.rng, delta)
    if subroutine is None:
        return Injected(())
    begin = max(at - gap_s - length_s, site.timeline.start)
    end = min(begin + length_s, at)
    share, rows = site.share(subroutine), site.own_rows(subroutine)
    profile = site.timeline.step(at)
    steps = site.spread_cost(rows, cost_for(delta, share), profile)
    pulse = site.timeline.pulse(begin, end, rise_s=600.0, fall_s=1200.0)
    spike = site.spread_cost(rows, cost_for(min(height * delta, 0.5), share), pulse)
    cause, setup = order.cause(site, at, profile, [subroutine], by_config=by_config)
    regression = truth_row(
        order,
        site,
        "regression",
        site.acting(steps),
        start=at,
        cause=cause,
        main=("subroutine", subroutine),
        cost=cost_of(steps),
        subkind="after_spike",
        by="config" if by_config else "code",
    )
    transient = truth_row(
        order,
        site,
        "transient",
        site.acting(spike),
        start=begin,
        end=end,
        main=("subroutine", subroutine),
        cost=cost_of(spike),
    )
    transient = {**transient, "id": f"{order.id}-spike", "subkind": "before_regression"}
    return Injected((transient, regression), stacks=(*spike, *steps), changes=cause.changes, setup=setup)
