"""Comparison of the final state with the truth: counts to the unit, events by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import orjson

from loadgen.bench.faults.rows import wrong_rows
from loadgen.bench.faults.truth import SENDER_WINDOW_S, Truth
from pipeline.backtest.dataset import Dataset
from pipeline.settings.topics import Topics
from pipeline.stages.gather.streams import COUNTED_TOPICS, stored_up_to
from pipeline.storage.interface import RowQuery, SeriesQuery, StackQuery, Store, StrataQuery
from pipeline.storage.schema import EVER


@dataclass(frozen=True)
class Differences:
    """Differences from the truth; all zero after a fault that lost nothing and doubled nothing."""

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
    """Dead letters that should not be there, and bad messages without one; a store does not know them."""
    lost: int
    """Samples that are not in the store."""
    doubled: int
    """Samples that are in the store once too often."""
    _: KW_ONLY
    rows: int = 0
    """Rows of scans, regressions, the ledger and the other tables of rows that are missing, too many or
    say something else."""
    strata: int = 0
    """Windows in which the samples by sender do not add up to the samples, and stacks that do not."""
    positions: int = 0
    """Partitions of which the store does not say that they were counted to their end."""
    tables: Mapping[str, int] = field(default_factory=dict)
    """The rows by table, where any differ."""

    def __str__(self) -> str:
        figures = {
            "wrong counts": self.counts,
            "samples lost": self.lost,
            "samples doubled": self.doubled,
            "events missing": self.missing,
            "too many": self.unexpected,
            "altered": self.altered,
            "wrong dead letters": self.refused,
            **{f"rows of {table}": number for table, number in self.tables.items()},
            "wrong senders": self.strata,
            "wrong positions": self.positions,
        }
        return ", ".join(f"{what} {number}" for what, number in figures.items() if number)

    def __add__(self, other: Differences) -> Differences:
        mine, theirs = ({f.name: getattr(side, f.name) for f in fields(side)} for side in (self, other))
        tables = dict(Counter(self.tables) + Counter(other.tables))
        return Differences(
            **{name: mine[name] + theirs[name] for name in mine if name != "tables"}, tables=tables
        )

    @property
    def counts(self) -> int:
        """Differences in counts."""
        return self.totals + self.subroutines + self.stacks + self.points

    @property
    def any(self) -> bool:
        """Whether anything differs."""
        events = self.missing + self.unexpected + self.altered
        return bool(self.counts + events + self.refused + self.rows + self.strata + self.positions)


def compare(
    store: Store, truth: Truth, events: Sequence[bytes], *, rows: bool = True
) -> tuple[Differences, int]:
    """Return the differences, and the number of events that came in several copies.

    Without ``rows`` the rows of stages and senders are not compared: a former version writes different ones.

    A replay repeats an event with its id, and subscribers skip repeats. So a copy with equal content is no
    difference.
    """
    data = truth.dataset
    matrix = store.series(SeriesQuery("gcpu", data.service, data.start, data.end, data.window_s))
    excess = matrix.totals - data.totals
    reported = [orjson.loads(event) for event in events]
    wanted = {event["id"]: event for event in truth.events}
    ids = Counter(event["id"] for event in reported)
    tables = wrong_rows(store, truth) if rows else {}
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
        refused=0,
        lost=int(-excess[excess < 0].sum()),
        doubled=int(excess[excess > 0].sum()),
        rows=sum(tables.values()),
        strata=_wrong_strata(store, data) + _wrong_strata_stacks(store, data) if rows else 0,
        tables=tables,
    )
    return differences, sum(ids.values()) - len(ids)


def compare_all(
    store: Store, truths: Sequence[Truth], events: Sequence[bytes], *, rows: bool = True
) -> tuple[Differences, int]:
    """Return the differences of several services together, and the number of copies; see ``compare``.

    An event of a service that was not sent is unexpected.
    """
    by_service: dict[str, list[bytes]] = {truth.dataset.service: [] for truth in truths}
    strange = 0
    for event in events:
        of_service = by_service.get(orjson.loads(event)["data"]["service"])
        if of_service is None:
            strange += 1
        else:
            of_service.append(event)
    comparisons = [compare(store, truth, by_service[truth.dataset.service], rows=rows) for truth in truths]
    summed = reduce(add, (differences for differences, _ in comparisons))
    return replace(summed, unexpected=summed.unexpected + strange), sum(copies for _, copies in comparisons)


def wrong_positions(store: Store, topics: Topics, ends: Mapping[tuple[str, int], int]) -> int:
    """Return the number of partitions whose stored offset is not their end."""
    streams = {row["topic"]: row["stream"] for row in store.rows(RowQuery("logs", None, *EVER))}
    wrong = 0
    for topic in COUNTED_TOPICS:
        partitions = range(topics[topic].partitions)
        counted = stored_up_to(store, streams.get(topic, ""), topic, partitions)
        wrong += sum(counted[p] != ends.get((topic, p), 0) for p in partitions)
    return wrong


def _content(event: Mapping[str, Any]) -> bytes:
    return orjson.dumps(event["data"], option=orjson.OPT_SORT_KEYS)


def _wrong_cells(stored: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> int:
    keys = stored.keys() | wanted.keys()
    return sum(int(np.count_nonzero(stored.get(key, 0.0) != wanted.get(key, 0.0))) for key in keys)


def _wrong_stacks(store: Store, data: Dataset) -> int:
    windows = data.stack_samples.shape[1]
    half = windows // 2
    middle = data.start + half * data.stack_window_s
    stored = store.counts(StackQuery(data.service, (data.start, middle), (middle, data.end)))
    sums = np.column_stack(
        [data.stack_samples[:, :half].sum(axis=1), data.stack_samples[:, half:].sum(axis=1)]
    )
    return _wrong_cells(
        dict(zip(stored.stacks, np.column_stack([stored.before, stored.after]), strict=True)),
        dict(zip(data.stacks, sums, strict=True)),
    )


def _wrong_strata(store: Store, data: Dataset) -> int:
    """Return the windows whose samples by sender do not add up to the samples; all if no sender is known."""
    stored = store.counts(StrataQuery(data.service, data.start, data.end, data.window_s))
    sums = stored.totals.sum(axis=0) if len(stored.totals) else np.zeros_like(data.totals)
    return int(np.count_nonzero(sums != data.totals))


def _wrong_strata_stacks(store: Store, data: Dataset) -> int:
    """Return the stacks whose counts by sender do not add up to their counts in either half of the span.

    The senders whose stacks do not add up to their samples are included.
    """
    start, end = (
        data.start // SENDER_WINDOW_S * SENDER_WINDOW_S,
        -(-data.end // SENDER_WINDOW_S) * SENDER_WINDOW_S,
    )
    middle = start + (end - start) // SENDER_WINDOW_S // 2 * SENDER_WINDOW_S
    stored = store.counts(StrataQuery(data.service, start, end, end - start))
    ids = [stratum.id for stratum in stored.strata]
    stacks = store.counts(StackQuery(data.service, (start, middle), (middle, end), strata=(ids, ids)))
    starts = data.start + data.stack_window_s * np.arange(data.stack_samples.shape[1])
    sums = [data.stack_samples[:, half].sum(axis=1) for half in (starts < middle, starts >= middle)]
    wrong = _wrong_cells(
        dict(zip(stacks.stacks, np.column_stack([stacks.before, stacks.after]), strict=True)),
        dict(zip(data.stacks, np.column_stack(sums), strict=True)),
    )
    for key, samples in zip(ids, stored.totals.sum(axis=1).tolist(), strict=True):
        wrong += (
            store.counts(StackQuery(data.service, (start, start), (start, end), ([], [key]))).total_after
            != samples
        )
    return wrong


def _wrong_points(store: Store, data: Dataset) -> int:
    wrong = 0
    for source in ("service", "setup"):
        matrix = store.series(SeriesQuery(source, data.service, data.start, data.end, data.window_s))
        row_of = {name: row for row, name in enumerate(matrix.names)}
        for points in data.metrics:
            if points.setup != (source == "setup"):
                continue
            wanted = np.full(matrix.samples.shape[1], np.nan)
            position = ((points.timestamps - data.start) // data.window_s).astype(int)
            wanted[position] = points.values
            row = row_of.get(points.metric)
            stored = matrix.samples[row] if row is not None else np.full_like(wanted, np.nan)
            wrong += int(np.count_nonzero(~np.isclose(stored, wanted, rtol=1e-9, equal_nan=True)))
    return wrong
