"""Site of injections: the call graph with queries on it, and the subroutines chosen so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from loadgen.fleet.callgraph import CallGraph, Stack, endpoint_index, label_rows
from loadgen.fleet.hosts import Hosts
from loadgen.fleet.inject.effects import EndpointEffect, MoveEffect, StackEffect
from loadgen.fleet.names import owner_of
from loadgen.fleet.timeline import Timeline
from pipeline.model import FloatArray, SeriesKey
from pipeline.model.frames import series_of

LARGEST_RISE = 10.0
"""Largest factor of a subroutine's cost by a step, if there is a choice."""


class NothingFits(Exception):
    """An injection found no subroutine that it could change."""


class Site:
    """A call graph, its timeline, and the subroutines that earlier injections took."""

    def __init__(
        self, service: str, graph: CallGraph, timeline: Timeline, hosts: Hosts | None = None
    ) -> None:
        self.service = service
        self.graph = graph
        self.timeline = timeline
        self.hosts = hosts
        self._rows = label_rows(graph.stacks)
        self._taken: set[str] = set()
        self._moved: set[int] = set()

    @cached_property
    def owners(self) -> dict[str, list[str]]:
        """The subroutines of each class or module."""
        by_owner: dict[str, list[str]] = {}
        for name in self.subroutines:
            by_owner.setdefault(owner_of(name), []).append(name)
        return by_owner

    @cached_property
    def row_of(self) -> dict[Stack, int]:
        """The row of every stack."""
        return {stack: row for row, stack in enumerate(self.graph.stacks)}

    def is_free(self, subroutines: Iterable[str], stacks: Iterable[Stack]) -> bool:
        """Return whether no injection has taken any of the subroutines, and no move any of the stacks."""
        return self._taken.isdisjoint(subroutines) and self._moved.isdisjoint(
            self.row_of[stack] for stack in stacks
        )

    def take(self, subroutines: Iterable[str], stacks: Iterable[Stack]) -> None:
        """Reserve subroutines against further injections, and stacks against further moves."""
        self._taken.update(subroutines)
        self._moved.update(self.row_of[stack] for stack in stacks)

    @cached_property
    def subroutines(self) -> tuple[str, ...]:
        """Every subroutine but the root and the endpoints' handlers, sorted."""
        names = {stack[-1] for stack in self.graph.stacks}
        return tuple(sorted(names - self.entries))

    @cached_property
    def entries(self) -> frozenset[str]:
        """The frames above the endpoints, and the endpoints' handlers."""
        frames: set[str] = set()
        for stack in self.graph.stacks:
            frames.update(stack[: endpoint_index(stack)])
            frames.update(stack[endpoint_index(stack) + 1 : endpoint_index(stack) + 2])
        return frozenset(frames)

    def rows(self, label: str) -> list[int]:
        """Return the rows of the stacks that hold a label."""
        return self._rows.get(label, [])

    def share(self, label: str) -> float:
        """Return the gCPU of a label before any injection."""
        return float(self.graph.weights[self.rows(label)].sum())

    def own_rows(self, subroutine: str) -> list[int]:
        """Return the rows of the stacks that end in a subroutine."""
        return [row for row in self.rows(subroutine) if self.graph.stacks[row][-1] == subroutine]

    def own_share(self, subroutine: str) -> float:
        """Return the share of samples in which a subroutine is the leaf, before any injection."""
        return float(self.graph.weights[self.own_rows(subroutine)].sum())

    def callers(self, subroutine: str) -> int:
        """Return the number of distinct direct callers of a subroutine."""
        return len({caller_of(self.graph.stacks[row]) for row in self.own_rows(subroutine)})

    def choose(self, rng: np.random.Generator, delta: float, *preferences: Callable[[str], bool]) -> str:
        """Choose a subroutine without injection, for a change of gCPU of about ``delta``.

        The choice is random among the subroutines that fit the first preference with any fit. It is large
        enough for the change to be plausible and small enough to stand out, if there is such a subroutine. If
        none is free, a subroutine that fits is chosen twice.

        Raises:
            NothingFits: no subroutine fits any preference.
        """
        for fits in preferences or (lambda _: True,):
            order = [self.subroutines[int(i)] for i in rng.permutation(len(self.subroutines))]
            fitting = [name for name in order if fits(name)]
            if pool := [name for name in fitting if name not in self._taken] or fitting:
                good = [name for name in pool if abs(delta) / LARGEST_RISE <= self.share(name) <= 0.25]
                chosen = good[0] if good else max(pool[:20], key=self.share)
                self._taken.add(chosen)
                return chosen
        raise NothingFits

    def change_cost(
        self, subroutine: str, delta: float, profile: FloatArray, *, scope: str = "", new_work: bool = True
    ) -> list[StackEffect]:
        """Change a subroutine's gCPU by ``delta`` × ``profile``, in its own stacks that hold ``scope``."""
        rows = [row for row in self.own_rows(subroutine) if not scope or scope in self.graph.stacks[row]]
        return self.spread_cost(rows, cost_for(delta, self.share(subroutine)), profile, new_work=new_work)

    def spread_cost(
        self, rows: Sequence[int], cost: float, profile: FloatArray, *, new_work: bool = True
    ) -> list[StackEffect]:
        """Add ``cost`` to stacks in proportion to their present cost."""
        weights = self.graph.weights[rows]
        parts = cost * weights / weights.sum()
        return [
            StackEffect(self.graph.stacks[row], float(part), profile, new_work)
            for row, part in zip(rows, parts, strict=True)
        ]

    def acting(
        self,
        stacks: Iterable[StackEffect] = (),
        moves: Iterable[MoveEffect] = (),
        endpoints: Iterable[EndpointEffect] = (),
    ) -> list[tuple[SeriesKey, float]]:
        """Return every series whose gCPU changes noticeably, with the change, nearest the cause first.

        Noticeable is a tenth of the largest change, or a twentieth of the series itself.
        The change is that of the gCPU ratio between none and all of the effects (profile 0 and 1), without
        noise. The nearest series are deepest in the affected stacks; series that move against the main
        direction of the injection come last.
        """
        added: dict[Stack, float] = {}
        for effect in stacks:
            added[effect.stack] = added.get(effect.stack, 0.0) + effect.cost
        for move in moves:
            cost = move.share * float(self.graph.weights[self.row_of[move.source]])
            added[move.source] = added.get(move.source, 0.0) - cost
            added[move.goal] = added.get(move.goal, 0.0) + cost
        for shift in endpoints:
            for row in self.rows(f"endpoint={shift.endpoint}"):
                stack = self.graph.stacks[row]
                added[stack] = added.get(stack, 0.0) + shift.gain * float(self.graph.weights[row])
        return self._noticeable(added)

    def _noticeable(self, added: dict[Stack, float]) -> list[tuple[SeriesKey, float]]:
        cost: dict[str, float] = {}
        positions: dict[str, list[tuple[float, int]]] = {}
        for stack, amount in added.items():
            last = {label: position for position, label in enumerate(stack)}
            for label, position in last.items():
                cost[label] = cost.get(label, 0.0) + amount
                positions.setdefault(label, []).append((abs(amount), len(stack) - 1 - position))
        whole = 1 + sum(added.values())
        changes = {
            label: (self.share(label) + amount) / whole - self.share(label) for label, amount in cost.items()
        }
        largest = max((abs(change) for change in changes.values()), default=0.0)
        sign = 1.0 if sum(changes.values()) >= 0 else -1.0

        def order(label: str) -> tuple[bool, float, str]:
            mass = sum(weight for weight, _ in positions[label])
            distance = sum(weight * d for weight, d in positions[label]) / mass if mass else 0.0
            return changes[label] * sign < 0, distance, label

        def noticeable(label: str) -> bool:
            change = abs(changes[label])
            larger = max(self.share(label), self.share(label) + changes[label])
            return change > 0.1 * largest or change > max(0.05 * larger, 1e-6)

        labels = [label for label in changes if noticeable(label)]
        return [(series_of(label), changes[label]) for label in sorted(labels, key=order)]


def cost_for(delta: float, share: float) -> float:
    """Return the cost to add so that a gCPU of ``share`` changes by ``delta`` (FBDetect, Appendix A.3)."""
    return delta / (1 - share - delta)


def caller_of(stack: Stack) -> str:
    """Return the subroutine that calls the leaf of a stack, skipping annotations."""
    for label in reversed(stack[:-1]):
        if series_of(label).kind == "subroutine":
            return label
    return ""


def same_owner(site: Site, subroutine: str) -> list[str]:
    """Return the other subroutines of the same class or module."""
    return [name for name in site.owners[owner_of(subroutine)] if name != subroutine]
