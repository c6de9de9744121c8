"""Time and memory of comparing the stacks around one change, step by step."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from loadgen.harness import BenchResult
from pipeline.analysis.cost_shift.scan import StackEvidence, judge_cost_shifts
from pipeline.analysis.dedup.evidence import Cluster
from pipeline.analysis.explain.explanation import explain
from pipeline.analysis.mix.traffic import judge_traffic_shifts
from pipeline.analysis.rootcause.attribution import attribute, call_distances
from pipeline.analysis.stacks import (
    against_control,
    carry_over,
    index_stacks,
    measure_rises,
    stack_difference,
)
from pipeline.model import Candidate, FloatArray, IntArray, StackMatrix

DEPTH = 40
DAYS = 7
STEPS = 10
"""Parts of the measurement, the drawing among them."""

_LABELS = 20_000
_REGRESSED = 77
"""The label that costs half as much again after the change."""

_CANDIDATES = 12
_CHANGES, _MODIFIED = 30, 20  # changes deployed before, with the subroutines that each modified

Value = TypeVar("Value")


class _Watch:
    """Measures steps one after the other: processor time, and memory beyond that at the start."""

    def __init__(self, advance: Callable[[], None]) -> None:
        self.results: list[BenchResult] = []
        self._advance = advance
        tracemalloc.start()
        self._began = time.process_time()
        self._most = 0

    def step(self, name: str, work: Callable[[], Value]) -> Value:
        """Do some work, and return its result."""
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        began = time.process_time()
        result = work()
        taken_s = time.process_time() - began
        peak = tracemalloc.get_traced_memory()[1]
        self._most = max(self._most, peak)
        self.results.append(
            BenchResult(
                f"stacks, {name}", {"s of processor time": taken_s, "MB at most": (peak - held) / 1e6}
            )
        )
        self._advance()
        return result

    def stop(self, setup: dict[str, float]) -> list[BenchResult]:
        """Return the results; the last one is of all steps together."""
        tracemalloc.stop()
        taken_s = time.process_time() - self._began
        figures = {"s of processor time": taken_s, "MB at most": self._most / 1e6}
        return [*self.results, BenchResult("stacks, all steps", figures, setup)]


def measure_stacks(advance: Callable[[], None], *, stacks: int) -> list[BenchResult]:
    """Measure the work of deduplication and root-cause analysis on the stacks around one change.

    Memory is that allocated by Python and numpy, without the stacks themselves; counting makes allocations
    somewhat slower.

    Args:
        advance: Called after each step, ``STEPS`` times.
        stacks: Number of stacks of the service, each of ``DEPTH`` elements.
    """
    around, days, nearer, labels = draw_stacks(stacks)
    advance()
    candidates = [Candidate("subroutine", label, "short_term", 0.0, 0.1, 0.15, 0.0, 9.0) for label in labels]
    rng = np.random.default_rng(2)
    modified = [[_name(n) for n in rng.integers(0, _LABELS, _MODIFIED).tolist()] for _ in range(_CHANGES)]
    watch = _Watch(advance)
    index = watch.step("index", lambda: index_stacks(around))
    cluster = Cluster(candidates, StackEvidence(index, days, nearer))
    carried = watch.step("control and inserted frames", lambda: cluster.carried)
    history = watch.step("history", lambda: cluster.stacks.history(carried))
    shifts = partial(judge_cost_shifts, carried=carried, history=history)
    watch.step("cost shift", lambda: shifts(cluster.stacks, candidates, [()] * len(candidates)))
    watch.step("traffic shift", lambda: judge_traffic_shifts(history, candidates))
    watch.step("explanation", lambda: explain(history, labels))
    watch.step("rises", lambda: measure_rises(carried.index, [candidate.series for candidate in candidates]))
    compared = watch.step(
        "index of root cause", lambda: carry_over(against_control(index_stacks(around), days)).index
    )
    regressed = compared.holding([_name(_REGRESSED)])

    def attributed() -> None:
        attribute(call_distances(compared), regressed, modified)
        stack_difference(around, regressed)

    watch.step("attribution and difference", attributed)
    return watch.stop({"stacks": float(stacks), "depth": float(DEPTH), "days": float(DAYS)})


def draw_stacks(stacks: int) -> tuple[StackMatrix, list[StackMatrix], StackMatrix, list[str]]:
    """Return stacks around a change, on earlier days and near the change, and labels that may have risen."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, _LABELS, (stacks, DEPTH))
    labels[:, 0] = 0
    for row in range(1, stacks):  # a tree: each stack branches off an earlier one
        depth = rng.integers(2, DEPTH)
        labels[row, :depth] = labels[rng.integers(row), :depth]
    names = [_name(label) for label in range(_LABELS)]
    spelt = [tuple([names[label] for label in row]) for row in labels.tolist()]
    holds = (labels == _REGRESSED).any(axis=1)
    rate = rng.gamma(0.5, 8.0, stacks)
    risen = np.where(holds, 1.5 * rate, rate)
    every = np.arange(stacks)
    rows_by_day = [np.flatnonzero(rng.random(stacks) < 0.95) for _ in range(DAYS)]
    days = [_counted(rng, spelt, rows, rate, rate) for rows in rows_by_day]
    row = int(np.flatnonzero(holds)[0]) if holds.any() else 0
    asked_labels = [_name(_REGRESSED), *dict.fromkeys(spelt[row][-_CANDIDATES + 1 :])]
    around = _counted(rng, spelt, every, rate, risen)
    return around, days, _counted(rng, spelt, every, rate / 4, risen / 4), [*dict.fromkeys(asked_labels)]


def _counted(
    rng: np.random.Generator,
    stacks: list[tuple[str, ...]],
    rows: IntArray,
    before: FloatArray,
    after: FloatArray,
) -> StackMatrix:
    counts = [rng.poisson(rate[rows]).astype(np.float64) for rate in (before, after)]
    chosen = tuple(stacks[row] for row in rows.tolist())
    return StackMatrix(chosen, counts[0], counts[1], float(counts[0].sum()), float(counts[1].sum()))


def _name(label: int) -> str:
    return f"com.acme.package{label % 200}.Class{label % 2000}.method{label}"
