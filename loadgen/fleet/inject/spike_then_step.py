"""A transient spike just before a true regression of the same subroutine (FBDetect, Figure 14)."""

from __future__ import annotations

from dataclasses import replace

from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, regression, subroutine_row
from loadgen.fleet.inject.site import Site


def inject_spike_then_step(order: Order, site: Site) -> Injected:
    """Let a spike of two to four times the regression come and go some hours before the regression.

    A filter that took the spike for the normal level would believe that the regression went away.
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
