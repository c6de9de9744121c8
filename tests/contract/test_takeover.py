"""An INSERT that its owner sends too late, when another owns the partition, doubles nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pipeline.model import FloatArray, MetricPoints, Record
from pipeline.stages.aggregate import AggregateStage
from pipeline.storage.interface import Store
from tests.support.builders import build_profile

START = 1_700_000_000.0 // 3600 * 3600


class Frozen:
    """A store before whose n-th insert something happens: its user stood still there."""

    def __init__(self, store: Store, at: int, meanwhile: Callable[[], None]) -> None:
        self._store = store
        self._left = at
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def insert(self, *arguments: Any, **named: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self._meanwhile()
        self._store.insert(*arguments, **named)


def records(service: str, first: int, end: int) -> Sequence[Record]:
    stacks = {"m;a": 10}
    return [
        Record("profiles", 0, n, build_profile(stacks, service=service, start=START))
        for n in range(first, end)
    ]


def stage(store: Store, stream: str) -> AggregateStage:
    return AggregateStage(
        store=store, clock=lambda: START + 9000, stream=stream, window_s=60.0, stack_window_s=300.0
    )


def assert_counted(store: Store, service: str, samples: int) -> None:
    matrix = store.series("gcpu", service, START, START + 3600, 60.0)
    assert (matrix.totals.sum(), matrix.samples.sum(axis=1).tolist()) == (samples, [samples, samples])
    stacks = store.stacks(service, (START, START + 1800), (START + 1800, START + 3600))
    assert stacks.before.sum() == samples


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("taken", [15, 20, 30])
def test_the_former_owner_comes_too_late(shared_store: Store, service_name: str, at: int, taken: int) -> None:
    """Frozen before any INSERT of its first or second batch, while another counts less, the same or more."""
    stage(shared_store, service_name).handle(records(service_name, 0, 5))

    def take_over() -> None:
        stage(shared_store, service_name).handle(records(service_name, 5, taken))

    frozen = stage(Frozen(shared_store, at, take_over), service_name)
    frozen.handle(records(service_name, 5, 10))
    frozen.handle(records(service_name, 10, 20))
    stage(shared_store, service_name).handle(records(service_name, 5, 30))
    assert_counted(shared_store, service_name, 300)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_new_owner_finds_a_late_block_in_its_position(
    shared_store: Store, service_name: str, at: int
) -> None:
    """The late block comes between the new owner's look at the store and its own first INSERT."""

    def late() -> None:
        stage(shared_store, service_name).handle(records(service_name, 0, 10))

    owner = stage(Frozen(shared_store, at, late), service_name)
    owner.handle(records(service_name, 0, 20))
    owner.handle(records(service_name, 20, 30))
    assert_counted(shared_store, service_name, 300)


def test_metrics_that_another_owner_has_stored_are_stored_once(
    shared_store: Store, service_name: str
) -> None:
    times: FloatArray = START + 60.0 * np.arange(10, dtype=np.float64)
    batch = [
        Record("metrics", 0, n, MetricPoints(service_name, "latency", times[n : n + 1], np.array([float(n)])))
        for n in range(10)
    ]
    first, second = stage(shared_store, service_name), stage(shared_store, service_name)
    turns = ((first, batch[:5]), (second, batch[:5]), (second, batch), (first, batch), (first, batch))
    for owner, part in turns:
        assert owner.handle(part)
    # All in one window, of which the store returns the mean: a point that was stored twice would move it.
    matrix = shared_store.series("service", service_name, START, START + 600, 600.0)
    assert (matrix.names, matrix.samples.tolist()) == (("latency",), [[4.5]])
