"""Seasonality: cost that returns every day or week, placed so that it rises at the edge of a window."""

from __future__ import annotations

import numpy as np

from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, subroutine_row
from loadgen.fleet.inject.site import Site
from loadgen.fleet.timeline import Timeline
from pipeline.model import FloatArray
from pipeline.model.units import DAY_S, WEEK_S


def inject_seasonal(order: Order, site: Site) -> Injected:
    """Make a subroutine cost more for some hours of every day, or for one day of every week.

    The last pulse rises two to five hours before the end of the data and does not fall within it, as at the
    edge of a scan. The whole span is affected, so the truth's start and end are those of the data.
    """
    daily = order.type == "daily"
    period_s = DAY_S if daily else WEEK_S
    delta = order.size()
    length_s = float(order.rng.uniform(6, 10)) * 3600.0 if daily else DAY_S
    last_rise = site.timeline.end - float(order.rng.uniform(2, 5)) * 3600.0
    subroutine = site.choose(order.rng, delta)
    profile = _pulses(site.timeline, last_rise, length_s, period_s)
    effects = site.change_cost(subroutine, delta, profile, new_work=False)
    row = subroutine_row(
        order,
        site,
        "seasonal",
        subroutine,
        effects,
        start=site.timeline.start,
        end=site.timeline.end,
        subkind=order.type,
        period_s=period_s,
        last_rise=last_rise,
        length_s=length_s,
    )
    return Injected((row,), stacks=tuple(effects))


def _pulses(timeline: Timeline, last_rise: float, length_s: float, period_s: float) -> FloatArray:
    profile = np.zeros(timeline.windows)
    begin = last_rise
    while begin + length_s > timeline.start:
        profile += timeline.pulse(begin, begin + length_s, rise_s=1800.0, fall_s=1800.0)
        begin -= period_s
    return profile
