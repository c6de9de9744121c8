"""Step regressions and improvements: a subroutine costs more, or less, from one moment on."""

from __future__ import annotations

from collections.abc import Callable

from loadgen.fleet.changes import speed_up
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import Site, cost_for


def inject_step(order: Order, site: Site) -> Injected:
    """Make a subroutine cost more in every place it is called from."""
    return _step(order, site, subkind="step")


def inject_cascade(order: Order, site: Site) -> Injected:
    """Make a subroutine that many others call cost more, so that all of them and their callers follow."""
    counts = sorted((site.callers(name) for name in site.subroutines), reverse=True)
    many = counts[min(len(counts) // 20, len(counts) - 1)]
    return _step(order, site, subkind="cascade", fits=lambda name: site.callers(name) >= max(many, 2))


def inject_improvement(order: Order, site: Site) -> Injected:
    """Make a subroutine cost less, by up to three quarters of what it costs itself."""
    size, (at, _) = order.size(), order.deployed(site.timeline)

    largest = max(site.own_share(name) for name in site.subroutines)
    wanted = min(size, largest / 2)
    subroutine = site.choose(order.rng, wanted, lambda name: site.own_share(name) * 0.75 >= wanted)
    if subroutine is None:
        return Injected(())
    effects = site.spread_cost(
        site.own_rows(subroutine),
        cost_for(-wanted, site.share(subroutine)),
        site.timeline.step(at),
        new_work=False,
    )
    cause = speed_up(order.rng, site.service, at, [subroutine])
    row = truth_row(
        order,
        site,
        "improvement",
        site.acting(effects),
        start=at,
        cause=cause,
        main=("subroutine", subroutine),
        cost=cost_of(effects),
    )
    return Injected((row,), stacks=tuple(effects), changes=cause.changes)


def _step(order: Order, site: Site, *, subkind: str, fits: Callable[[str], bool] | None = None) -> Injected:
    delta, (at, by_config) = order.size(), order.deployed(site.timeline)
    subroutine = site.choose(order.rng, delta, fits)
    if subroutine is None:
        return Injected(())
    profile = site.timeline.step(at)
    effects = site.spread_cost(site.own_rows(subroutine), cost_for(delta, site.share(subroutine)), profile)
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
        subkind=subkind,
        by="config" if by_config else "code",
    )
    return Injected((row,), stacks=tuple(effects), changes=cause.changes, setup=setup)
