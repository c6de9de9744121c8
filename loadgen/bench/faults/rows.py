"""Comparison of the rows that stages keep with those of an undisturbed run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from loadgen.bench.faults.truth import ROW_TABLES, Truth
from pipeline.storage.interface import RowQuery, RowTable, Store
from pipeline.storage.schema import EVER

_BY_SCAN: tuple[RowTable, ...] = ("scans", "unjudged", "outcomes")
"""Tables with a row of every scan, by its end."""

_MARKS = ("service", "stage", "workload", "time")
"""Compared columns of ``outcomes``: each stage decided on a scan. Pieces depend on how the scan was cut."""


def wrong_rows(store: Store, truth: Truth) -> dict[str, int]:
    """Return the number of missing, surplus or altered rows by table; tables without any are left out."""
    wrong: dict[str, int] = {}
    for table in ROW_TABLES:
        until = truth.certain_until if table in _BY_SCAN else math.inf
        both = store.rows(RowQuery(table, truth.dataset.service, *EVER)), truth.rows.get(table, ())
        stored, wanted = (_lines(table, [row for row in rows if row["time"] <= until]) for rows in both)
        # An altered row is both missing and surplus: count it once.
        differing = max((stored - wanted).total(), (wanted - stored).total())
        if table == "outcomes":
            differing += _incomplete(store, truth.dataset.service)
        if differing:
            wrong[table] = differing
    return wrong


def _lines(table: RowTable, rows: Iterable[Mapping[str, Any]]) -> Counter[bytes]:
    if table == "outcomes":
        rows = [{name: row[name] for name in _MARKS} for row in rows if not row["attempt"]]
    if table == "metric_metadata":  # the point from which a worker first learnt it is irrelevant
        rows = [{**row, "time": 0.0} for row in rows]
    return Counter(
        orjson.dumps({k: _plain(v) for k, v in row.items()}, option=orjson.OPT_SORT_KEYS) for row in rows
    )


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) else value


def _incomplete(store: Store, service: str) -> int:
    """Return the number of outcomes that lack a piece of the attempt that counts."""
    rows = store.rows(RowQuery("outcomes", service, *EVER))
    pieces = Counter((row["stage"], row["workload"], row["time"], row["attempt"]) for row in rows)
    marks = [row for row in rows if not row["attempt"]]
    return sum(
        pieces[row["stage"], row["workload"], row["time"], row["name"]] != int(row["content"])
        for row in marks
    )
