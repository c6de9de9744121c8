"""Requests counted by type and period, with durations and statuses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any

import orjson
import xxhash

from agents.logs.duration import NoDuration, read_duration
from agents.logs.line_format import NOTHING, PART, LineFormat
from agents.logs.log_time import log_time
from agents.logs.omissions import ZERO_BUCKET, Omissions
from agents.logs.request_type import NO_ROUTE, RequestTypes, folded_paths
from agents.logs.tally_state import CellState, PeriodState, TallyState
from agents.metrics.exponential import Exponential
from pipeline.messages.requests import encode_requests, requests_message
from pipeline.messages.schema.requests import MAX_BUCKET, MIN_BUCKET
from pipeline.model import (
    BUCKETS_AN_OCTAVE,
    RESPONSE_CLASSES,
    Outgoing,
    RequestCounts,
    TypeCounts,
    time_column,
)
from pipeline.model.frames import cut_name
from pipeline.model.units import DAY_S

SCALE = 5
"""Durations are counted in buckets of base ``2 ** 2**-5``: quantiles are right to 2.2 %."""

MOST_CELLS = 200_000
"""Most counts in memory (types times open periods); beyond, the oldest periods are closed."""

MOST_REMEMBERED = 100_000
MAX_POINTS = 5000
"""Most points of one message."""

MAX_METRIC_NAME = 400
QUANTILES = (0.5, 0.9, 0.99)
_Metric = dict[str, Any]
"""Message of the topic ``metrics``, docs/schemas/metric-points.json, whose points are still to come."""


@dataclass(frozen=True, slots=True)
class TallyOptions:
    """Options of counting and of the messages. ``lateness_s`` None keeps periods open until ``finish``."""

    service: str
    host: str
    release: str = ""
    period_s: float = 30.0
    lateness_s: float | None = None
    latency: bool = False  # publish response times as metrics
    errors: bool = False  # and the share of responses of 500 and above
    zone: tzinfo = UTC  # of times without an offset


@dataclass(slots=True)
class _Cell:
    """The requests of one type in one period."""

    requests: int = 0
    errors: int = 0
    durations: dict[int, int] = field(default_factory=dict)  # bucket → requests
    statuses: dict[str, int] = field(default_factory=dict)  # first digit → responses

    def state(self) -> CellState:
        return CellState(
            requests=self.requests,
            errors=self.errors,
            durations=tuple(self.durations.items()),
            statuses=self.statuses,
        )

    @classmethod
    def of(cls, state: CellState) -> _Cell:
        return cls(state.requests, state.errors, dict(state.durations), dict(state.statuses))


class RequestTally:
    """Counts lines, and returns requests and metrics of closed periods.

    Time is the time of the lines. With a lateness, a period is closed when a line is later than its end by
    that much; lines of closed periods are counted in ``omissions`` and left out. The first and the last
    period, of which a log holds a part, are left out where there are others.
    """

    def __init__(self, options: TallyOptions, format_: LineFormat, types: RequestTypes) -> None:
        self._options = options
        self._format = format_
        self._types = types
        self._cells: dict[int, dict[str, _Cell]] = {}
        self._times: dict[str, int] = {}  # text → period
        self._buckets: dict[str, int] = {}
        self._seen: set[str] = set()  # types seen; later periods have a count of each, even if it is 0
        self._closed = -(2**62)  # periods before this one
        self._is_begun = False  # whether the first period, which began before the log, is done
        self._latest_s = -math.inf
        self._open_cells = 0
        self._parts: dict[int, int] = {}  # period → number of parts that other tallies sent
        self.lines = self.requests = 0
        self.omissions = Omissions(remarks=format_.remarks)

    def use(self, format_: LineFormat) -> None:
        """Read the lines from now on in another format."""
        self._format, self.omissions.remarks = format_, format_.remarks
        self._buckets.clear()

    def state(self) -> TallyState:
        """Return the state from which another tally can go on."""
        return TallyState(
            host=self._options.host,
            release=self._options.release,
            periods=tuple(
                PeriodState(period=period, cells={type_: cell.state() for type_, cell in cells.items()})
                for period, cells in self._cells.items()
            ),
            parts=tuple(part for part in self._parts.items() if part[0] >= self._closed),
            seen=tuple(sorted(self._seen)),
            closed=self._closed,
            is_begun=self._is_begun,
            latest_s=self._latest_s if math.isfinite(self._latest_s) else None,
        )

    def restore(self, state: TallyState) -> list[Outgoing]:
        """Go on from a state; return the messages of periods that were open under another host or release.

        Such a period is sent in parts, whose requests add up, and has no metrics.
        """
        self._seen, self._parts = set(state.seen), dict(state.parts)
        self._closed, self._is_begun = state.closed, state.is_begun
        self._latest_s = -math.inf if state.latest_s is None else state.latest_s
        restored = {
            saved_period.period: {type_: _Cell.of(cell) for type_, cell in saved_period.cells.items()}
            for saved_period in state.periods
        }
        if (state.host, state.release) == (self._options.host, self._options.release):
            self._cells = restored
            self._open_cells = sum(map(len, restored.values()))
            return []
        if restored and not self._is_begun:
            first = min(restored)
            del restored[first]
            self._is_begun, self._closed = True, max(self._closed, first + 1)
        sender = replace(self._options, host=state.host, release=state.release)
        messages = [self._requests(period, restored[period], sender) for period in sorted(restored)]
        for period in restored:
            self._parts[period] = self._parts.get(period, 0) + 1
        return messages

    def add(self, lines: Sequence[str], now: float | None = None) -> None:
        """Count lines; those more than a day ahead of the clock's time ``now`` count as unreadable.

        Otherwise one wrong year would close all later periods.
        """
        latest_s = math.inf if now is None else now + DAY_S
        parse, type_of, first = self._format.parse, self._types.of, self.lines
        times, buckets, unanswered = self._times, self._buckets, self._types.of_unanswered
        for number, line in enumerate(lines, start=first + 1):
            fields = parse(line)
            if fields is None:
                if line and not line.isspace():
                    self.omissions.refuse(number, line)
                continue
            if fields is NOTHING or fields is PART:
                self.omissions.parts += fields is PART
                continue
            time, request, status, duration = fields
            period = times.get(time)
            if period is None and (period := self._period(time, latest_s)) is None:
                self.omissions.refuse(number, line)
                continue
            if period < self._closed:
                self.omissions.late += 1
                continue
            cell = self._cell(period, (unanswered if status in NO_ROUTE else type_of)(request))
            cell.requests += 1
            if "5" <= status < ":" and len(status) == 3:  # : comes after 9
                cell.errors += 1
            first_digit = status[:1]
            cell.statuses[first_digit] = cell.statuses.get(first_digit, 0) + 1
            if duration:
                bucket = buckets.get(duration)
                if bucket is None:
                    bucket = self._bucket(duration)
                cell.durations[bucket] = cell.durations.get(bucket, 0) + 1
            self.requests += 1
        self.lines += len(lines)

    def close(self, now: float | None = None) -> list[Outgoing]:
        """Return messages of the periods that are complete by the lines, or by the clock's time ``now``."""
        lateness_s = self._options.lateness_s
        if lateness_s is None:
            beyond = self._open_cells - MOST_CELLS
            for period in sorted(self._cells)[:-1] if beyond > 0 else ():
                if beyond <= 0:
                    break
                beyond -= len(self._cells[period])
                self._closed = period + 1
        else:
            moment = max(self._latest_s, now or -math.inf) - lateness_s
            if math.isfinite(moment):
                self._closed = max(self._closed, math.floor(moment / self._options.period_s))
        return self._messages([period for period in self._cells if period < self._closed])

    def finish(self) -> list[Outgoing]:
        """Return messages of all open periods, except the last one if there are others."""
        return self._messages(self._last())

    def table(self) -> dict[str, list[float]]:
        """Return the requests of each type by period: columns, of which ``time`` has epoch seconds.

        The periods are those of ``finish``. A period without requests is left out: its log may be missing. If
        the log has response times, columns with their geometric means follow, in seconds; NaN without any.
        """
        counted = list(self._take(self._last()))
        columns = {"time": [period * self._options.period_s for period, _ in counted]}
        times: dict[str, list[float]] = {}
        for type_ in sorted(self._seen):
            type_cells = [cells.get(type_, _NO_REQUESTS) for _, cells in counted]
            columns[type_] = [float(cell.requests) for cell in type_cells]
            times[time_column(type_)] = [_typical_s(cell) for cell in type_cells]
        has_times = any(math.isfinite(value) for column in times.values() for value in column)
        return columns | times if has_times else columns

    def refusal(self) -> str:
        """Return why not a single line could be read, if that is so; empty if it is not."""
        omissions = self.omissions
        if not omissions.invalid or self.requests or omissions.late:
            return ""
        why = omissions.wrong_time or self._format.explain(omissions.invalid_line)
        return f"no line could be read ({omissions.invalid:,}): {why}"

    def summary(self) -> str:
        """Return one line on the requests that were counted, and on what was left out."""
        counts = f"{self.requests:,} requests of {len(self._seen)} types in {self.lines:,} lines"
        return "; ".join((counts, *self.omissions.clauses()))

    def _period(self, time: str, latest_s: float) -> int | None:
        try:
            seconds, is_complete = log_time(time, self._options.zone)
            if seconds > latest_s:
                raise ValueError(f"{time[:50]!r} is more than a day ahead")
        except ValueError as error:
            self.omissions.wrong_time = self.omissions.wrong_time or str(error)
            return None
        if not is_complete:
            self.omissions.zone = str(self._options.zone)
        if len(self._times) >= MOST_REMEMBERED:
            self._times.clear()
        period = self._times[time] = math.floor(seconds / self._options.period_s)
        self._latest_s = max(self._latest_s, seconds)
        return period

    def _bucket(self, duration: str) -> int:
        """Return the bucket of a duration, or under ZERO_BUCKET the reason why it is none."""
        seconds = read_duration(duration, self._format.duration_unit)
        if isinstance(seconds, NoDuration):
            bucket = ZERO_BUCKET - seconds
            self.omissions.note(seconds, duration)
        else:
            bucket = math.ceil(math.log2(seconds) * 2**SCALE) - 1 if seconds else ZERO_BUCKET
        if len(self._buckets) >= MOST_REMEMBERED:
            self._buckets.clear()
        self._buckets[duration] = bucket
        return bucket

    def _cell(self, period: int, type_: str) -> _Cell:
        cells = self._cells.get(period)
        if cells is None:
            cells = self._cells[period] = {}
        cell = cells.get(type_)
        if cell is None:
            cell = cells[type_] = _Cell()
            self._open_cells += 1
        return cell

    def _last(self) -> list[int]:
        """Return the periods that are complete when a log ends."""
        periods = sorted(self._cells)
        if not self._is_begun and len(periods) <= 2:
            self._is_begun = True
            return periods
        return periods[:-1]

    def _take(self, periods: Sequence[int]) -> Iterator[tuple[int, dict[str, _Cell]]]:
        """Close and remove periods, in order; the first of the log is left out."""
        for period in sorted(periods):
            cells = self._cells.pop(period)
            self._open_cells -= len(cells)
            if not self._is_begun:
                self._is_begun = True
                continue
            self._seen.update(cells)
            for type_, cell in cells.items():
                paths = folded_paths(type_, self._types.folds)
                self.omissions.count(type_, paths, cell.requests, cell.durations)
            yield period, cells

    def _messages(self, periods: Sequence[int]) -> list[Outgoing]:
        """Close these periods and return their messages."""
        metrics: dict[str, _Metric] = {}
        points: dict[str, list[tuple[float, float]]] = {}
        requests: list[Outgoing] = []
        for period, cells in self._take(periods):
            requests.append(self._requests(period, cells, self._options))
            if self._parts.pop(period, 0):
                continue  # of which this is a part
            for metric, value in self._values(cells):
                metrics.setdefault(metric["metric"], metric)
                points.setdefault(metric["metric"], []).append((period * self._options.period_s, value))
        return requests + [
            message for name, metric in metrics.items() for message in _encoded(metric, points[name])
        ]

    def _requests(self, period: int, cells: dict[str, _Cell], options: TallyOptions) -> Outgoing:
        """Return the message of a period's requests; its id is that of its content."""
        counts = RequestCounts(
            service=options.service,
            host=options.host,
            start=period * options.period_s,
            period_s=options.period_s,
            types=tuple(_counts(type_, cell) for type_, cell in sorted(cells.items())),
            release=options.release,
        )
        part = f"/{self._parts[period]}".encode() if period in self._parts else b""
        return requests_message(replace(counts, id=xxhash.xxh3_128_hexdigest(encode_requests(counts) + part)))

    def _values(self, cells: dict[str, _Cell]) -> Iterator[tuple[_Metric, float]]:
        """Yield the metrics of a period, each with its value."""
        period_s = self._options.period_s
        for type_ in sorted(self._seen):
            cell = cells.get(type_, _NO_REQUESTS)
            yield self._metric("requests", type_, "{request}/s", "traffic"), cell.requests / period_s
            if not cell.requests:
                continue
            if self._options.errors:
                ratio = cell.errors / cell.requests
                yield self._metric("response_errors", type_, "1", "errors"), ratio
            if self._options.latency:
                for rank, value in _quantiles(cell.durations):
                    yield self._metric(f"response_time.p{rank * 100:g}", type_, "s", "latency"), value
        for first in "12345":
            rate = sum(cell.statuses.get(first, 0) for cell in cells.values()) / period_s
            yield self._metric("responses", f"{first}xx", "{request}/s", "traffic"), rate

    def _metric(self, name: str, type_: str, unit: str, kind: str) -> _Metric:
        service, metric = self._options.service, cut_name(f"{name}{{{type_}}}", MAX_METRIC_NAME)
        setup = {"setup": True} if kind == "traffic" else {}
        return {"service": service, "metric": metric, "points": (), **setup, "unit": unit, "kind": kind}


_NO_REQUESTS = _Cell()


def _counts(type_: str, cell: _Cell) -> TypeCounts:
    responses = tuple(cell.statuses.get(response_class[0], 0) for response_class in RESPONSE_CLASSES)
    return TypeCounts(type_, cell.requests, responses, tuple(sorted(_sketch(cell).items())))


def _sketch(cell: _Cell) -> Counter[int]:
    """Return the response times by bucket; a duration of 0 is in the lowest one."""
    times: Counter[int] = Counter()
    for bucket, requests in cell.durations.items():
        if bucket >= ZERO_BUCKET:  # other requests have no duration
            times[min(max(bucket, MIN_BUCKET), MAX_BUCKET)] += requests
    return times


def _typical_s(cell: _Cell) -> float:
    """Return the geometric mean of the response times, in seconds; NaN without any."""
    times = _sketch(cell)
    total = sum((bucket + 0.5) * requests for bucket, requests in times.items())
    return float(2.0 ** (total / times.total() / BUCKETS_AN_OCTAVE)) if times else math.nan


def _quantiles(durations: dict[int, int]) -> Iterator[tuple[float, float]]:
    positive = {bucket: float(count) for bucket, count in durations.items() if bucket > ZERO_BUCKET}
    histogram = Exponential(SCALE, float(durations.get(ZERO_BUCKET, 0)), positive=positive)
    for rank in QUANTILES:
        value = histogram.quantile(rank)
        if math.isfinite(value):
            yield rank, value


def _encoded(metric: _Metric, points: Sequence[tuple[float, float]]) -> Iterator[Outgoing]:
    """Yield points as messages whose ids are those of their content: the same log twice counts once."""
    for start in range(0, len(points), MAX_POINTS):
        message = metric | {"points": points[start : start + MAX_POINTS]}
        content = orjson.dumps(message | {"id": xxhash.xxh3_128_hexdigest(orjson.dumps(message))})
        yield Outgoing("metrics", f"{metric['service']}/{metric['metric']}", content)
