"""What forged headers of replays cost the worker that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeline.counting.quota.cardinality import MAX_DAYS
from pipeline.model import Record
from pipeline.model.units import DAY_S
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore
from tests.support.builders import build_profile

START = 1_700_000_000.0 // DAY_S * DAY_S
FORGED = 6000  # a day: more than a set keeps as it came


def test_forged_replays_cost_two_numbers_each_for_three_days() -> None:
    stage = AggregateStage(
        store=ArrayStore(),
        clock=lambda: START + 30 * DAY_S,
        streams=one_stream("log"),
        window_s=60.0,
        stack_window_s=300.0,
    )
    others = entries(stage)  # what processes keep of names
    kept = []
    for day in range(3 * MAX_DAYS):
        profile = build_profile({"m;a": 1}, start=START + day * DAY_S)
        offsets = range(day * FORGED, (day + 1) * FORGED)
        stage.handle([Record("profiles", 0, n, profile, id=f"{n:032x}/0") for n in offsets])
        kept.append(entries(stage) - others)
    assert kept[MAX_DAYS - 1] < MAX_DAYS * FORGED * 2.1, "a hash and an offset each, and little else"
    assert max(kept[MAX_DAYS:]) <= kept[MAX_DAYS - 1] * 1.1
    stage.assigned("profiles", [0])
    assert entries(stage) - others < 0.1 * FORGED, "nothing is left once the partition is given up"


def entries(of: object) -> int:
    """Count what an object's containers hold, those of the store left out."""
    return sum(map(_size, _containers(of, set())))


def _size(container: Any) -> int:
    return int(container.size) if isinstance(container, np.ndarray) else len(container)


def _containers(of: object, seen: set[int]) -> Iterator[Any]:
    if id(of) in seen or isinstance(of, (str, bytes, int, float, ArrayStore)) or callable(of):
        return
    seen.add(id(of))
    if isinstance(of, np.ndarray):
        yield of
    elif isinstance(of, (dict, list, tuple, set, frozenset)):
        yield of
        for inner in [*of.keys(), *of.values()] if isinstance(of, dict) else of:
            yield from _containers(inner, seen)
    elif type(of).__module__.startswith("pipeline."):
        names = [*getattr(of, "__dict__", ()), *getattr(type(of), "__slots__", ())]
        for name in names:
            yield from _containers(getattr(of, name, None), seen)
