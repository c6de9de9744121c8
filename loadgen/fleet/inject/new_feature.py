"""New features: cost spread over many subroutines, old and new, without a single root cause."""

from __future__ import annotations

from loadgen.fleet.changes import deploy
from loadgen.fleet.inject.effects import Injected, StackEffect
from loadgen.fleet.inject.order import Order, cost_of, truth_row
from loadgen.fleet.inject.site import Site, caller_of
from loadgen.fleet.names import owner_of
from pipeline.model import Change, SeriesKey

_LARGEST_TEAM = 40


def inject_new_feature(order: Order, site: Site) -> Injected:
    """Spread a rise over ten to forty subroutines, a quarter of them new, by as many changes.

    The regression should be reported (FBDetect §5.5.3 calls such regressions expected to cost more), but no
    single change explains it: ``change`` is null and ``changes`` lists all of them.
    """
    delta, (at, _) = order.size(), order.deployed(site.timeline)
    count = min(int(order.rng.integers(10, _LARGEST_TEAM + 1)), len(site.subroutines) // 2)
    positions = order.rng.choice(len(site.subroutines), size=count, replace=False)
    chosen = [site.subroutines[int(position)] for position in positions]
    parts = order.rng.dirichlet([2.0] * count) * delta / (1 - delta)
    profile = site.timeline.step(at, 1800.0)
    effects: list[StackEffect] = []
    touched = []
    for number, (name, cost) in enumerate(zip(chosen, parts, strict=True)):
        rows = site.own_rows(name)
        added = site.spread_cost(rows, float(cost), profile)
        if number % 4 == 0:
            name = f"{owner_of(name)}.feature_{order.ordinal + 1}_part_{number // 4 + 1}"
            added = [StackEffect((*e.stack, name), e.cost, e.profile) for e in added]
        touched.append(name)
        effects += added
    changes: list[Change] = []
    for name in touched:
        changes += deploy(order.rng, site.service, at, [name]).changes
    row = truth_row(
        order,
        site,
        "new_feature",
        _parts_first(site.acting(effects), set(touched)),
        start=at,
        cost=cost_of(effects),
        parts=touched,
        changes=[change.id for change in changes],
        whole=delta,
        callers_of_new=sorted({caller_of(e.stack) for e in effects if e.stack[-1] not in site.subroutines}),
    )
    return Injected((row,), stacks=tuple(effects), changes=tuple(changes))


def _parts_first(acting: list[tuple[SeriesKey, float]], touched: set[str]) -> list[tuple[SeriesKey, float]]:
    """Order the parts by their rise, the largest first."""
    parts = [item for item in acting if item[0].name in touched]
    main = max(parts, key=lambda item: item[1]) if parts else acting[0]
    return [main, *(item for item in acting if item is not main)]
