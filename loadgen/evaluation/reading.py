"""Readers of truth, events, funnel and ledger files; an error names file, line and key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson

from loadgen.evaluation.model import (
    ALLOWED_KINDS,
    EXPECTED_KINDS,
    UNEXPECTED_KINDS,
    Events,
    FunnelStep,
    LedgerLine,
    RunFunnel,
    ScoredEvent,
    TruthRow,
)
from loadgen.terminal import read_file
from pipeline.counting.names import Naming
from pipeline.messages import fields
from pipeline.messages.events import DETECTED, decode_event
from pipeline.model.errors import ConfigError, InvalidMessage

Value = TypeVar("Value")

_NAMING = Naming()
"""Truth is spelt as a simulation spells frames, and events as symbols."""

_LASTING_KINDS = ("regression", "cost_shift", "improvement", "new_feature")
"""Kinds that begin at once: only their start counts, also where they end some day."""


def read_truth(path: Path) -> tuple[TruthRow, ...]:
    """Read a truth file: JSON lines.

    Raises:
        ConfigError: the file cannot be read, an id is repeated, or a line is wrong (with line and key).
    """
    rows: dict[str, TruthRow] = {}
    for line, row in _parse(path, lambda value: _truth_row(fields.parse_object(value))):
        if row.id in rows:
            raise ConfigError(f"{path}:{line}: id: {row.id!r} stands twice")
        rows[row.id] = row
    return tuple(rows.values())


def read_events(path: Path) -> Events:
    """Read an events file: JSON lines, one CloudEvent each.

    Raises:
        ConfigError: it cannot be read, or the line and key that is wrong.
    """
    seen: dict[str, set[bytes]] = {}
    events, replayed, other_types = [], 0, 0
    for line, raw in _parse(path, decode_event):
        if raw["type"] != DETECTED:
            other_types += 1
            continue
        content = orjson.dumps(raw["data"], option=orjson.OPT_SORT_KEYS)
        if content in seen.setdefault(raw["id"], set()):
            replayed += 1
            continue
        seen[raw["id"]].add(content)
        events.append(_located(path, line, "data.", lambda raw=raw: _event(raw)))  # type: ignore[misc]
    return Events(tuple(events), replayed, other_types)


def events_from_json(raw: Iterable[Mapping[str, Any]]) -> tuple[ScoredEvent, ...]:
    """Return the regressions among decoded CloudEvents.

    Raises:
        InvalidMessage: the key that is missing or wrong.
    """
    return tuple(_event(event) for event in raw if event["type"] == DETECTED)


def truth_from_json(raw: Iterable[Mapping[str, Any]]) -> tuple[TruthRow, ...]:
    """Return truth rows from parsed JSON.

    Raises:
        InvalidMessage: the key that is missing or wrong.
    """
    return tuple(map(_truth_row, raw))


def read_ledger(path: Path) -> Iterator[LedgerLine]:
    """Read a ledger, line by line: JSON lines, one dropped candidate each.

    Raises:
        ConfigError: it cannot be read, or the line and key that is wrong.
    """
    for _, line in _parse(path, lambda value: _ledger_line(fields.parse_object(value))):
        yield line


def read_funnel(path: Path) -> RunFunnel:
    """Read a funnel file: one JSON object.

    Raises:
        ConfigError: it cannot be read, or the key that is wrong.
    """
    try:
        return _funnel(fields.parse_object(read_file(path)))
    except InvalidMessage as error:
        raise ConfigError(f"{path}: {error}") from None


def _truth_row(raw: Mapping[str, Any]) -> TruthRow:
    kind = fields.text(raw, "kind")
    expected = _expected(raw, kind)
    series = (*fields.texts(raw, "subroutines", optional=False), *fields.texts(raw, "callers"))
    if expected and not series:
        raise InvalidMessage("subroutines: empty")
    start = fields.moment(raw, "start")
    end = None if raw.get("end") is None else fields.moment(raw, "end")
    if end is not None and end < start:
        raise InvalidMessage("end: before start")
    change, error = raw.get("change"), raw.get("standard_error")
    stages = _stages(raw)
    return TruthRow(
        id=fields.text(raw, "id"),
        kind=kind,
        subkind=fields.text(raw, "subkind", ""),
        expected=expected,
        service=fields.text(raw, "service"),
        series=tuple(dict.fromkeys(_NAMING.symbols(series))),
        metric_kind=fields.text(raw, "metric_kind", "subroutine"),
        start=start,
        until=max(_until(raw, kind, start, end), *(stages if end is None else ()), start),
        delta=fields.number(raw, "delta") if expected or raw.get("delta") is not None else 0.0,
        change=None if change is None else fields.text(raw, "change"),
        changes=fields.texts(raw, "changes"),
        standard_error=None if error is None else fields.number(raw, "standard_error"),
        stages=stages,
    )


def _expected(raw: Mapping[str, Any], kind: str) -> bool:
    if "expected" in raw:
        return fields.flag(raw, "expected")
    kinds = (*EXPECTED_KINDS, *ALLOWED_KINDS, *UNEXPECTED_KINDS)
    if kind not in kinds:
        kind_names = ", ".join(kinds)
        raise InvalidMessage(
            f"kind: {kind[:40]!r} is none of {kind_names}, and the row has no key 'expected'"
        )
    return kind in EXPECTED_KINDS


def _until(raw: Mapping[str, Any], kind: str, start: float, end: float | None) -> float:
    """Return the end of the span in which an event's change time may lie."""
    if raw.get("ramp_end") is not None:  # what grows slowly: where it reaches its full size
        return max(start, fields.moment(raw, "ramp_end"))
    return start if end is None or kind in _LASTING_KINDS else end


def _stages(raw: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the begin of each stage of a rollout; a single stage counts as none."""
    starts = []
    for index, stage in enumerate(fields.listing(raw, "stages", optional=True)):
        if not isinstance(stage, list) or len(stage) != 2:
            raise InvalidMessage(f"stages[{index}]: should be a time and a share")
        try:
            starts.append(fields.to_moment(stage[0]))
        except InvalidMessage as error:
            raise InvalidMessage(f"stages[{index}]: {error}") from None
    if starts != sorted(starts):
        raise InvalidMessage("stages: should be in order of time")
    return tuple(starts) if len(starts) > 1 else ()


def _event(raw: Mapping[str, Any]) -> ScoredEvent:
    data: Mapping[str, Any] = raw["data"]
    return ScoredEvent(
        id=raw["id"],
        service=fields.text(data, "service"),
        workload=fields.text(data, "workload"),
        metric_kind=fields.text(data, "metric_kind", "subroutine"),
        metric=fields.text(data, "metric"),
        kind=fields.text(data, "kind"),
        change_time=fields.moment(data, "change_time"),
        detected_time=fields.moment(data, "detected_time"),
        before=fields.number(data, "before"),
        after=fields.number(data, "after"),
        delta=fields.number(data, "delta"),
        p_value=fields.number(data, "p_value"),
        group=_members(data, "group"),
        suspects=tuple(
            _suspect(suspect, f"root_causes[{i}]") for i, suspect in enumerate(_optional(data, "root_causes"))
        ),
        interval=_interval(data),
    )


def _interval(data: Mapping[str, Any]) -> tuple[float, float] | None:
    edges = _optional(data, "change_time_interval")
    if not edges:
        return None
    if len(edges) != 2:
        raise InvalidMessage(f"change_time_interval: should have 2 items, not {len(edges)}")
    begin, end = map(fields.to_moment, edges)
    return begin, end


def _suspect(raw: object, where: str) -> str:
    if not isinstance(raw, Mapping) or "change" not in raw:
        raise InvalidMessage(f"{where}: should be an object with a change")
    return _named(raw["change"], "id", f"{where}.change")


def _members(raw: Mapping[str, Any], where: str) -> tuple[str, ...]:
    return tuple(
        _named(member, "metric", f"{where}[{i}]") for i, member in enumerate(_optional(raw, "group"))
    )


def _named(raw: object, key: str, where: str) -> str:
    """Return the name of a member or a change: the string itself, or a key of the object."""
    if isinstance(raw, str) and raw:
        return raw
    if not isinstance(raw, Mapping):
        raise InvalidMessage(f"{where}: should be an object with {key!r}")
    try:
        return fields.text(raw, key)
    except InvalidMessage as error:
        raise InvalidMessage(f"{where}.{error}") from None


def _optional(raw: Mapping[str, Any], field: str) -> list[Any]:
    return fields.listing(raw, field, optional=True)


def _ledger_line(raw: Mapping[str, Any]) -> LedgerLine:
    candidate = raw.get("candidate")
    if not isinstance(candidate, Mapping):
        raise InvalidMessage("candidate: should be an object")
    before, after = fields.number(candidate, "before"), fields.number(candidate, "after")
    return LedgerLine(
        service=fields.text(raw, "service"),
        workload=fields.text(raw, "workload"),
        scan_end=fields.moment(raw, "scan_end"),
        metric_kind=fields.text(candidate, "metric_kind"),
        metric=fields.text(candidate, "metric"),
        change_time=fields.moment(candidate, "change_time"),
        delta=after - before,
        p_value=fields.number(candidate, "p_value"),
        step=fields.text(raw, "step"),
        statistic=fields.number(raw, "statistic"),
        bound=fields.number(raw, "bound"),
        reason=fields.text(raw, "reason", ""),
        group=_members(candidate, "candidate.group"),
    )


def _funnel(raw: Mapping[str, Any]) -> RunFunnel:
    steps = []
    for index, step in enumerate(fields.listing(raw, "steps")):
        if not isinstance(step, Mapping):
            raise InvalidMessage(f"steps[{index}]: should be an object")
        try:
            steps.append(FunnelStep(fields.text(step, "step"), fields.integer(step, "remaining")))
        except InvalidMessage as error:
            raise InvalidMessage(f"steps[{index}].{error}") from None
    return RunFunnel(fields.integer(raw, "scans"), fields.integer(raw, "series"), tuple(steps))


def _parse(path: Path, decode: Callable[[bytes], Value]) -> Iterator[tuple[int, Value]]:
    """Yield (line, value) of a file of JSON lines; blank lines are skipped."""
    for line, content in enumerate(read_file(path).splitlines(), start=1):
        if content.strip():
            yield line, _located(path, line, "", lambda content=content: decode(content))  # type: ignore[misc]


def _located(path: Path, line: int, prefix: str, decode: Callable[[], Value]) -> Value:
    try:
        return decode()
    except InvalidMessage as error:
        raise ConfigError(f"{path}:{line}: {prefix}{error}") from None
