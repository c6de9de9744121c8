"""Call graph made from a real profile's stacks, scaled to a scenario's size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agents.profiles.formats import AUTO, ProfileSource, count_samples, find_format, read_profile
from agents.profiles.naming import name_stack
from agents.profiles.profile_source import named
from loadgen.fleet.callgraph import CallGraph, Stack, shares
from loadgen.fleet.scenario import GraphSpec
from loadgen.fleet.streams import Streams
from pipeline.model.errors import ConfigError, file_errors

DEEPEST = 40
"""Stacks keep this many frames: the root and what is nearest to the leaf."""

_OWNER = re.compile(r"^(?P<owner>.*\w)(?P<method>(?:::|[./#])[^./:#]+)$", re.DOTALL)


def read_profile_graph(spec: GraphSpec, streams: Streams) -> CallGraph:
    """Make a call graph from the profile that ``spec.profile`` names.

    The profile's tree is copied, with classes numbered anew under the endpoints, until there are
    ``spec.subroutines`` names; a larger tree loses its lightest stacks instead. Endpoints are groups of the
    branches at the first depth with ``spec.endpoints`` branches. A stack's cost is drawn around its samples.

    Raises:
        ConfigError: the file cannot be read, or holds no stack.
    """
    samples = read_stacks(Path(spec.profile or ""))
    stacks = list(samples)
    depth = _branching(stacks, spec.endpoints)
    rng = streams.of("graph")
    counts = np.array([float(samples[stack]) for stack in stacks])
    wanted, names = spec.subroutines, len({name for stack in stacks for name in stack})
    tree: dict[Stack, float] = {}
    for copy in range(max(1, -(-wanted // max(names, 1)))):
        weights = rng.gamma(counts + 0.5) * float(np.exp(rng.standard_normal() * (copy > 0)))
        for stack, weight in zip(stacks, weights, strict=True):
            twin = (*stack[:depth], *(_twin(name, copy) for name in stack[depth:]))
            tree[twin] = tree.get(twin, 0.0) + float(weight)
    heaviest = _heaviest(tree, wanted)
    groups = _groups(heaviest, depth, spec.endpoints)
    placed = {
        (*stack[:depth], f"endpoint={groups[stack[: depth + 1]]}", *stack[depth:])
        if len(stack) > depth
        else stack: weight
        for stack, weight in heaviest.items()
    }
    return CallGraph(
        tuple(placed),
        shares(np.array(list(placed.values())), spec.floor_gcpu),
        tuple(sorted(set(groups.values()))),
    )


def read_stacks(path: Path) -> Counter[Stack]:
    """Return the stacks of a profile file with their samples, no deeper than ``DEEPEST``.

    Raises:
        ConfigError: the file cannot be read, or holds no stack.
    """
    with file_errors(f"graph: profile: {path}"), named(path), path.open("rb") as stream:
        source = ProfileSource(stream)
        samples = count_samples(read_profile(find_format(AUTO, source.head), source))
    counts: Counter[Stack] = Counter()
    for frames, count in samples.stacks.items():
        stack = tuple(frame.name for frame in name_stack(frames))
        counts[stack if len(stack) <= DEEPEST else (stack[0], *stack[1 - DEEPEST :])] += count
    if not counts:
        raise ConfigError(f"graph: profile: {path}: holds no stack")
    return counts


def _branching(stacks: Sequence[Stack], branches: int) -> int:
    """Return the number of frames above the endpoints: the first depth with enough branches."""
    best, most = 1, 0
    for depth in range(1, DEEPEST):
        count = len({stack[: depth + 1] for stack in stacks if len(stack) > depth})
        if count > most:
            best, most = depth, count
        if count >= branches:
            break
    return best


def _twin(name: str, copy: int) -> str:
    """Return a frame's name in a copy of the tree: its class, or the frame itself without class, is numbered.

    Frames of the kernel are the same in every copy.
    """
    if copy == 0 or name.endswith("_[k]"):
        return name
    bare, ending = (name[:-4], name[-4:]) if name.endswith(("_[j]", "_[i]")) else (name, "")
    match = _OWNER.match(bare)
    twin = f"{match['owner']}{copy}{match['method']}" if match else f"{bare}{copy}"
    return twin + ending


def _heaviest(stacks: dict[Stack, float], names: int) -> dict[Stack, float]:
    heaviest: dict[Stack, float] = {}
    seen: set[str] = set()
    for stack, weight in sorted(stacks.items(), key=lambda item: -item[1]):
        if len(seen | set(stack)) <= names:
            seen.update(stack)
            heaviest[stack] = weight
    return heaviest


def _groups(stacks: dict[Stack, float], depth: int, count: int) -> dict[Stack, str]:
    """Group branches into endpoints of about the same cost: branch → endpoint."""
    costs: Counter[Stack] = Counter()
    for stack, weight in stacks.items():
        if len(stack) > depth:
            costs[stack[: depth + 1]] += weight  # type: ignore[assignment]
    loads = [0.0] * count
    endpoints = {}
    for branch, cost in costs.most_common():
        lightest = int(np.argmin(loads))
        loads[lightest] += cost
        endpoints[branch] = f"/group-{lightest + 1}"
    return endpoints
