"""aggregate: profiles, metrics and changes into the store, every sample counted exactly once.

Every counted row carries the last offset that its block covers. A partition that is new to this process
resumes after the highest offset in the store, per table, and what lies below is skipped; so neither a
kill between INSERT and commit nor a rebalance loses or doubles anything, and a retried INSERT carries the
same deduplication token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import orjson
import xxhash

from pipeline.clock import Clock
from pipeline.codec import inputs
from pipeline.codec.scans import encode_progress
from pipeline.gcpu.count import Cells, Counts, count_samples
from pipeline.model import Change, MetricPoints, Outgoing, Profile, Progress, Record
from pipeline.stages.base import Decoder
from pipeline.storage.interface import Store, Table

MAX_ROWS = 400_000
"""Most rows in one INSERT, so that it stays one block, which ClickHouse applies whole or not at all."""

Columns = Mapping[str, Sequence[Any]]


class AggregateStage:
    """Counts stack samples, stores metric points and changes, and publishes progress on ``windows``."""

    name = "aggregate"

    def __init__(
        self, *, store: Store, clock: Clock, stream: str, window_s: float, stack_window_s: float
    ) -> None:
        self._store = store
        self._clock = clock
        self._stream = stream
        self._window_s = window_s
        self._stack_window_s = stack_window_s
        self._resume: dict[Table, dict[tuple[str, int], int]] = {}
        self.inputs: Mapping[str, Decoder] = {
            "profiles": lambda value: inputs.decode_profile(value, now=clock()),
            "metrics": lambda value: inputs.decode_metric_points(value, now=clock()),
            "changes": lambda value: inputs.decode_change(value, now=clock()),
        }

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget resume offsets: another process may have stored more meanwhile."""
        for offsets in self._resume.values():
            for partition in partitions:
                offsets.pop((topic, partition), None)

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Store a batch of one topic and return its progress."""
        topic = batch[0].topic
        if topic == "changes":
            self._store.insert("changes", _change_columns([record.payload for record in batch]))
            return []
        if topic == "metrics":
            self._insert_fresh(batch, "metrics", self._metric_columns)
        else:
            self._count(batch)
        return _progress(batch, self._clock())

    def settled(self) -> None:
        """Nothing to do: what counts is in the store."""

    def _count(self, batch: Sequence[Record]) -> None:
        counted: dict[tuple[tuple[int, int], ...], Counts] = {}

        def count(records: Sequence[Record]) -> Counts:
            key = tuple((r.partition, r.offset) for r in records)  # tables nearly always need the same ones
            if key not in counted:
                counted[key] = count_samples(
                    [record.payload for record in records],
                    [record.partition for record in records],
                    window_s=self._window_s,
                    stack_window_s=self._stack_window_s,
                )
            return counted[key]

        if len(batch) > 1 and count(batch).rows > MAX_ROWS:
            self._count(batch[: len(batch) // 2])
            self._count(batch[len(batch) // 2 :])
            return
        for table, columns in _COUNTED_COLUMNS.items():
            self._insert_fresh(batch, table, partial(self._counted_columns, count, columns))

    def _counted_columns(
        self,
        count: Callable[[Sequence[Record]], Counts],
        columns: Callable[[Counts, Mapping[int, int]], dict[str, Sequence[Any]]],
        records: Sequence[Record],
    ) -> Columns:
        return columns(count(records), _last_offsets(records))

    def _insert_fresh(
        self, batch: Sequence[Record], table: Table, columns: Callable[[Sequence[Record]], Columns]
    ) -> None:
        """Insert what the table does not hold yet of a batch; afterwards the table covers the batch."""
        resume = self._resume_offsets(table, batch)
        fresh = [r for r in batch if r.offset > resume.get((r.topic, r.partition), -1)]
        if not fresh:
            return
        rows = columns(fresh)
        if len(rows["samples" if "samples" in rows else "value"]):
            size = len(rows["partition"])
            place = {"stream": [self._stream] * size, "topic": [fresh[0].topic] * size}
            self._store.insert(table, {**rows, **place}, token=self._token(table, fresh))
        for record in fresh:
            at = (record.topic, record.partition)
            resume[at] = max(resume.get(at, -1), record.offset)

    def _resume_offsets(self, table: Table, batch: Sequence[Record]) -> dict[tuple[str, int], int]:
        known = self._resume.setdefault(table, {})
        topic = batch[0].topic
        missing = {record.partition for record in batch if (topic, record.partition) not in known}
        if missing:
            found = self._store.last_offsets(table, self._stream, topic, sorted(missing))
            known.update({(topic, partition): found.get(partition, -1) for partition in missing})
        return known

    def _token(self, table: Table, records: Sequence[Record]) -> str:
        """Name a block by its place in the log, so that a repeated INSERT of it is recognised."""
        places = sorted((record.topic, record.partition, record.offset) for record in records)
        return f"{table}-{xxhash.xxh3_128_hexdigest(orjson.dumps([self._stream, places]))}"

    def _metric_columns(self, records: Sequence[Record]) -> Columns:
        last = _last_offsets(records)
        columns: dict[str, list[Any]] = {
            name: [] for name in ("service", "metric", "setup", "time", "value", "partition", "last_offset")
        }
        for record in records:
            points: MetricPoints = record.payload
            size = len(points.values)
            columns["service"] += [points.service] * size
            columns["metric"] += [points.metric] * size
            columns["setup"] += [int(points.setup)] * size
            columns["time"] += points.timestamps.tolist()
            columns["value"] += points.values.tolist()
            columns["partition"] += [record.partition] * size
            columns["last_offset"] += [last[record.partition]] * size
        return columns


def _last_offsets(records: Sequence[Record]) -> dict[int, int]:
    last: dict[int, int] = {}
    for record in records:
        last[record.partition] = max(last.get(record.partition, -1), record.offset)
    return last


def _cell_columns(cells: Cells, index: Sequence[int], last: Mapping[int, int]) -> dict[str, Sequence[Any]]:
    partitions = cells.partitions.tolist()
    offsets = [last[partition] for partition in partitions]
    return {
        "service": [cells.services[i] for i in index],
        "window": cells.windows[index].tolist() if len(index) else [],
        "partition": [partitions[i] for i in index],
        "last_offset": [offsets[i] for i in index],
    }


def _total_columns(counts: Counts, last: Mapping[int, int]) -> dict[str, Sequence[Any]]:
    index = np.flatnonzero(counts.total_samples).tolist()
    return {**_cell_columns(counts.cells, index, last), "samples": counts.total_samples[index].tolist()}


def _gcpu_columns(counts: Counts, last: Mapping[int, int]) -> dict[str, Sequence[Any]]:
    series = counts.series_index.tolist()
    return {
        **_cell_columns(counts.cells, counts.series_cell.tolist(), last),
        "kind": [counts.kinds[i] for i in series],
        "subroutine": [counts.names[i] for i in series],
        "samples": counts.series_samples.tolist(),
    }


def _stack_columns(counts: Counts, last: Mapping[int, int]) -> dict[str, Sequence[Any]]:
    stacks = counts.stack_index.tolist()
    return {
        **_cell_columns(counts.stack_cells, counts.stack_cell.tolist(), last),
        "stack_id": counts.stack_ids[counts.stack_index].tolist(),
        "frames": [counts.stacks[i] for i in stacks],
        "width_s": [counts.stack_width_s] * len(stacks),
        "samples": counts.stack_samples.tolist(),
    }


def _change_columns(changes: Sequence[Change]) -> Columns:
    rows = [inputs.change_to_json(change) for change in changes]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _progress(batch: Sequence[Record], now: float) -> list[Outgoing]:
    """Return one message per service and partition: how far its event time has come.

    No further than now: a host whose clock is ahead would end windows that others still fill.
    """
    spans: dict[tuple[str, int], tuple[float, float]] = {}
    for record in batch:
        start, end = _span(record.payload)
        place = (record.payload.service, record.partition)
        earliest, latest = spans.get(place, (start, end))
        spans[place] = (min(earliest, start), max(latest, end))
    topic = batch[0].topic
    progress = [
        Progress(service, topic, partition, min(latest, now), earliest)
        for (service, partition), (earliest, latest) in spans.items()
    ]
    return [Outgoing("windows", step.service, encode_progress(step)) for step in progress]


def _span(payload: Profile | MetricPoints) -> tuple[float, float]:
    if isinstance(payload, Profile):
        return payload.start, payload.end
    return float(payload.timestamps.min()), float(payload.timestamps.max())


_COUNTED_COLUMNS: Mapping[Table, Callable[[Counts, Mapping[int, int]], dict[str, Sequence[Any]]]] = {
    "stacks": _stack_columns,
    "gcpu": _gcpu_columns,
    "totals": _total_columns,
}
