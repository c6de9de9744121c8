"""Comparison of what is there in the end with what must be: counts to the unit, events by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from loadgen.bench.faults.load import Truth
from pipeline.backtest.dataset import Dataset
from pipeline.storage.interface import Store


@dataclass(frozen=True)
class Differences:
    """What is not as it must be; all zero after a fault that nothing was lost or doubled by."""

    totals: int
    """Windows whose number of samples is wrong."""
    subroutines: int
    """Counts of a subroutine, endpoint or metadata value in a window that are wrong."""
    stacks: int
    """Counts of a stack, over one half of the span, that are wrong."""
    points: int
    """Values of service-level metrics that are wrong or not there."""
    missing: int
    """Events that were not reported."""
    unexpected: int
    """Events that an undisturbed run does not report."""
    altered: int
    """Events with the right id that say something else than in an undisturbed run."""
    refused: int
    """Dead letters that should not be there, and bad messages without one."""
    lost: int
    """Samples that are not in the store."""
    doubled: int
    """Samples that are in the store once too often."""

    def __str__(self) -> str:
        figures = {
            "wrong counts": self.counts,
            "samples lost": self.lost,
            "samples doubled": self.doubled,
            "events missing": self.missing,
            "too many": self.unexpected,
            "altered": self.altered,
            "wrong dead letters": self.refused,
        }
        return ", ".join(f"{what} {number}" for what, number in figures.items() if number)

    @property
    def counts(self) -> int:
        """Differences in counts."""
        return self.totals + self.subroutines + self.stacks + self.points

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        return bool(self.counts or self.missing or self.unexpected or self.altered or self.refused)


def compare(
    store: Store, truth: Truth, events: Sequence[bytes], *, refused: int = 0
) -> tuple[Differences, int]:
    """Return the differences, and how many events came in more copies than one.

    ``refused`` is how many dead letters are one too many or too few.

    A replay repeats an event with its id and subscribers leave such a repeat out, so a copy is no
    difference as long as it says the same.
    """
    data = truth.dataset
    matrix = store.series("gcpu", data.service, data.start, data.end, data.window_s)
    excess = matrix.totals - data.totals
    reported = [orjson.loads(event) for event in events]
    wanted = {event["id"]: event for event in truth.events}
    ids = Counter(event["id"] for event in reported)
    differences = Differences(
        totals=int(np.count_nonzero(excess)),
        subroutines=_wrong_cells(
            dict(zip(matrix.series, matrix.samples, strict=True)),
            dict(zip(data.series, data.samples, strict=True)),
        ),
        stacks=_wrong_stacks(store, data),
        points=_wrong_points(store, data),
        missing=len(set(wanted) - set(ids)),
        unexpected=len(set(ids) - set(wanted)),
        altered=len(
            {e["id"] for e in reported if e["id"] in wanted and _content(e) != _content(wanted[e["id"]])}
        ),
        refused=refused,
        lost=int(-excess[excess < 0].sum()),
        doubled=int(excess[excess > 0].sum()),
    )
    return differences, sum(ids.values()) - len(ids)


def _content(event: Mapping[str, Any]) -> bytes:
    return orjson.dumps(event["data"], option=orjson.OPT_SORT_KEYS)


def _wrong_cells(found: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> int:
    keys = found.keys() | wanted.keys()
    return sum(int(np.count_nonzero(found.get(key, 0.0) != wanted.get(key, 0.0))) for key in keys)


def _wrong_stacks(store: Store, data: Dataset) -> int:
    windows = data.stack_samples.shape[1]
    half = windows // 2
    middle = data.start + half * data.stack_window_s
    found = store.stacks(data.service, (data.start, middle), (middle, data.end))
    sums = np.column_stack(
        [data.stack_samples[:, :half].sum(axis=1), data.stack_samples[:, half:].sum(axis=1)]
    )
    return _wrong_cells(
        dict(zip(found.stacks, np.column_stack([found.before, found.after]), strict=True)),
        dict(zip(data.stacks, sums, strict=True)),
    )


def _wrong_points(store: Store, data: Dataset) -> int:
    wrong = 0
    for source in ("service", "setup"):
        matrix = store.series(source, data.service, data.start, data.end, data.window_s)
        row_of = {name: row for row, name in enumerate(matrix.names)}
        for points in data.metrics:
            if points.setup != (source == "setup"):
                continue
            wanted = np.full(matrix.samples.shape[1], np.nan)
            position = ((points.timestamps - data.start) // data.window_s).astype(int)
            wanted[position] = points.values
            row = row_of.get(points.metric)
            found = matrix.samples[row] if row is not None else np.full_like(wanted, np.nan)
            wrong += int(np.count_nonzero(~np.isclose(found, wanted, rtol=1e-9, equal_nan=True)))
    return wrong
