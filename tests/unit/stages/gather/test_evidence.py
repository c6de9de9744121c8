"""The stacks around change points: which spans they are of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.backtest.dataset import Dataset
from pipeline.model import Candidate, FloatArray, Scan, StackMatrix
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.evidence import stacks_around, stacks_on_earlier_days
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import Answer, CountQuery

HOUR, DAY = 3600.0, 24
T0 = 19_675 * DAY * HOUR
DAYS = 5
WORKLOAD = Workload.model_validate(
    {
        **{"name": "daily", "resolution": "10m", "rerun_interval": "1h", "historical": "4d"},
        **{"analysis": "2h", "threshold": {"absolute": 0.01}},
    }
)


def held(samples: FloatArray) -> ArrayStore:
    """A store with one stack's samples: (hours,)."""
    return ArrayStore(of_one_stack(samples))


def of_one_stack(samples: FloatArray) -> Dataset:
    kept = np.asarray(samples, dtype=np.float64)
    return Dataset(
        service="shop",
        start=T0,
        end=T0 + len(kept) * HOUR,
        window_s=HOUR,
        stack_window_s=HOUR,
        kinds=(),
        names=(),
        samples=np.zeros((0, len(kept))),
        totals=kept,
        stacks=(("main", "f"),),
        stack_samples=kept[None, :],
        metrics=(),
        changes=(),
    )


def office_hours(*, first: int = 0) -> ArrayStore:
    """A service that runs from 8 to 18 h, with 100 samples an hour, from a day on."""
    hours = np.arange(DAYS * DAY)
    return held(np.where((hours % DAY >= 8) & (hours % DAY < 18) & (hours >= first * DAY), 100.0, 0.0))


class ReadingStore(ArrayStore):
    """One that makes new objects of what it reads, as a database's client does."""

    def counts(self, query: CountQuery[Answer]) -> Answer:
        counts = super().counts(query)
        if isinstance(counts, StackMatrix):
            return replace(counts, stacks=tuple(map(tuple, map(list, counts.stacks))))
        return counts


def around(store: ArrayStore, at_h: float) -> tuple[tuple[float, float], list[tuple[float, float]]]:
    """Return the samples around a change on the last day, by a scan five hours later, and on earlier days."""
    moment = T0 + ((DAYS - 1) * DAY + at_h) * HOUR
    end = moment + 5 * HOUR
    scan = Scan("shop", "daily", T0, end - 6 * HOUR, end, end, 1)
    found = [Candidate("subroutine", "f", "short_term", moment, 0.1, 0.2, 0.0, 0.0)]
    matrix = stacks_around(store, scan, found, WORKLOAD)
    days = stacks_on_earlier_days(store, scan, found, WORKLOAD)
    return (matrix.total_before, matrix.total_after), [(day.total_before, day.total_after) for day in days]


def test_before_is_the_hours_just_before() -> None:
    assert around(office_hours(), 13)[0] == (400, 400)


def test_before_reaches_back_to_the_last_hours_with_samples() -> None:
    """In the morning the night lies just before; the afternoon is what was, on earlier days too."""
    today, days = around(office_hours(), 8)
    assert today == (500, 400)
    assert days == [(500, 400)] * 3


def test_before_is_empty_where_a_service_was_not_yet() -> None:
    assert around(office_hours(first=DAYS - 1), 8) == ((0, 400), [])


def test_days_hold_known_stacks_as_the_same_objects() -> None:
    store = ReadingStore(of_one_stack(np.full(DAYS * DAY, 100.0)))
    moment = T0 + ((DAYS - 1) * DAY + 13) * HOUR
    scan = Scan("shop", "daily", T0, moment - HOUR, moment + 5 * HOUR, moment + 5 * HOUR, 1)
    found = [Candidate("subroutine", "f", "short_term", moment, 0.1, 0.2, 0.0, 0.0)]
    known = stacks_around(store, scan, found, WORKLOAD).stacks
    days = stacks_on_earlier_days(store, scan, found, WORKLOAD, known=known)
    assert len(days) == 4
    assert {id(stack) for day in days for stack in day.stacks} == {id(known[0])}
    apart = stacks_on_earlier_days(store, scan, found, WORKLOAD)
    assert len({id(stack) for day in apart for stack in day.stacks}) == 1
