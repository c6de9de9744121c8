"""The call graph of a source tree: the subroutines that one may run, with their distances in calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agents.source.routes.modules import Modules
from agents.source.routes.resolve import Resolver
from agents.source.routes.source import Unit

MOST_CALLS = 40
"""Most calls for which a handler is followed."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Reach of a handler.

    Args:
        depths: Subroutine → fewest calls from the handler, 0 for itself.
        callers: Subroutine → the one before it on such a way.
    """

    depths: Mapping[str, int]
    callers: Mapping[str, str]

    def way(self, subroutine: str) -> tuple[str, ...]:
        """Return the calls from the handler to a subroutine that it reaches, both included."""
        way = [subroutine]
        while way[-1] in self.callers:
            way.append(self.callers[way[-1]])
        return tuple(reversed(way))


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Calls between the subroutines of a source tree.

    Args:
        calls: Subroutine → those that it runs or names.
        defined: Subroutine → path and line, from 1.
        members: Class → its methods, which whoever holds an object of it may run.
        unresolved: How many uses on values of unknown type have no known target.
    """

    calls: Mapping[str, frozenset[str]]
    defined: Mapping[str, tuple[str, int]]
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unresolved: int = 0

    def reach(self, handler: str, most: int = MOST_CALLS) -> Reach:
        """Return the reach of a handler; for a class, the union over its methods."""
        depths, callers = {handler: 0}, {}
        left = deque([handler])
        for method in self.members.get(handler, ()):
            depths[method], callers[method] = 1, handler
            left.append(method)
        while left:
            name = left.popleft()
            if depths[name] >= most:
                continue
            for called in sorted(self.calls.get(name, ())):
                if called not in depths:
                    depths[called], callers[called] = depths[name] + 1, name
                    left.append(called)
        return Reach(depths, callers)

    def with_stacks(self, stacks: Iterable[Sequence[str]]) -> CallGraph:
        """Return the graph with the calls that stacks show, root first, of subroutines that it knows.

        Frames between two of them, such as those of a framework, do not count.
        """
        calls = {name: set(called) for name, called in self.calls.items()}
        for stack in stacks:
            frames = [name for name in stack if name in self.defined]
            for caller, called in zip(frames, frames[1:], strict=False):
                calls.setdefault(caller, set()).add(called)
        return replace(self, calls={name: frozenset(called) for name, called in calls.items()})


def build_graph(units: Iterable[Unit]) -> tuple[CallGraph, Resolver]:
    """Build the call graph of a source tree, and what resolves its names."""
    modules = Modules(units)
    resolver = Resolver(modules)
    calls: dict[str, frozenset[str]] = {}
    unresolved = 0
    for name, scope, uses in resolver.scopes():
        touched: set[str] = set()
        for chain in uses:
            entity, subroutines = resolver.used(chain, scope)
            touched.update(subroutines)
            unresolved += entity is None and not subroutines
        calls[name] = calls.get(name, frozenset()) | (touched - {name})
    defined: dict[str, tuple[str, int]] = {}
    members: dict[str, tuple[str, ...]] = {}
    for unit in modules.units.values():
        for function in unit.functions.values():
            defined.setdefault(function.name, (unit.path, function.line))
        for class_ in unit.classes.values():
            defined.setdefault(class_.name, (unit.path, class_.line))
            members[class_.name] = tuple(
                function.name for function in unit.functions.values() if function.owner == class_.qualified
            )
    return CallGraph(calls, defined, members, unresolved), resolver
