"""Jobs: work of about an hour every day or week, by subroutines that have no samples in between."""

from __future__ import annotations

from itertools import islice

import numpy as np

from loadgen.fleet.callgraph import Stack
from loadgen.fleet.inject.effects import Injected, StackEffect
from loadgen.fleet.inject.order import Order, subroutine_row
from loadgen.fleet.inject.site import Site
from loadgen.fleet.names import methods, pick, vocabulary
from pipeline.model.units import DAY_S, WEEK_S

_SCHEDULER: Stack = ("jobs.main.run", "jobs.scheduler.Scheduler.fire")
_SMALLEST, _LARGEST = 4, 12  # number of subroutines of a job


def inject_cron(order: Order, site: Site) -> Injected:
    """Run a job every day or week from a moment on; in between it has no samples.

    Its delta is its gCPU while it runs. It also calls one library subroutine that requests call too.
    """
    delta, at, length_s = order.size(), order.moment(site.timeline), order.length_s()
    period_s = DAY_S if order.type == "daily" else WEEK_S
    profile = np.zeros(site.timeline.windows)
    for begin in np.arange(at, site.timeline.end, period_s):
        profile += site.timeline.pulse(float(begin), float(begin) + length_s)
    stacks = _job(order, site)
    costs = order.rng.dirichlet(np.ones(len(stacks))) * delta / (1 - delta)
    effects = [
        StackEffect(stack, float(cost), profile, new_work=False)
        for stack, cost in zip(stacks, costs, strict=True)
    ]
    facts = {"subkind": f"{order.type}_job", "period_s": period_s, "length_s": length_s}
    end = site.timeline.end
    row = subroutine_row(order, site, "seasonal", stacks[0][-1], effects, start=at, end=end, **facts)
    return Injected((row,), stacks=tuple(effects))


def _job(order: Order, site: Site) -> list[Stack]:
    """Draw a job's stacks: a tree under the scheduler, its first subroutine first."""
    package = f"jobs.{pick(order.rng, vocabulary().areas)}_{order.id.replace('-', '_')}"
    count = int(order.rng.integers(_SMALLEST, _LARGEST + 1))
    stacks: list[Stack] = []
    for name in islice(methods(order.rng, package), count):
        stacks.append((*(pick(order.rng, stacks) if stacks else _SCHEDULER), name))
    if libraries := [name for name in site.subroutines if name.startswith("lib.")]:
        stacks.append((*stacks[-1], pick(order.rng, libraries)))
    return stacks
