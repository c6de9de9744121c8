"""The memory of stack comparison for each element of the stacks, which no machine's speed touches."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline.analysis.cost_shift.refactorings import compare_stacks
from pipeline.analysis.cost_shift.stack_history import stack_history
from pipeline.analysis.mix.traffic import judge_traffic_shifts
from pipeline.analysis.rootcause.attribution import call_distances
from pipeline.analysis.stacks import against_control, carry_over, index_stacks, measure_rises
from pipeline.model import SeriesKey, StackMatrix

STACKS, DEPTH, LABELS = 5_000, 40, 1_000
ELEMENTS = STACKS * DEPTH
SERIES = [SeriesKey("subroutine", f"shop.page{number}.View.render") for number in range(0, LABELS, 100)]


def drawn(seed: int, labels: np.ndarray[Any, np.dtype[np.int64]]) -> StackMatrix:
    before, after = np.random.default_rng(seed).poisson(3.0, (2, len(labels))).astype(np.float64)
    names = [f"shop.page{number}.View.render" for number in range(LABELS)]
    stacks = tuple(tuple(names[number] for number in row) for row in labels.tolist())
    return StackMatrix(stacks, before, after, float(before.sum()), float(after.sum()))


@pytest.fixture(scope="module")
def spans() -> list[StackMatrix]:
    """Stacks around a change and at the same hours of four earlier days, each with some of its own."""
    rng = np.random.default_rng(5)
    labels = rng.integers(1, LABELS, (STACKS, DEPTH))
    labels[:, 0] = 0
    for row in range(1, STACKS):  # a tree: each stack leaves an earlier one somewhere
        depth = rng.integers(1, DEPTH)
        labels[row, :depth] = labels[rng.integers(row), :depth]
    days = [np.concatenate([labels[: STACKS - 100], labels[-100:, ::-1]]) for _ in range(4)]
    return [drawn(day, found) for day, found in enumerate([labels, *days])]


def memory(work: Callable[[], object]) -> tuple[float, float]:
    """The bytes for each element that work takes at most, and those that its result keeps."""
    work()  # what is imported, compiled and cached at first is no part of it
    tracemalloc.start()
    try:
        result = work()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del result
    return peak / ELEMENTS, kept / ELEMENTS


def test_an_index_takes_few_bytes_for_each_element(spans: list[StackMatrix]) -> None:
    peak, kept = memory(lambda: index_stacks(spans[0]))
    assert peak < 48
    assert kept < 28


def test_each_comparison_takes_few_bytes_for_each_element(spans: list[StackMatrix]) -> None:
    index = index_stacks(spans[0])
    history = stack_history(index, spans[1:])
    peaks = {
        "control": memory(lambda: against_control(index, spans[1:]))[0],
        "inserted frames": memory(lambda: carry_over(index))[0],
        "history": memory(lambda: stack_history(index, spans[1:]))[0],
        "similarity": memory(lambda: compare_stacks(history))[0],
        "traffic": memory(lambda: judge_traffic_shifts(history, []))[0],
        "rises": memory(lambda: measure_rises(index, SERIES))[0],
        "distances": memory(lambda: call_distances(index))[0],
    }
    bounds = {
        "control": 16.0,
        "inserted frames": 13.0,
        "history": 56.0,
        "similarity": 14.0,
        "traffic": 22.0,
        "rises": 52.0,
        "distances": 48.0,
    }
    assert {step: peak for step, peak in peaks.items() if peak > bounds[step]} == {}
