"""Draws of samples of stacks; everything else, from callers to cost domains, is counted from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.fleet.callgraph import CallGraph, Incidence, Stack, endpoint_of
from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.load import LoadFactors, wander
from loadgen.fleet.scenario import GenerationSpec, Scenario
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import FloatArray

CountArray = NDArray[np.int32]

_BLOCK = 256  # windows counted at once, a bound on the memory of the product below


@dataclass(frozen=True, slots=True)
class StackCosts:
    """Cost of every stack over time, as a share of the service's cost before any injection.

    Rows without injection have the constant cost of ``base``; the others are in ``varying``. A stack that
    only exists because cost moved there wanders like the stack in ``origin`` that the cost came from, so that
    a refactoring changes nothing but names.
    """

    stacks: tuple[Stack, ...]  # those of the call graph first, then new ones
    base: FloatArray  # (stacks,)
    varying: dict[int, FloatArray]  # row → (generations, windows)
    origin: dict[int, Stack]  # row → stack
    total: FloatArray  # (windows,) of the whole service, on the mean server


def build_costs(
    scenario: Scenario, graph: CallGraph, injected: Sequence[Injected], windows: int
) -> StackCosts:
    """Apply injections to a call graph: first all that add cost, then all that move it.

    Moved cost is a share of the present cost, so that the sum stays exactly the same.
    """
    stacks = list(graph.stacks)
    row_of = {stack: row for row, stack in enumerate(stacks)}
    generations = scenario.servers.generations
    factors = _regression_factors(generations)[:, None]
    base = list(graph.weights)
    varying: dict[int, FloatArray] = {}
    origin: dict[int, Stack] = {}

    def row(stack: Stack) -> int:
        index = row_of.get(stack)
        if index is None:
            index = row_of[stack] = len(stacks)
            stacks.append(stack)
            base.append(0.0)
        if index not in varying:
            varying[index] = np.full((len(generations), windows), base[index])
        return index

    for injection in injected:
        for effect in injection.stacks:
            added = effect.cost * effect.profile
            varying[row(effect.stack)] += added * factors if effect.new_work else added
    for values in varying.values():
        np.maximum(values, 0.0, out=values)

    def move(source: Stack, goal: Stack, moved: FloatArray) -> None:
        varying[row(source)] -= moved
        new = goal not in row_of
        varying[row(goal)] += moved
        if new:
            origin[row_of[goal]] = origin.get(row_of[source], source)

    for injection in injected:
        before = {shift.source: varying[row(shift.source)].copy() for shift in injection.moves}
        for shift in injection.moves:
            move(shift.source, shift.goal, before[shift.source] * (shift.share * shift.profile))
    for reshape in (effect for injection in injected for effect in injection.reshapes):
        for stack in tuple(stacks):
            if (goal := reshape.form(stack)) != stack:
                move(stack, goal, varying[row(stack)] * reshape.profile)
    weights = _cpu_weights(generations)
    total = np.ones(windows)
    for number, values in varying.items():
        np.maximum(values, 0.0, out=values)
        total += weights @ values - base[number]
    return StackCosts(tuple(stacks), np.array(base), varying, origin, total)


def draw_counts(
    scenario: Scenario, costs: StackCosts, load: LoadFactors, timeline: Timeline, streams: Streams
) -> CountArray:
    """Draw the number of samples of every stack in every window: (stacks, windows).

    Counts are Poisson around a Gamma (together negative binomial) whose mean follows cost, load, mix and a
    slow wandering, and whose variance is that of the servers; see ``build_load``. Each stack draws from a
    stream that its own frames name.
    """
    counts = np.empty((len(costs.stacks), timeline.windows), dtype=np.int32)
    for row, stack in enumerate(costs.stacks):
        expected = expected_samples(scenario, costs, row, load, timeline, streams)
        rng = streams.of("stack", *stack)
        counts[row] = rng.poisson(dispersed(rng, expected, load.dispersion))
    counts[:, ~load.present] = 0
    return counts


def expected_samples(
    scenario: Scenario, costs: StackCosts, row: int, load: LoadFactors, timeline: Timeline, streams: Streams
) -> FloatArray:
    """Return the expected number of samples of a stack from the whole fleet: (windows,)."""
    stack = costs.stacks[row]
    weights = _cpu_weights(scenario.servers.generations)
    own = streams.of("wander", *costs.origin.get(row, stack))
    spread = np.exp(scenario.servers.cost_spread * own.standard_normal(len(weights)))
    spread /= weights @ spread
    cost = costs.varying.get(row, costs.base[row])
    expected: FloatArray = (load.exposure * (spread[:, None] * cost)).sum(axis=0)
    expected *= load.traffic.get(endpoint_of(stack), 1.0)
    expected *= np.exp(wander(own, scenario.noise.drift, scenario.noise, timeline))
    return expected


def without_late(
    scenario: Scenario, stacks: Sequence[Stack], counts: CountArray, timeline: Timeline, streams: Streams
) -> CountArray:
    """Remove samples still on their way when the data ends: (stacks, windows)."""
    if not scenario.late.share:
        return counts
    arrived = np.array(counts)
    missing = timeline.end - (timeline.starts + timeline.window_s)
    recent = np.flatnonzero(missing < scenario.late.delay_s)
    for row, stack in enumerate(stacks):
        rng = streams.of("late", *stack)
        arrived[row, recent] = rng.binomial(counts[row, recent], 1 - scenario.late.share)
    return arrived


def count_series(found: Incidence, counts: CountArray) -> FloatArray:
    """Count samples per series: incidence × stack counts, (series, windows)."""
    samples = np.empty((len(found.names), counts.shape[1]))
    for first in range(0, counts.shape[1], _BLOCK):
        block = counts[:, first : first + _BLOCK].astype(np.float64)
        samples[:, first : first + _BLOCK] = found.matrix @ block
    return samples


def dispersed(rng: np.random.Generator, expected: FloatArray, dispersion: FloatArray) -> FloatArray:
    """Draw around ``expected`` with a variance of ``dispersion`` × it."""
    if not dispersion.any():
        return expected
    scale = np.maximum(dispersion, 1e-9)
    return rng.gamma(expected / scale, scale)


def _cpu_weights(generations: Sequence[GenerationSpec]) -> FloatArray:
    """Return the share of all CPU that each generation uses."""
    cpu = np.array([g.share * g.cpu for g in generations])
    weights: FloatArray = cpu / cpu.sum()
    return weights


def _regression_factors(generations: Sequence[GenerationSpec]) -> FloatArray:
    """Return the factor of new work's cost on each generation, relative to its CPU; 1 on average.

    In FBDetect §5.1 the same change costs 0.003 % on servers at 40 % and 0.007 % on servers at 60 %.
    """
    absolute = np.array([g.regression for g in generations])
    relative = absolute / np.array([g.cpu for g in generations])
    factors: FloatArray = relative / (_cpu_weights(generations) @ relative)
    return factors
