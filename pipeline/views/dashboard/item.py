"""A regression as a line of a list: its event, and its later course."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pipeline.model import MetricKind, Verdict
from pipeline.model.frames import name_parts

STATES: Mapping[str, str] = {
    "new": "nobody has looked yet",
    "acknowledged": "somebody looks into it",
    "true": "confirmed as a regression",
    "fixed": "repaired",
    "expected": "planned",
    "false": "nothing got slower",
    "cost-shift": "cost only moved",
    "duplicate": "another event has reported it",
    "resolved": "gone by itself, and nobody said anything",
}
"""States of a regression with their meaning: the last verdict, or else the last measurement."""

OPEN: tuple[str, ...] = ("new", "acknowledged", "true")
"""States that need an answer."""

COLUMNS = (
    *("id", "service", "workload", "metric_kind", "metric", "time", "detected_time"),
    *("before", "after", "delta", "p_value", "event"),
)
"""Columns of ``regressions`` that an item needs."""


@dataclass(frozen=True, slots=True)
class Item:
    """One regression in a list. Times are epoch seconds, levels gCPU from 0 to 1 or the metric's own unit."""

    id: str
    service: str
    workload: str
    metric: str
    metric_kind: MetricKind
    change_time: float
    detected_time: float
    before: float
    after: float
    delta: float
    p_value: float
    relative: float | None = None  # None: there was no level before
    waste_servers: float | None = None  # None: the number of servers is unknown
    suspect: str = ""  # title of the likeliest change
    suspect_id: str = ""
    author: str = ""
    releases: tuple[str, ...] = ()
    members: int = 0
    level: float | None = None  # by the last update
    resolved_time: float | None = None
    verdict: Verdict | None = None  # the latest
    cause: str = ""  # id of the confirmed change

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.verdict is not None:
            return self.verdict.verdict
        return "new" if self.resolved_time is None else "resolved"


def item_of(row: Mapping[str, Any]) -> Item:
    """Return the item of a row of ``regressions``; fields that an older event lacks are left out."""
    data = orjson.loads(row["event"])["data"]
    suspects = data.get("root_causes") or []
    change: Mapping[str, Any] = (suspects[0].get("change") or {}) if suspects else {}
    return Item(
        id=row["id"],
        service=row["service"],
        workload=row["workload"],
        metric=row["metric"],
        metric_kind=row["metric_kind"],
        change_time=row["time"],
        detected_time=row["detected_time"],
        before=row["before"],
        after=row["after"],
        delta=row["delta"],
        p_value=row["p_value"],
        relative=data.get("relative"),
        waste_servers=data.get("waste_servers"),
        suspect=str(change.get("title") or change.get("id") or ""),
        suspect_id=str(change.get("id") or ""),
        author=str(change.get("author") or ""),
        releases=tuple(map(str, data.get("releases") or ())),
        members=int(data.get("group_size") or len(data.get("group") or ())),
    )


def with_course(
    items: Iterable[Item],
    updates: Iterable[Mapping[str, Any]],
    verdicts: Mapping[str, Verdict],
    causes: Mapping[str, Verdict],
) -> tuple[Item, ...]:
    """Return items with their later updates and verdicts, the latest detected first.

    Args:
        items: As their events reported them.
        updates: Rows of ``updates``, oldest first.
        verdicts: The latest of each event that has one.
        causes: The latest confirmed of each event that has one.
    """
    last = {row["regression"]: row for row in updates}
    items_now = [
        replace(
            item,
            level=last[item.id]["level"] if item.id in last else None,
            resolved_time=_resolved(last.get(item.id)),
            verdict=verdicts.get(item.id),
            cause=causes[item.id].subject if item.id in causes else "",
        )
        for item in items
    ]
    return tuple(sorted(items_now, key=lambda item: (-item.detected_time, item.id)))


def similar(item: Item, others: Iterable[Item], *, most: int = 8) -> list[Item]:
    """Return items that may be related: of the same series, name or package, the nearest first."""
    package = ".".join(name_parts(item.metric)[:-1])

    def nearness(other: Item) -> int:
        if other.metric == item.metric:
            return 2 + (other.service == item.service)
        return int(bool(package) and other.service == item.service and other.metric.startswith(package + "."))

    pairs = [(nearness(other), other) for other in others if other.id != item.id]
    pairs = [(near, other) for near, other in pairs if near]
    pairs.sort(key=lambda pair: (-pair[0], -pair[1].detected_time, pair[1].id))
    return [other for _, other in pairs[:most]]


def _resolved(row: Mapping[str, Any] | None) -> float | None:
    return row["time"] if row is not None and row["type"] == "resolved" else None
