"""Columns of each table as an insert must give them, with their ClickHouse types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, get_origin, get_type_hints

import numpy as np

from pipeline.model import (
    RESPONSE_CLASSES,
    Candidate,
    Change,
    FloatArray,
    MetricMetadata,
    StackMatrix,
    Stratum,
)
from pipeline.model.frames import OTHER
from pipeline.storage.interface import COUNTED, Table

_TIME = "DateTime64(3, 'UTC')"
_NAME = "LowCardinality(String)"
_TEXTS = "Array(String)"
_TRIAL_SIDE = {
    **{"service": _NAME, "experiment": "String", "trial": "String", "side": _NAME, "kind": _NAME},
    "time": _TIME,
}
_POSITION = {"stream": _NAME, "topic": _NAME, "partition": "UInt32", "last_offset": "Int64"}


def _columns_of(record: type, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Return a record's fields as columns; lists of other records are JSON in a text."""
    hints = get_type_hints(record)
    return {
        field.name: _TIME if field.name.endswith("time") else _column_of(hints[field.name])
        for field in fields(record)
        if field.name not in without
    }


def _column_of(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return _NAME
    columns = {float: "Float64", tuple[str, ...]: _TEXTS, tuple[float, float] | None: "Array(Float64)"}
    return columns.get(hint, "String")


COLUMNS: Mapping[Table, Mapping[str, str]] = {
    "totals": {
        **{"service": _NAME, "window": _TIME, "samples": "UInt64"},
        **{"messages": "UInt64", "stacks": "UInt64"},
        **{"refused_messages": "UInt64", "refused_samples": "UInt64"},
        **_POSITION,
    },
    "gcpu": {
        **{"service": _NAME, "kind": _NAME, "subroutine": "String", "window": _TIME, "samples": "UInt64"},
        **_POSITION,
    },
    "stacks": {
        **{"service": _NAME, "stack_id": "UInt64", "frames": _TEXTS},
        **{"window": _TIME, "width_s": "Float64", "samples": "UInt64"},
        **_POSITION,
    },
    "strata_totals": {
        **{"service": _NAME, "stratum": "UInt64", "window": _TIME, "samples": "UInt64"},
        **_POSITION,
    },
    "strata_gcpu": {
        **{"service": _NAME, "kind": _NAME, "subroutine": "String", "stratum": "UInt64"},
        **{"window": _TIME, "width_s": "Float64", "samples": "UInt64"},
        **_POSITION,
    },
    "strata_stacks": {
        **{"service": _NAME, "stratum": "UInt64", "stack_id": "UInt64"},
        **{"window": _TIME, "width_s": "Float64", "samples": "UInt64"},
        **_POSITION,
    },
    "metrics": {
        **{"service": _NAME, "metric": _NAME, "setup": "UInt8", "time": _TIME, "value": "Float64"},
        **_POSITION,
    },
    "requests": {
        **{"service": _NAME, "release": _NAME, "type": "String", "window": _TIME, "width_s": "Float64"},
        **{"requests": "UInt64", **{f"responses_{each}": "UInt64" for each in RESPONSE_CLASSES}},
        **{"times": "Map(Int16, UInt64)", **_POSITION},
    },
    "changes": {**_columns_of(Change), "service": _NAME},
    "regressions": {
        **{"id": "String", "service": _NAME, "workload": _NAME, "metric_kind": _NAME, "metric": "String"},
        **{"time": _TIME, "detected_time": _TIME},
        **{"before": "Float64", "after": "Float64", "delta": "Float64", "p_value": "Float64"},
        **{"event": "String"},
    },
    "updates": {
        **{"id": "String", "type": _NAME, "regression": "String", "service": _NAME, "workload": _NAME},
        **{"metric_kind": _NAME, "metric": "String", "time": _TIME},
        **{"before": "Float64", "after": "Float64", "level": "Float64", "share_remaining": "Float64"},
        **{"event": "String"},
    },
    "ledger": {
        **{"id": "String", "service": _NAME, "workload": _NAME, "time": _TIME},
        **{"scan_start": _TIME, "analysis_start": _TIME, "analysis_end": _TIME},
        **_columns_of(Candidate, without=("group",)),
        **{"step": _NAME, "value": "Float64", "bound": "Float64", "reason": "String"},
        **{"code": _NAME, "subjects": _TEXTS},
    },
    "scans": {
        **{"service": _NAME, "workload": _NAME, "time": _TIME, "series": "UInt32", "candidates": "UInt32"},
        **{"unstable_names": "UInt32"},
    },
    "unjudged": {
        **{"service": _NAME, "workload": _NAME, "time": _TIME, "code": _NAME},
        **{"series": "UInt32", "value": "Float64", "bound": "Float64"},
    },
    "memory": {
        **{"stage": _NAME, "service": _NAME, "workload": _NAME, "metric_kind": _NAME, "metric": "String"},
        **{"kind": _NAME, "time": _TIME, "before": "Float64", "after": "Float64", "scan_end": _TIME},
        **{"regression": "String", "change_time_interval": "Array(Float64)"},
    },
    "names": {
        **{"log": _NAME, "service": _NAME, "time": _TIME},
        **{"first": "Int64", "hashes": "Array(UInt64)", "offsets": "Array(Int64)"},
        "digest": "UInt64",
    },
    "naming": {"service": _NAME, "time": _TIME, "version": "String", "before": "UInt8"},
    "symbols": {"service": _NAME, "symbol": "String", "time": _TIME, "name": "String"},
    "strata": {
        **{"service": _NAME, "stratum": "String", "time": _TIME},
        **{"host": "String", "release": "String", "labels": _TEXTS},
    },
    "metric_metadata": {"service": _NAME, "metric": _NAME, "time": _TIME, **_columns_of(MetricMetadata)},
    "silences": {
        **{"id": "String", "service": _NAME, "kind": _NAME, "time": _TIME},
        **{"start_time": _TIME, "end_time": _TIME, "removed_time": _TIME},
        **{"owner": "String", "subroutine": "String", "cost": "Float64", "change": "String"},
        **{"reason": "String", "measure": _NAME},
    },
    "silenced": {
        **{"id": "String", "service": _NAME, "workload": _NAME, "time": _TIME, "scan_end": _TIME},
        **{"state": _NAME, "silence": "String", "size": "Float64", "error": "Float64", "event": "String"},
    },
    "verdicts": {
        **{"event": "String", "service": _NAME, "verdict": _NAME, "aspect": _NAME, "time": _TIME},
        **{"author": "String", "comment": "String", "subject": "String", "end_time": _TIME},
    },
    "logs": {
        **{"cluster": "String", "topic": _NAME, "broker_topic": "String", "topic_id": "String"},
        **{"time": _TIME, "stream": "String"},
    },
    "positions": {
        **{"stream": _NAME, "topic": _NAME, "partition": "UInt32", "time": _TIME, "last_offset": "Int64"},
    },
    "outcomes": {
        **{"service": _NAME, "stage": _NAME, "workload": _NAME, "time": _TIME},
        **{"attempt": "String", "number": "UInt32", "kind": _NAME, "name": "String"},
        **{"headers": "String", "content": "String"},
    },
    "alerts": {
        **{"id": "String", "service": _NAME, "time": _TIME, "event": "String", "regression": "String"},
        **{"target": _NAME, "manner": _NAME, "state": _NAME, "partition": "UInt32"},
        **{"due_time": _TIME, "changed_time": _TIME},
        **{"thread": "String", "detail": "String", "content": "String"},
    },
    "trials": {
        **_TRIAL_SIDE,
        **{"release": "String", "factors": _TEXTS, "expected": "UInt32", "sequential": "UInt8"},
        **{"points": "UInt64", "digest": "String"},
    },
    "trial_points": {
        **_TRIAL_SIDE,
        **{"metric": "String", "warm_up": "UInt64", "threshold": "Float64", "direction": _NAME},
        **{"points": "Array(Float64)", "digest": "String"},
    },
    "trial_verdicts": {
        **{"id": "String", "service": _NAME, "experiment": "String", "time": _TIME, "revision": "UInt32"},
        **{"decision": _NAME, "state": _NAME, "event": "String"},
    },
    "trial_models": {
        **{"service": _NAME, "metric": "String", "time": _TIME, "trials": "UInt32"},
        **{"threshold": "Float64", "alpha": "Float64", "model": _NAME, "former": _NAME},
        **{"experiments": "UInt32", "scores": "String"},
    },
}

_OPTIONAL: Mapping[Table, Mapping[str, Any]] = {
    "totals": dict.fromkeys(("messages", "stacks", "refused_messages", "refused_samples"), 0),
    "scans": {"unstable_names": 0},
    "changes": {"expected": "", "routes": ""},
    "silences": {"measure": "cpu"},
    "memory": {"change_time_interval": []},
}
"""Columns that an insert may leave out, with what they are then."""

IDENTITY: Mapping[str, tuple[str, ...]] = {
    "changes": ("id", "time"),
    "regressions": ("id",),
    "updates": ("id",),
    "ledger": ("id",),
    "scans": ("workload", "time"),
    "unjudged": ("workload", "time", "code"),
    "memory": ("stage", "workload", "metric_kind", "metric", "kind", "scan_end"),
    "names": ("log", "time", "first", "digest"),
    "naming": ("time", "version"),
    "symbols": ("symbol",),
    "strata": ("stratum",),
    "metric_metadata": ("metric",),
    "silences": ("id",),
    "silenced": ("id", "scan_end"),
    "verdicts": ("event", "author", "aspect"),
    "logs": ("cluster", "topic", "broker_topic", "topic_id"),
    "positions": ("stream", "topic", "partition"),
    "outcomes": ("stage", "workload", "time", "attempt", "number"),
    "alerts": ("id", "state"),
    "trials": ("experiment", "trial", "side", "digest"),
    "trial_points": ("experiment", "trial", "side", "metric", "digest"),
    "trial_verdicts": ("experiment", "id", "state"),
    "trial_models": ("metric", "trials", "threshold", "alpha", "time"),
}
"""Columns that, with the service, make a row the same row; a later one replaces it."""


EVER = (0.0, 4_102_444_800.0)
"""Every moment that a row may speak of, epoch seconds: up to the year 2100."""


def is_time(table: Table, column: str) -> bool:
    """Return whether a column holds moments: epoch seconds outside, milliseconds in the store."""
    return COLUMNS[table][column] == _TIME


def row_columns(table: Table, chosen: Sequence[str] = ()) -> list[str]:
    """Return the columns of a table of rows, as these are sorted by: time first; all, or a chosen few.

    Raises:
        ValueError: the table has no such column.
    """
    names = ["time", *(name for name in COLUMNS[table] if name != "time")]
    if unknown := [name for name in chosen if name not in names]:
        raise ValueError(f"{table} has no column {unknown[0]!r}")
    return [name for name in names if name == "time" or name in chosen] if chosen else names


def to_rows(
    table: Table, found: Iterable[Sequence[Any]], chosen: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return rows of ``row_columns``, or of those that were chosen, by name; times are epoch seconds."""
    columns = [(name, is_time(table, name)) for name in chosen or row_columns(table)]
    return [
        {
            name: value / 1000 if time else list(value) if isinstance(value, tuple) else value
            for (name, time), value in zip(columns, row, strict=True)
        }
        for row in found
    ]


def stack_matrix(
    stacks: Iterable[Sequence[str]], before: Sequence[float] | FloatArray, after: Sequence[float] | FloatArray
) -> StackMatrix:
    """Return counts of stacks in two spans; a stack whose frames are not known is ``(other)``."""
    return StackMatrix(
        stacks=tuple(tuple(stack) or (OTHER,) for stack in stacks),
        before=np.asarray(before, dtype=np.float64),
        after=np.asarray(after, dtype=np.float64),
        total_before=float(np.sum(before)),
        total_after=float(np.sum(after)),
    )


def described_strata(rows: Iterable[Mapping[str, Any]]) -> dict[int, Stratum]:
    """Return what each stratum is, by its id, from rows of ``strata``."""
    return {
        int(row["stratum"]): Stratum.of_texts(row["labels"], host=row["host"], release=row["release"])
        for row in rows
    }


def to_ms(epoch_s: float) -> int:
    """Turn epoch seconds into the whole milliseconds that the store keeps."""
    return round(epoch_s * 1000)


def counted_time(table: Table) -> str:
    """Return the column that says which time a row of a COUNTED table speaks of.

    Raises:
        ValueError: the table is none of them.
    """
    if table not in COUNTED:
        raise ValueError(f"{table} does not keep offsets; {', '.join(COUNTED)} do")
    return "time" if table == "metrics" else "window"


def prepare(table: Table, columns: Mapping[str, Sequence[Any]]) -> list[Sequence[Any]]:
    """Return the columns in the table's order, optional ones filled in, times as whole milliseconds.

    Raises:
        ValueError: a column is missing, unknown, or not as long as the others.
    """
    wanted = COLUMNS[table]
    if absent := {name: value for name, value in _OPTIONAL.get(table, {}).items() if name not in columns}:
        size = len(next(iter(columns.values()), ()))
        columns = {**columns, **{name: [value] * size for name, value in absent.items()}}
    if missing := [name for name in wanted if name not in columns]:
        raise ValueError(f"{table}: missing columns: {', '.join(missing)}")
    if unknown := [name for name in columns if name not in wanted]:
        raise ValueError(f"{table}: unknown columns: {', '.join(unknown)}")
    if len({len(values) for values in columns.values()}) != 1:
        lengths = ", ".join(f"{name}={len(values)}" for name, values in columns.items())
        raise ValueError(f"{table}: columns differ in length: {lengths}")
    return [_plain(columns[name], time=is_time(table, name)) for name in wanted]


def _plain(values: Sequence[Any], *, time: bool) -> Sequence[Any]:
    """Give the driver plain Python values, whose types it inspects one by one."""
    if time:
        plain: list[int] = np.rint(np.asarray(values, dtype=np.float64) * 1000).astype(np.int64).tolist()
        return plain
    return values.tolist() if isinstance(values, np.ndarray) else values
