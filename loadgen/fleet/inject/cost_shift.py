"""Cost shifts: refactorings that move cost between subroutines and leave the sum unchanged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.fleet.callgraph import Stack
from loadgen.fleet.changes import refactor
from loadgen.fleet.inject.effects import Injected, MoveEffect
from loadgen.fleet.inject.order import Order, truth_row
from loadgen.fleet.inject.site import Site, caller_of, same_owner
from loadgen.fleet.names import owner_of


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves of cost: (from, to, share of the cost of ``from``).

    ``modified`` are the subroutines that the change modifies, ``claims`` those whose series it breaks.
    """

    moves: tuple[tuple[Stack, Stack, float], ...]
    modified: tuple[str, ...]
    claims: tuple[str, ...]


def inject_cost_shift(order: Order, site: Site) -> Injected:
    """Refactor a subroutine so that its cost shows elsewhere, by about the drawn delta if possible.

    The main series is the one that rises most. Inlining raises none, since a caller's gCPU already holds that
    of its callees; its main series is the one that vanishes.
    """
    delta, (at, _) = order.size(), order.deployed(site.timeline)
    plan = _PLANS[order.type]
    own = order.type in ("move", "extract")  # the others also move the callees
    costs = {name: site.own_share(name) if own else site.share(name) for name in site.subroutines}

    def can(name: str) -> bool:
        moves = plan(site, name)
        return bool(moves.moves) and site.is_free(moves.claims, (move[0] for move in moves.moves))

    # A refactoring moves present cost: choose a subroutine whose cost is about that to move.
    nearest = sorted(site.subroutines, key=lambda name: abs(math.log(costs[name] / delta)))
    likely = set(nearest[: max(len(nearest) // 10, 10)])
    subroutine = site.choose(order.rng, delta, lambda name: name in likely and can(name), can)
    moves = plan(site, subroutine)
    site.take(moves.claims, (move[0] for move in moves.moves))
    profile = site.timeline.step(at)
    effects = tuple(MoveEffect(source, goal, share, profile) for source, goal, share in moves.moves)
    acting = sorted(site.acting(moves=effects), key=lambda item: item[1] < 0)  # rising series first
    main = max(acting, key=lambda item: item[1]) if acting[0][1] > 0 else acting[0]
    cause = refactor(order.rng, site.service, at, moves.modified)
    row = truth_row(
        order,
        site,
        "cost_shift",
        acting,
        start=at,
        cause=cause,
        main=main[0],
        subkind=order.type,
        moved_from=subroutine,
    )
    return Injected((row,), moves=effects, changes=cause.changes)


def _stacks(site: Site, rows: Sequence[int]) -> list[Stack]:
    return [site.graph.stacks[row] for row in rows]


def _move(site: Site, subroutine: str) -> Moves:
    """Move most of a subroutine's own work into a sibling: of its class if there is one, or a new one."""
    siblings = same_owner(site, subroutine)
    goal = siblings[0] if siblings else f"{owner_of(subroutine)}.shared_work"
    own = [stack for stack in _stacks(site, site.own_rows(subroutine)) if goal not in stack]
    return Moves(tuple((s, (*s[:-1], goal), 0.8) for s in own), (subroutine, goal), (subroutine, goal))


def _rename(site: Site, subroutine: str) -> Moves:
    """Give a subroutine another name: every stack that holds it holds the new one instead."""
    return _renamed(site, {subroutine: f"{subroutine}_v2"})


def _renamed(site: Site, names: Mapping[str, str]) -> Moves:
    rows = sorted({row for name in names for row in site.rows(name)})
    pairs = [(stack, tuple(names.get(label, label) for label in stack)) for stack in _stacks(site, rows)]
    return Moves(tuple((old, new, 1.0) for old, new in pairs), (*names, *names.values()), tuple(names))


def _inline(site: Site, subroutine: str) -> Moves:
    """Inline a subroutine into its callers: it leaves every stack, and its own work becomes theirs."""
    rows = site.rows(subroutine)
    pairs = [(s, tuple(label for label in s if label != subroutine)) for s in _stacks(site, rows)]
    callers = sorted({caller_of(stack) for stack in _stacks(site, site.own_rows(subroutine))})
    return Moves(tuple((old, new, 1.0) for old, new in pairs), (subroutine, *callers), (subroutine,))


def _split(site: Site, subroutine: str) -> Moves:
    """Split a subroutine in two that its callers call one after the other."""
    parts = (f"{subroutine}_first", f"{subroutine}_second")
    moves = []
    for stack in _stacks(site, site.rows(subroutine)):
        first, second = (tuple(part if label == subroutine else label for label in stack) for part in parts)
        ends = stack[-1] == subroutine
        moves.append((stack, first, 0.6 if ends else 1.0))
        if ends:
            moves.append((stack, second, 0.4))  # of the whole, together with the first
    return Moves(tuple(moves), (subroutine, *parts), (subroutine,))


def _extract(site: Site, subroutine: str) -> Moves:
    """Extract most of a subroutine's own work into a new one that it calls."""
    helper = f"{subroutine}_core"
    own = _stacks(site, site.own_rows(subroutine))
    return Moves(tuple((s, (*s, helper), 0.7) for s in own), (subroutine, helper), (subroutine,))


def _class_refactor(site: Site, subroutine: str) -> Moves:
    """Replace a subroutine's whole class by another one, method by method."""
    members = [subroutine, *same_owner(site, subroutine)]
    owner = owner_of(subroutine)
    if len(members) < 2 or not owner.rpartition(".")[2][:1].isupper():
        return Moves((), (), ())
    return _renamed(site, {name: f"{owner}Core{name[len(owner) :]}" for name in members})


_PLANS: Mapping[str, Callable[[Site, str], Moves]] = {
    "move": _move,
    "rename": _rename,
    "inline": _inline,
    "split": _split,
    "extract": _extract,
    "class_refactor": _class_refactor,
}
