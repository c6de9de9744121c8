"""The parts of an event that a page shows, checked: an event may come from any version, or from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.codec import fields
from pipeline.codec.inputs import change_from_json
from pipeline.codec.records import check, read
from pipeline.codec.schema import scans as shapes
from pipeline.errors import InvalidMessage
from pipeline.model import DomainDecision, StackChange, Suspect
from pipeline.stacks import ELLIPSIS
from pipeline.steps import STEPS

FACTORS = {step.factor: step.measures for step in STEPS if step.factor}
"""What each factor of a suspect says."""


@dataclass(frozen=True, slots=True)
class Waste:
    """How many servers a regression takes, and of how many."""

    taken: float
    servers: float


def checked_data(raw: object) -> Mapping[str, Any]:
    """Return an event's data; whatever the page shows of it as it is, is there and of the right type.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if not isinstance(raw, Mapping):
        raise InvalidMessage("data: should be an object")
    for name in ("service", "workload", "kind"):
        fields.text(raw, name)
    for name in ("p_value", *(["statistic"] if "statistic" in raw else [])):
        fields.number(raw, name)
    return levels(raw)


def levels(raw: object) -> Mapping[str, Any]:
    """Return a series with its levels before and after.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    if not isinstance(raw, Mapping):
        raise InvalidMessage("group: each should be an object")
    for name in ("metric", "metric_kind"):
        fields.text(raw, name)
    for name in ("before", "after", "delta", *(["relative"] if raw.get("relative") is not None else [])):
        fields.number(raw, name)
    return {"relative": None, **raw}


def group_of(data: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    """Return the members that an event tells of, and how many more there are.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    group = [levels(member) for member in fields.listing(data, "group", optional=True)]
    return group, max(0, fields.integer(data, "group_size", len(group)) - len(group))


def suspects_of(data: Mapping[str, Any]) -> list[Suspect]:
    """Return the suspects.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return [_suspect(raw) for raw in fields.listing(data, "root_causes", optional=True)]


def domains_of(data: Mapping[str, Any]) -> list[DomainDecision]:
    """Return what the cost domains said.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    found = fields.listing(data, "cost_domains", optional=True)
    checked = (check(shapes.DomainDecision, raw, f"cost_domains[{index}]") for index, raw in enumerate(found))
    return [read(DomainDecision, raw) for raw in checked]


def stacks_of(data: Mapping[str, Any]) -> list[StackChange]:
    """Return the stack difference.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    found = []
    for raw in fields.listing(data, "stacks", optional=True):
        if not isinstance(raw, Mapping):
            raise InvalidMessage("stacks: each should be an object")
        frames = fields.texts(raw, "stack", optional=False)
        found.append(StackChange(frames, fields.number(raw, "before"), fields.number(raw, "after")))
    return found


def shared_beginning(lines: Sequence[StackChange], marked: str) -> tuple[str, ...]:
    """Return the frames with which all lines begin, up to the marked one; one line shares nothing."""
    if len(lines) < 2:
        return ()
    low, high = min(line.stack for line in lines), max(line.stack for line in lines)
    count = 0
    while count < min(len(low), len(high)) - 1 and low[count] == high[count] not in (marked, ELLIPSIS):
        count += 1
    return low[:count]


def waste_of(data: Mapping[str, Any]) -> Waste | None:
    """Return how many servers a regression takes; None where that is not known.

    Raises:
        InvalidMessage: a number is wrong.
    """
    if data.get("waste_servers") is None or data.get("servers") is None:
        return None
    return Waste(fields.number(data, "waste_servers"), fields.number(data, "servers"))


def _suspect(raw: object) -> Suspect:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("change"), dict):
        raise InvalidMessage("root_causes: each should be an object with a change")
    factors = raw.get("factors", {})
    if not isinstance(factors, Mapping):
        raise InvalidMessage("factors: should be an object")
    return Suspect(change_from_json(raw["change"]), fields.number(raw, "score"), factors)
