"""Slower libraries: one subroutine or all of a library cost more in each service that calls it."""

from __future__ import annotations

from loadgen.fleet.changes import deploy, upgrade
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import NothingFits, Site
from loadgen.fleet.streams import Streams
from pipeline.model import SeriesKey

_RELEASES = 4  # number of releases within which all services have it


def inject_library(order: Order, site: Site) -> Injected:
    """Make a library cost more by a factor, from a release of the service on.

    Draws are the same in all services of a scenario, so all services get the same change of the same library,
    each with one of its next releases. Modified code names the one subroutine that gets slower; an upgrade
    slows all subroutines of the library and names none.

    Raises:
        NothingFits: the service calls no library that is free.
    """
    factor, (at, _) = order.size(), order.deployed(site.timeline)
    packages: dict[str, list[str]] = {}
    for name in site.subroutines:
        if name.startswith("lib.") and site.is_free([name], ()):
            packages.setdefault(".".join(name.split(".")[:2]), []).append(name)
    if not packages:
        raise NothingFits
    package = sorted(packages)[int(order.rng.integers(len(packages)))]
    slowed = packages[package]
    site.take(slowed, ())
    if order.type == "modified":
        slowed = [slowed[int(order.rng.integers(len(slowed)))]]
    own = Streams(int(order.rng.integers(2**32))).of(site.service)
    at += order.releases.release_every_s * int(own.integers(_RELEASES))
    profile = site.timeline.step(at)
    effects = [
        effect
        for name in slowed
        for effect in site.spread_cost(site.own_rows(name), factor * site.own_share(name), profile)
    ]
    if order.type == "upgraded":
        cause = upgrade(order.rng, site.service, at, package)
    else:
        cause = deploy(order.rng, site.service, at, slowed)
    acting = site.acting(effects)
    rises = {key: change for key, change in acting if key.name in slowed}
    main: SeriesKey = max(rises, key=lambda key: rises[key])
    row = truth_row(
        order,
        site,
        "regression",
        acting,
        start=at,
        cause=cause,
        main=main,
        cost=cost_of(effects),
        subkind=f"library_{order.type}",
        library=package,
        parts=slowed,
    )
    return Injected((row,), stacks=tuple(effects), changes=cause.changes)
