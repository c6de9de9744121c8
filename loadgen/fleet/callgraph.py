"""Code of a service: subroutines that call each other, as the distinct stacks that samples can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from loadgen.fleet.names import endpoint_names, methods, vocabulary
from loadgen.fleet.scenario import GraphSpec
from loadgen.fleet.streams import Streams
from pipeline.model import FloatArray, MetricKind
from pipeline.model.frames import series_of

Stack = tuple[str, ...]
"""Elements from the root to the leaf, annotations included; see pipeline.model.frames."""

ROOT: Stack = ("server.main.serve", "server.http.Server.dispatch")

TIERS = ("free", "gold", "silver")
"""Values of the metadata ``tier`` that requests have."""

_MAX_DEPTH = 14
_MAX_CONTEXTS = 3  # number of its caller's stacks in which an ordinary subroutine is seen


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Distinct stacks, each with its leaf's share of the service's cost."""

    stacks: tuple[Stack, ...]
    weights: FloatArray  # (stacks,), adds up to 1
    endpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Incidence:
    """Series that every stack counts for; recursion counts once (FBDetect §5.1)."""

    kinds: tuple[MetricKind, ...]  # (series,)
    names: tuple[str, ...]  # (series,)
    matrix: Any  # scipy CSR of zeros and ones, (series, stacks)


def endpoint_of(stack: Stack) -> str:
    """Return the endpoint that a stack serves; empty if it serves none."""
    return next((label[9:] for label in stack if label.startswith("endpoint=")), "")


def endpoint_index(stack: Stack) -> int:
    """Return the index of the endpoint in a stack; the stack's length if it has none."""
    return next((i for i, label in enumerate(stack) if label.startswith("endpoint=")), len(stack))


def incidence(stacks: Sequence[Stack]) -> Incidence:
    """Return the series that stacks have, sorted by kind and name, and the stacks that count for each."""
    members = [sorted({series_of(label) for label in stack}) for stack in stacks]
    series = sorted({key for keys in members for key in keys})
    row_of = {key: row for row, key in enumerate(series)}
    rows = [row_of[key] for keys in members for key in keys]
    columns = np.repeat(np.arange(len(stacks)), [len(keys) for keys in members])
    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(series), len(stacks)))
    return Incidence(tuple(kind for kind, _ in series), tuple(name for _, name in series), matrix)


def build_graph(spec: GraphSpec, streams: Streams) -> CallGraph:
    """Draw a service's call graph and the cost of every stack.

    Costs are log-normal, heavy-tailed as in FBDetect §5.1; ``median_gcpu`` sets their spread so that the
    median subroutine has that gCPU. Every stack has at least ``floor_gcpu``. Services with common streams
    have libraries with the same subroutines.
    """
    draft = _Draft(spec, streams.of("graph"))
    draft.add_endpoints()
    draft.add_libraries(streams.common.of("libraries") if streams.common else None)
    stacks = tuple(draft.logs)
    logs = np.array(list(draft.logs.values()))
    spread = spec.spread if spec.median_gcpu is None else _spread_for(spec, stacks, logs)
    names = tuple(f"/{area}/{verb}" for area, verb in draft.endpoints)
    return CallGraph(stacks, _weights(logs, spread, spec.floor_gcpu), names)


class _Draft:
    """A call graph while it grows: each stack with the logarithm of its cost, in units of the spread."""

    def __init__(self, spec: GraphSpec, rng: np.random.Generator) -> None:
        self._spec = spec
        self._rng = rng
        self.endpoints = endpoint_names(rng, spec.endpoints)
        self.logs: dict[Stack, float] = {}
        self._contexts: dict[str, list[Stack]] = {}
        self._add(ROOT[0], [ROOT[:1]], lighter=1.0)
        self._add(ROOT[1], [ROOT], lighter=1.0)

    def add_endpoints(self) -> None:
        """Give each endpoint a handler and a tree of subroutines under it."""
        count = len(self.endpoints)
        room = self._spec.subroutines - len(ROOT) - count - self._libraries()
        sizes = 1 + self._rng.multinomial(room - count, self._rng.dirichlet(np.full(count, 3.0)))
        popularity = self._rng.standard_normal(count) * 0.4
        tiered = self._rng.random(count) < self._spec.metadata
        tiered[0] = tiered[0] or self._spec.metadata > 0  # metadata must not be missing altogether
        for index, (area, verb) in enumerate(self.endpoints):
            handler = f"shop.{area}.views.{area.capitalize()}View.{verb}"
            self._add(handler, [(*ROOT, f"endpoint=/{area}/{verb}", handler)], lighter=0.3)
            self._grow(handler, f"{area}_{verb}", int(sizes[index]), bool(tiered[index]), popularity[index])

    def add_libraries(self, naming: np.random.Generator | None) -> None:
        """Add subroutines that many others call, some through each other; ``naming`` draws their names."""
        callers = [name for name in self._contexts if name not in ROOT]
        namers = [methods(naming or self._rng, f"lib.{package}") for package in vocabulary().libraries]
        for index in range(self._libraries()):
            name = next(namers[(index // 4) % len(namers)])
            count = min(2 + int(self._rng.geometric(0.25)), len(callers))
            chosen = self._rng.choice(len(callers), size=count, replace=False)
            contexts = []
            for caller in chosen:
                stacks = self._contexts[callers[int(caller)]]
                contexts.append((*stacks[int(self._rng.integers(len(stacks)))], name))
            self._add(name, contexts)
            callers.append(name)

    def _libraries(self) -> int:
        room = self._spec.subroutines - len(ROOT) - 2 * len(self.endpoints)
        return min(round(self._spec.subroutines * self._spec.shared), room)

    def _grow(self, handler: str, package: str, size: int, tiered: bool, popularity: float) -> None:
        namer = methods(self._rng, f"shop.{package}")
        family = [handler]
        for index in range(size):
            name = next(namer)
            first = index == 0
            recent = len(family) - 1 - int(self._rng.geometric(0.35)) + 1
            parent = handler if first or recent < 0 or self._rng.random() < 0.25 else family[recent]
            stacks = [stack for stack in self._contexts[parent] if len(stack) < _MAX_DEPTH]
            if not stacks:
                stacks = self._contexts[handler]
            if first and tiered:
                contexts = [(*stacks[0], f"metadata=tier={tier}", name) for tier in TIERS]
            else:
                count = min(_MAX_CONTEXTS, len(stacks))
                picked = self._rng.choice(len(stacks), size=count, replace=False)
                contexts = [(*stacks[int(index)], name) for index in sorted(picked)]
            if self._rng.random() < self._spec.recursive:
                contexts.append((*contexts[0], name))
            self._add(name, contexts, lighter=-popularity)
            family.append(name)
            if first and tiered:
                family.append(name)  # more of the tree below it

    def _add(self, name: str, contexts: list[Stack], *, lighter: float = 0.0) -> None:
        own = self._rng.standard_normal() - lighter
        unique = list(dict.fromkeys(contexts))
        for context in unique:
            self.logs[context] = own + 0.4 * float(self._rng.standard_normal())
        self._contexts[name] = unique


def _weights(logs: FloatArray, spread: float, floor: float) -> FloatArray:
    return shares(np.exp(spread * (logs - logs.max())), floor)


def shares(costs: FloatArray, floor: float) -> FloatArray:
    """Return costs as shares that add up to 1, none below ``floor``."""
    floor = min(floor, 0.5 / len(costs))
    raised: FloatArray = floor + (1 - floor * len(costs)) * costs / costs.sum()
    return raised


def _spread_for(spec: GraphSpec, stacks: tuple[Stack, ...], logs: FloatArray) -> float:
    """Find the spread with which the median subroutine has the wanted gCPU: the wider, the lower."""
    series = incidence(stacks)
    subroutines = np.array([kind == "subroutine" for kind in series.kinds])
    low, high = 0.05, 6.0
    for _ in range(40):
        middle = (low + high) / 2
        shares = (series.matrix @ _weights(logs, middle, spec.floor_gcpu))[subroutines]
        low, high = (middle, high) if np.median(shares) > (spec.median_gcpu or 0.0) else (low, middle)
    return (low + high) / 2


def label_rows(stacks: Sequence[Stack]) -> Mapping[str, list[int]]:
    """Return the rows of the stacks that hold each label."""
    rows: dict[str, list[int]] = {}
    for row, stack in enumerate(stacks):
        for label in set(stack):
            rows.setdefault(label, []).append(row)
    return rows
