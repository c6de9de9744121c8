"""The store over ClickHouse: a server, or chDB inside this process; the same SQL for both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import add
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
from clickhouse_connect.driver.client import Client
from numpy.typing import NDArray

from pipeline.counting.quota.limits import Usage
from pipeline.model import RequestPeriods, SeriesKey, SeriesMatrix, StackMatrix, StrataMatrix, Stratum
from pipeline.model.metric_kind import is_gcpu
from pipeline.storage import migrate, queries
from pipeline.storage.answers import rows_of, whole_columns, whole_numbers, whole_rows
from pipeline.storage.extents import read_extents
from pipeline.storage.failures import translated
from pipeline.storage.gcpu_series import GcpuSeries, StoredWindows
from pipeline.storage.insertion import insert_block
from pipeline.storage.interface import (
    Answer,
    CountQuery,
    CountTable,
    Extents,
    RequestQuery,
    RowQuery,
    SeriesQuery,
    SeriesSource,
    StackQuery,
    StrataQuery,
    StrataSides,
    StrataWidthQuery,
    Table,
    UsageByPeriod,
    UsageQuery,
)
from pipeline.storage.layout import ONE_SERVER, TableLayout
from pipeline.storage.request_series import read_requests
from pipeline.storage.schema import (
    EVER,
    described_strata,
    row_columns,
    stack_matrix,
    to_ms,
    to_rows,
)

_ROLLING = {"async_insert": "0", "insert_deduplicate": "0", "optimize_aggregation_in_order": "1"}
"""Settings of rollups: repeated rows do no harm, and sorted rows are added up in little memory."""

_PART_BYTES = 4000
"""Most bytes of names in one query: parameters are part of the URL, of which servers read at least 8 kB."""

_PART_STRATA = _PART_BYTES // 50
"""Most strata of each span in one query, for the same reason: a 64-bit number has 20 digits."""

_Texts = TypeVar("_Texts", bound=tuple[str, ...])
_NUMBERS = np.dtype([("series", np.uint64), ("place", np.int64), ("count", np.float64)])


class ClickHouseStore:
    """A Store over the database of one client; see ``pipeline.storage.connect.open_store``.

    ``where`` names the database in messages, without secrets. Several threads may use one store.
    """

    def __init__(self, client: Client, where: str, layout: TableLayout = ONE_SERVER) -> None:
        self._client = client
        self._where = where
        self._layout = layout
        self._gcpu = GcpuSeries(self._columns, self._numbers, self._roll)

    def migrate(self) -> None:
        """Create or upgrade the database and its tables; several processes may do so at once.

        Raises:
            ConfigError: the tables are not up to date, and the user may not upgrade them.
            StoreUnavailable: repeat the call.
        """
        with translated(self._where):
            migrate.apply(self._client, str(self._client.database), layout=self._layout)

    def insert(
        self,
        table: Table,
        columns: Mapping[str, Sequence[Any]],
        *,
        token: str = "",
        asked_at: float | None = None,
    ) -> None:
        """Add rows as one part; see Store.insert.

        Raises:
            ValueError: a column is missing, unknown, or not as long as the others.
            StoreUnavailable: the outcome is unknown; repeat with the same token.
        """
        with translated(self._where):
            insert_block(self._client, table, columns, token, asked_at)

    def extents(
        self, tables: Collection[CountTable], stream: str, service: str | None = None
    ) -> dict[CountTable, Extents]:
        """Return the progress of rows in each partition; see Store.extents."""
        return read_extents(self._columns, tables, stream, service)

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
        bounds = {"start": start, "end": end, "period": to_ms(query.period_s)}
        values = {"stream": query.stream, "topic": query.topic, "partition": query.partition, **bounds}
        usage: dict[tuple[str, float], Usage] = {}
        for part in _in_parts((service,) for service in query.services):
            services = [service for (service,) in part]
            columns = self._columns(queries.USAGE, 4, {**values, "services": services})
            for service, position, messages, stacks in zip(*columns, strict=True):
                usage[service, position * query.period_s] = (int(messages), int(stacks))
        return usage

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        """Return series × windows; see Store.series."""
        names = query.names
        if names is not None and any(_url_bytes(key) > _PART_BYTES for key in names):
            return _only(names, self.series(replace(query, names=None)))
        if query.source != "gcpu":
            return self._metrics(query)
        windows = StoredWindows(
            query.service, to_ms(query.start), to_ms(query.end), to_ms(query.resolution_s)
        )
        if query.rolls_up:
            self._gcpu.roll_up(windows)
        parameters = None if names is None else list(_asked(query.source, names))
        keys, samples, totals = self._gcpu.read(windows, parameters)
        return SeriesMatrix(
            start=query.start,
            resolution_s=query.resolution_s,
            kinds=tuple(key.kind for key in keys),
            names=tuple(key.name for key in keys),
            samples=samples,
            totals=totals,
        )

    def _metrics(self, query: SeriesQuery) -> SeriesMatrix:
        bounds = _bounds(query)
        values = {"service": query.service, "setup": int(query.source == "setup"), **bounds}
        windows = max(0, -(-(bounds["end"] - bounds["start"]) // bounds["resolution"]))
        # Values before names: a series that is added between the two queries has a name at least.
        parts = [{**values, **selection} for selection in _asked(query.source, query.names)]
        counts = np.concatenate(
            [np.empty(0, _NUMBERS), *(self._numbers(queries.METRIC_COUNTS, p) for p in parts)]
        )
        columns = [self._columns(queries.METRIC_NAMES, 3, part) for part in parts]
        kinds, texts, keys = ([cell for part in columns for cell in part[i]] for i in range(3))
        row, present = rows_of(counts["series"], np.asarray(keys, dtype=np.uint64))
        matrix = np.full((len(present), windows), np.nan)
        matrix[row, counts["place"]] = counts["count"]
        return SeriesMatrix(
            start=query.start,
            resolution_s=query.resolution_s,
            kinds=tuple(kinds[index] for index in present),
            names=tuple(texts[index] for index in present),
            samples=matrix,
            totals=np.ones(windows),
        )

    def _stacks(self, query: StackQuery) -> StackMatrix:
        values = {
            "service": query.service,
            "before_start": to_ms(query.before[0]),
            "before_end": to_ms(query.before[1]),
            "after_start": to_ms(query.after[0]),
            "after_end": to_ms(query.after[1]),
        }
        if query.strata is None:
            return stack_matrix(*self._columns(queries.STACKS, 3, values))
        by_stack: dict[tuple[str, ...], list[float]] = {}
        for part in _sides(query.strata):
            for stack, *counts in zip(
                *self._columns(queries.STRATA_STACKS, 3, {**values, **part}), strict=True
            ):
                sums = by_stack.setdefault(tuple(stack), [0.0, 0.0])
                sums[:] = map(add, sums, counts)
        return stack_matrix(by_stack, *np.array(list(by_stack.values())).reshape(-1, 2).T)

    def _strata(self, query: StrataQuery) -> StrataMatrix:
        names = query.names
        if names is not None and any(_url_bytes(key) > _PART_BYTES for key in names):
            names = None  # a few more than asked for
        bounds = _bounds(query)
        values = {"service": query.service, **bounds}
        cells = self._numbers(queries.STRATA_TOTALS, values)
        described = (
            described_strata(self.rows(RowQuery("strata", query.service, *EVER))) if len(cells) else {}
        )
        present = set(cells["series"].tolist())
        ids = {key: described.get(key) or Stratum.of({"stratum": str(key)}) for key in present}
        order = sorted(ids, key=ids.__getitem__)
        column = {key: number for number, key in enumerate(order)}
        windows = max(0, -(-(bounds["end"] - bounds["start"]) // bounds["resolution"]))
        totals = np.zeros((len(order), windows))
        totals[[column[key] for key in cells["series"].tolist()], cells["place"]] = cells["count"]
        parts = [{**values, **selection} for selection in _asked("gcpu", names)] if order else []
        columns = [self._columns(queries.STRATA_COUNTS, 4, part) for part in parts]
        kinds, texts, strata, counts = ([cell for part in columns for cell in part[i]] for i in range(4))
        edges = self._columns(queries.STRATA_COUNTED, 2, values) if parts else [[0], [0]]
        samples = np.zeros((len(texts), len(order)))
        for row, (stratum_ids, numbers) in enumerate(zip(strata, counts, strict=True)):
            indexes = [number for number, key in enumerate(stratum_ids) if key in column]
            samples[row, [column[stratum_ids[index]] for index in indexes]] = [
                numbers[index] for index in indexes
            ]
        return StrataMatrix(
            start=query.start,
            resolution_s=query.resolution_s,
            strata=tuple(ids[key] for key in order),
            totals=totals,
            series=tuple(map(SeriesKey, kinds, texts)),
            samples=samples,
            counted=(edges[0][0] / 1000, edges[1][0] / 1000),
        )

    def _strata_width(self, query: StrataWidthQuery) -> float:
        values = {"service": query.service, "end": to_ms(query.end)}
        (widths,) = self._columns(queries.STRATA_WIDTH, 1, values)
        return float(next(iter(widths), 0.0))

    def _requests(self, query: RequestQuery) -> RequestPeriods:
        span = {"start": to_ms(query.start), "end": to_ms(query.end), "step": to_ms(query.step_s)}
        values = {"service": query.service, **span}
        return read_requests(self._columns, self._numbers, values, query.releases)

    def rows(self, query: RowQuery) -> list[dict[str, Any]]:
        """Return rows, oldest first; see Store.rows.

        Raises:
            ValueError: the query names a column that the table lacks.
        """
        table = query.table
        all_names, names = row_columns(table), row_columns(table, query.columns)
        values: dict[str, Any] = {"table": table, "start": to_ms(query.start), "end": to_ms(query.end)}
        conditions = ""
        wanted = query.equal if query.service is None else {"service": query.service, **query.equal}
        for number, (column, value) in enumerate(wanted.items()):
            if column not in all_names:
                raise ValueError(f"{table} has no column {column!r}")
            conditions += f" AND {{column{number}:Identifier}} = {{value{number}:String}}"
            values |= {f"column{number}": column, f"value{number}": value}
        if query.id_prefix:
            if "id" not in all_names:
                raise ValueError(f"{table} has no column 'id'")
            conditions += " AND startsWith(id, {prefix:String})"
            values["prefix"] = query.id_prefix
        # The text contains only names from schema.py and the numbers of parameters, never a value.
        sql = (
            f"SELECT {', '.join(names)} FROM {{table:Identifier}} FINAL"
            " WHERE time >= fromUnixTimestamp64Milli({start:Int64}, 'UTC')"
            " AND time < fromUnixTimestamp64Milli({end:Int64}, 'UTC')"
            f"{conditions} ORDER BY ALL"
        )
        with translated(self._where):
            cells = whole_rows(self._client.query(sql, values, query_formats={"DateTime64": "int"}))
        return to_rows(table, cells, names)

    def count_scans(self, since: float, service: str | None, workload: str | None) -> int:
        """Return the number of scans that end at ``since`` (epoch seconds) or later, without first scans.

        None means every service, or every workload. The first scan of a service by a workload is left out:
        it records the time from which the service is scanned.
        """
        ((count,),) = self._columns(queries.COUNT_SCANS, 1, _scans(since, service, workload))
        return int(count)

    def forget_scans(self, since: float, service: str | None, workload: str | None) -> None:
        """Delete the rows and outcomes of the scans that ``count_scans`` counts, so they are made again.

        Raises:
            ConfigError: the user may not delete rows.
            StoreUnavailable: the same call may be repeated.
        """
        values = _scans(since, service, workload)
        with translated(self._where):
            # Scans last: until they are deleted, a repeated call deletes the same outcomes.
            self._client.command(self._layout.table(queries.FORGET_OUTCOMES), parameters=values)
            self._client.command(self._layout.table(queries.FORGET_SCANS), parameters=values)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _columns(self, sql: str, width: int, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """Run a query and return its columns, also of an empty result."""
        with translated(self._where):
            return whole_columns(self._client.query(sql, dict(values), column_oriented=True), width)

    def _roll(self, sql: str, values: Mapping[str, Any]) -> None:
        with translated(self._where):
            self._client.command(sql, parameters=dict(values), settings=_ROLLING)

    def _numbers(self, sql: str, values: Mapping[str, Any]) -> NDArray[np.void]:
        """Run a query of numbers and return a structured array, without a Python object per number."""
        with translated(self._where):
            answer = whole_numbers(self._client, sql, values)
            return answer if len(answer) else np.empty(0, _NUMBERS)


def _bounds(query: SeriesQuery | StrataQuery) -> dict[str, int]:
    return {
        "start": to_ms(query.start),
        "end": to_ms(query.end),
        "resolution": to_ms(query.resolution_s),
    }


def _asked(source: SeriesSource, names: Sequence[SeriesKey] | None) -> Iterator[dict[str, Any]]:
    """Yield the parameters that select series, in parts that each fit into a URL.

    The series of successive parts are sorted, so concatenated rows are sorted too.
    """
    if names is None:
        yield {"every": 1, "kinds": [], "names": []}
        return
    wanted = {key for key in names if is_gcpu(key.kind) == (source == "gcpu")}
    # Sorted as ClickHouse sorts texts.
    for part in _in_parts(sorted(wanted, key=lambda key: (key.kind.encode(), key.name.encode()))):
        kinds, chosen = zip(*part, strict=True)
        yield {"every": 0, "kinds": list(kinds), "names": list(chosen)}


def _sides(strata: StrataSides) -> Iterator[dict[str, Any]]:
    """Yield the parameters that select strata of both spans, in parts that each fit into a URL."""
    before, after = map(sorted, strata)
    for first in range(0, max(len(before), len(after)), _PART_STRATA):
        part = slice(first, first + _PART_STRATA)
        yield {"strata_before": before[part], "strata_after": after[part]}


def _in_parts(rows: Iterable[_Texts]) -> Iterator[list[_Texts]]:
    """Yield rows of texts in lists that each fit into a URL."""
    part: list[_Texts] = []
    size = 0
    for row in rows:
        if part and size + _url_bytes(row) > _PART_BYTES:
            yield part
            part, size = [], 0
        part.append(row)
        size += _url_bytes(row)
    if part:
        yield part


def _url_bytes(texts: Iterable[str]) -> int:
    """Return how much of a URL texts take at most, escapes and separators included."""
    return sum(len(quote(repr(text))) for text in texts) + 10


def _only(names: Sequence[SeriesKey], matrix: SeriesMatrix) -> SeriesMatrix:
    """Leave those series in a matrix that are asked for."""
    asked = set(names)
    rows = [i for i, key in enumerate(matrix.series) if key in asked]
    return replace(
        matrix,
        kinds=tuple(matrix.kinds[i] for i in rows),
        names=tuple(matrix.names[i] for i in rows),
        samples=matrix.samples[rows],
    )


def _scans(since: float, service: str | None, workload: str | None) -> dict[str, Any]:
    return {"since": to_ms(since), "service": service or "", "workload": workload or ""}
