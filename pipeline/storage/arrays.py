"""The store as arrays in this process: the input of a backtest, and the rows that stages insert.

Counts of a loaded service are dense matrices, so that a scan is a slice. Inserted counts stay in coordinate
form and are added to them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.counting.count import stack_ids
from pipeline.counting.quota.limits import Usage
from pipeline.messages.inputs import change_to_row, silence_to_row
from pipeline.messages.records import columns_of
from pipeline.model import (
    FloatArray,
    RequestPeriods,
    SeriesKey,
    SeriesMatrix,
    StackMatrix,
    StrataMatrix,
    Stratum,
)
from pipeline.storage.dense import DenseCounts, DenseStacks
from pipeline.storage.interface import (
    Answer,
    CountQuery,
    CountTable,
    Extent,
    Extents,
    RequestQuery,
    RowQuery,
    SeriesQuery,
    StackQuery,
    StrataQuery,
    StrataWidthQuery,
    Table,
    UsageByPeriod,
    UsageQuery,
)
from pipeline.storage.loaded import ServiceArrays
from pipeline.storage.points import Frames, Points, StackPoints
from pipeline.storage.request_series import REQUEST_COLUMNS, RequestPoints
from pipeline.storage.schema import (
    COLUMNS,
    IDENTITY,
    counted_time,
    described_strata,
    prepare,
    row_columns,
    stack_matrix,
    to_ms,
    to_rows,
)
from pipeline.storage.strata_points import StrataPoints, add_strata_rows, load_strata, strata_columns

_FIRST_STAYS = ("outcomes",)
"""Tables that keep the first row of an identity."""

_LATEST_STAYS = ("verdicts",)
"""Tables that keep the row of an identity with the latest time, in whatever order rows come."""

_METADATA = ("service", "metric", "unit", "kind", "direction")

_THE_TOTAL = SeriesKey("service", "")

_UsageKey = tuple[str, int, str]  # stream, partition, service
_ExtentsKey = tuple[str, str, str | None]  # table, stream, service


@dataclass(slots=True)
class _Service:
    """Everything that is held of one service."""

    counts: Points = field(default_factory=Points)
    totals: Points = field(default_factory=Points)
    stacks: StackPoints = field(default_factory=StackPoints)
    strata: StrataPoints = field(default_factory=StrataPoints)
    loaded_counts: list[DenseCounts] = field(default_factory=list)
    loaded_totals: list[DenseCounts] = field(default_factory=list)
    loaded_stacks: list[DenseStacks] = field(default_factory=list)
    metrics: Points = field(default_factory=Points)
    requests: RequestPoints = field(default_factory=RequestPoints)
    setup: Points = field(default_factory=Points)
    rows: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = field(default_factory=dict)
    described: dict[int, Stratum] = field(default_factory=dict)  # by id, as the rows of strata say


class ArrayStore:
    """A Store over numpy arrays in this process; several threads may use one.

    Returned matrices may be views of the store's arrays: callers must not write to them.
    """

    def __init__(self, *loaded: ServiceArrays) -> None:
        self._services: dict[str, _Service] = {}
        self._tokens: set[tuple[str, str]] = set()
        # Offsets and milliseconds, by topic and partition.
        self._extents: dict[_ExtentsKey, dict[tuple[str, int], tuple[int, int]]] = {}
        self._used: dict[_UsageKey, list[tuple[str, int, Usage]]] = {}  # topic, window, used
        self._lock = threading.Lock()
        for data in loaded:
            self._load(data)

    def insert(
        self,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        *,
        token: str = "",
        asked_at: float | None = None,
    ) -> None:
        """Add rows; see Store.insert. ``asked_at`` is ignored: within one process no row comes too late.

        Raises:
            ValueError: a column is missing, unknown, or not as long as the others.
        """
        data = dict(zip(COLUMNS[table], prepare(table, columns), strict=True))
        if not len(next(iter(data.values()))):
            return
        with self._lock:
            if token and (table, token) in self._tokens:
                return
            if table in IDENTITY:
                self._replace(table, data)
            else:
                self._count(table, data)
            if token:
                self._tokens.add((table, token))

    def extents(
        self, tables: Collection[CountTable], stream: str, service: str | None = None
    ) -> dict[CountTable, Extents]:
        """Return the progress of rows in each partition; see Store.extents."""
        for table in tables:
            counted_time(table)
        with self._lock:
            progress = {table: dict(self._extents.get((table, stream, service), {})) for table in tables}
        return {
            table: Extents(
                {
                    position: Extent(offset, 0.0 if service is None else time_ms / 1000)
                    for position, (offset, time_ms) in positions.items()
                },
                0.0,
            )
            for table, positions in progress.items()
        }

    def counts(self, query: CountQuery[Answer]) -> Answer:
        """Return counts; see Store.counts."""
        if isinstance(query, StackQuery):
            return self._stacks(query)
        if isinstance(query, StrataQuery):
            return self._strata(query)
        if isinstance(query, StrataWidthQuery):
            return self._strata_width(query)
        if isinstance(query, RequestQuery):
            return self._requests(query)
        if isinstance(query, UsageQuery):
            return self._usage(query)
        raise TypeError(f"no counts are asked for by {type(query).__name__}")

    def _usage(self, query: UsageQuery) -> UsageByPeriod:
        start, end = map(to_ms, query.span)
        period = to_ms(query.period_s)
        usage: dict[tuple[str, float], Usage] = {}
        with self._lock:
            for service in query.services:
                for log, window, used in self._used.get((query.stream, query.partition, service), ()):
                    if log == query.topic and start <= window < end and used[0]:
                        key = (service, window // period * query.period_s)
                        usage[key] = _plus(usage.get(key, (0, 0)), used)
        return usage

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series × windows; see Store.series. Counts are in memory: nothing is rolled up."""
        span = (to_ms(query.start), to_ms(query.end), to_ms(query.resolution_s))
        windows = max(0, -(-(span[1] - span[0]) // span[2]))
        totals = np.ones(windows)
        with self._lock:
            stored = self._services.get(query.service) or _Service()
            if query.source != "gcpu":
                metrics = stored.setup if query.source == "setup" else stored.metrics
                series, matrix = metrics.means(*span, query.names)
            else:
                series, matrix = _merged_series(
                    [
                        stored.counts.sums(*span, query.names),
                        *(part.sums(*span, query.names) for part in stored.loaded_counts),
                    ]
                )
                _, rows = _merged_series(
                    [stored.totals.sums(*span), *(part.sums(*span) for part in stored.loaded_totals)]
                )
                totals = rows[0].copy() if len(rows) else np.zeros(windows)
        return SeriesMatrix(
            start=query.start,
            resolution_s=query.resolution_s,
            kinds=tuple(key.kind for key in series),
            names=tuple(key.name for key in series),
            samples=matrix,
            totals=totals,
        )

    def _stacks(self, query: StackQuery) -> StackMatrix:
        spans = [(to_ms(first), to_ms(last)) for first, last in (query.before, query.after)]
        with self._lock:
            stored = self._services.get(query.service) or _Service()
            if query.strata is None:
                parts = [stored.stacks.within(spans), *(part.within(spans) for part in stored.loaded_stacks)]
            else:
                ids, counts = stored.strata.stacks_within(spans, query.strata)
                parts = [(ids, stored.stacks.frames(ids.tolist()), counts)]
            stacks, counts = _merged_stacks(parts)
        return stack_matrix(stacks, counts[:, 0], counts[:, 1])

    def _strata(self, query: StrataQuery) -> StrataMatrix:
        with self._lock:
            stored = self._services.get(query.service) or _Service()
            rows = stored.rows.get("strata", {})
            if len(rows) != len(stored.described):  # descriptions of strata never change
                stored.described = described_strata(to_rows("strata", rows.values()))
            span = (to_ms(query.start), to_ms(query.end))
            return stored.strata.matrix(span, to_ms(query.resolution_s), stored.described, query.names)

    def _strata_width(self, query: StrataWidthQuery) -> float:
        with self._lock:
            return (self._services.get(query.service) or _Service()).strata.width_s(to_ms(query.end))

    def _requests(self, query: RequestQuery) -> RequestPeriods:
        with self._lock:
            stored = self._services.get(query.service) or _Service()
            return stored.requests.read(to_ms(query.start), to_ms(query.end), query.releases, query.step_s)

    def rows(self, query: RowQuery) -> list[dict[str, Any]]:
        """Return rows, oldest first; see Store.rows.

        Raises:
            ValueError: the query names a column that the table lacks.
        """
        table, prefix = query.table, query.id_prefix
        names = row_columns(table)
        if unknown := [name for name in (*query.equal, *(["id"] if prefix else [])) if name not in names]:
            raise ValueError(f"{table} has no column {unknown[0]!r}")
        wanted = [(names.index(name), value) for name, value in query.equal.items()]
        identity = names.index("id") if prefix else 0
        first, last = to_ms(query.start), to_ms(query.end)
        with self._lock:
            services = self._services if query.service is None else [query.service]
            matches = [
                row
                for stored in map(self._services.get, services)
                for row in (stored.rows.get(table, {}).values() if stored else ())
                if first <= row[0] < last
                and all(row[position] == value for position, value in wanted)
                and (not prefix or row[identity].startswith(prefix))
            ]
        chosen = row_columns(table, query.columns)
        positions = [names.index(name) for name in chosen]
        return to_rows(table, ([row[index] for index in positions] for row in sorted(matches)), chosen)

    def _load(self, data: ServiceArrays) -> None:
        """Load one service; its arrays are used without a copy if they are in order."""
        stored = self._services.setdefault(data.service, _Service())
        start_ms, width_ms = to_ms(data.start), to_ms(data.window_s)
        stored.loaded_counts.append(DenseCounts(data.series, data.samples, start_ms, width_ms))
        stored.loaded_totals.append(DenseCounts([_THE_TOTAL], data.totals[np.newaxis], start_ms, width_ms))
        ids = stack_ids(data.stacks)
        stored.loaded_stacks.append(
            DenseStacks(ids, data.stacks, data.stack_samples, start_ms, to_ms(data.stack_window_s))
        )
        if data.strata:
            load_strata(stored.strata, data)
            self.insert("strata", strata_columns(data))
        for points in data.metrics:
            times_ms = np.rint(points.timestamps * 1000).astype(np.int64)
            keys = [SeriesKey("service", points.metric)] * len(times_ms)
            (stored.setup if points.setup else stored.metrics).add(keys, times_ms, points.values)
        if described := [points for points in data.metrics if points.metadata and len(points.timestamps)]:
            metadata_columns = {name: [getattr(points, name) for points in described] for name in _METADATA}
            self.insert(
                "metric_metadata",
                {**metadata_columns, "time": [points.timestamps[0] for points in described]},
            )
        stored.requests.load(data.requests)
        if data.changes:
            self.insert("changes", columns_of(map(change_to_row, data.changes)))
        if data.silences:
            self.insert("silences", columns_of(map(silence_to_row, data.silences)))

    def _of(self, service: str) -> _Service:
        return self._services.setdefault(service, _Service())

    def _replace(self, table: Table, data: Mapping[str, Sequence[Any]]) -> None:
        names = row_columns(table)
        identity = [names.index(name) for name in IDENTITY[table]]
        services = data.get("service", [""] * len(data["time"]))  # rows without a service have ""
        for service, *values in zip(services, *(data[name] for name in names), strict=True):
            row = tuple(tuple(value) if isinstance(value, list) else value for value in values)
            rows = self._of(service).rows.setdefault(table, {})
            key = tuple(row[position] for position in identity)
            former = rows.get(key, row)
            stays = table in _FIRST_STAYS or (table in _LATEST_STAYS and former[0] > row[0])
            rows[key] = former if stays else row

    def _count(self, table: Table, data: Mapping[str, Sequence[Any]]) -> None:
        services = np.array(data["service"], dtype=object)
        for service in dict.fromkeys(data["service"]):
            chosen = np.flatnonzero(services == service).tolist()
            _add(table, self._of(service), {name: [data[name][i] for i in chosen] for name in data})
        self._extend(table, data)
        if table == "totals":
            self._use(data)

    def _extend(self, table: Table, data: Mapping[str, Sequence[Any]]) -> None:
        columns = ("stream", "service", "topic", "partition", "last_offset", counted_time(table))
        for stream, service, topic, *numbers in zip(*(data[name] for name in columns), strict=True):
            partition, offset, at = map(int, numbers)
            for key in (None, service):
                extents = self._extents.setdefault((table, stream, key), {})
                former = extents.get((topic, partition), (offset, at))
                extents[topic, partition] = (max(former[0], offset), max(former[1], at))

    def _use(self, data: Mapping[str, Sequence[Any]]) -> None:
        names = ("stream", "topic", "partition", "service", "window", "messages", "stacks")
        for stream, topic, partition, service, window, messages, stacks in zip(
            *(data[name] for name in names), strict=True
        ):
            if messages:
                used = self._used.setdefault((stream, int(partition), service), [])
                used.append((topic, window, (int(messages), int(stacks))))


def _plus(left: Usage, right: Usage) -> Usage:
    return left[0] + right[0], left[1] + right[1]


def _add(table: Table, held: _Service, data: Mapping[str, list[Any]]) -> None:
    """Add counted rows of one service."""
    if table == "stacks":
        held.stacks.add(data["stack_id"], data["frames"], data["window"], data["width_s"], data["samples"])
        return
    if table == "metrics":
        times, values = np.array(data["time"], dtype=np.int64), np.array(data["value"], dtype=np.float64)
        is_setup = np.array(data["setup"], dtype=np.bool_)
        for points_of_kind, chosen in (
            (held.metrics, np.flatnonzero(~is_setup)),
            (held.setup, np.flatnonzero(is_setup)),
        ):
            points_of_kind.add(
                [SeriesKey("service", data["metric"][i]) for i in chosen], times[chosen], values[chosen]
            )
        return
    if table == "requests":
        held.requests.add(*map(data.__getitem__, REQUEST_COLUMNS))
        return
    if table in ("strata_totals", "strata_gcpu", "strata_stacks"):
        add_strata_rows(table, held.strata, data)
        return
    names = (
        [_THE_TOTAL] * len(data["window"])
        if table == "totals"
        else list(map(SeriesKey, data["kind"], data["subroutine"]))
    )
    points = held.totals if table == "totals" else held.counts
    points.add(names, np.array(data["window"], dtype=np.int64), np.array(data["samples"], dtype=np.float64))


def _merged_series(parts: Sequence[tuple[list[SeriesKey], FloatArray]]) -> tuple[list[SeriesKey], FloatArray]:
    """Add up matrices of the same windows whose series may differ."""
    filled = [part for part in parts if part[0]]
    if len(filled) <= 1:
        return (filled or list(parts))[0]
    series = sorted({key for names, _ in filled for key in names})
    row_of = {key: row for row, key in enumerate(series)}
    total = np.zeros((len(series), parts[0][1].shape[1]))
    for names, matrix in filled:
        total[[row_of[key] for key in names]] += matrix
    return series, total


def _merged_stacks(
    parts: Sequence[tuple[NDArray[np.uint64], list[Frames], FloatArray]],
) -> tuple[tuple[Frames, ...], FloatArray]:
    """Add up counts of stacks by id; the result is sorted by id."""
    frames = [stack for _, stacks, _ in parts for stack in stacks]
    ids, first, row = np.unique(
        np.concatenate([part[0] for part in parts]), return_index=True, return_inverse=True
    )
    counts = np.zeros((len(ids), 2))
    np.add.at(counts, row, np.concatenate([part[2] for part in parts]))
    return tuple(frames[i] for i in first.tolist()), counts
