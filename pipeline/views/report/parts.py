"""Parts of an event that a page shows, checked: an event may come from any version, or from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.analysis.stacks import ELLIPSIS
from pipeline.messages.inputs import change_from_json
from pipeline.messages.records import check, read
from pipeline.messages.schema import events, scans
from pipeline.messages.schema.types import Count, Interval, Moment, Name, Several, message
from pipeline.model import Change, DomainDecision, StackChange, Suspect
from pipeline.model.steps import STEPS

FACTORS = {step.factor: step.measures for step in STEPS if step.factor}
"""Meaning of each factor of a suspect."""


_UNKNOWN: Mapping[str, None] = dict.fromkeys(
    ("relative", "servers", "waste_servers", "change_time_interval", "explanations", "requests")
)


@message
class SeriesLevels(TypedDict):
    """A series with its levels before and after."""

    metric: Name
    metric_kind: Name
    before: float
    after: float
    delta: float
    relative: NotRequired[float | None]


@message
class ShownSwitch(TypedDict):
    """A change of code that a flip switches."""

    id: Name
    time: Moment
    title: NotRequired[str]
    author: NotRequired[str]


@message
class ShownSuspect(TypedDict):
    """A change that may have caused the regression."""

    change: dict[str, Any]
    score: float
    factors: NotRequired[dict[str, Any]]
    switches: NotRequired[Several[ShownSwitch] | None]


@message
class ShownExplanation(TypedDict):
    """A set-up metric that explains the regression better than any change."""

    metric: Name
    change_time: Moment
    before: float
    after: float
    correlation: float
    explained: float


@message
class Shown(SeriesLevels):
    """Fields of an event's data that a page shows, as far as every version has them."""

    service: Name
    workload: Name
    kind: Name
    change_time: Moment
    detected_time: Moment
    p_value: float
    statistic: NotRequired[float]
    group: NotRequired[Several[SeriesLevels] | None]
    group_size: NotRequired[Count]
    root_causes: NotRequired[Several[ShownSuspect] | None]
    cost_domains: NotRequired[Several[scans.DomainDecision] | None]
    stacks: NotRequired[Several[events.StackChange] | None]
    servers: NotRequired[float | None]
    waste_servers: NotRequired[float | None]
    change_time_interval: NotRequired[Interval | None]
    silences: NotRequired[Several[dict[str, Any]] | None]
    explanations: NotRequired[Several[ShownExplanation] | None]
    requests: NotRequired[Several[events.CostlierRequests] | None]


@dataclass(frozen=True, slots=True)
class Parts:
    """The data of an event as a page shows them."""

    data: Mapping[str, Any]
    group: tuple[Mapping[str, Any], ...]
    more: int  # number of further members
    suspects: tuple[Suspect, ...]
    domains: tuple[DomainDecision, ...]
    stacks: tuple[StackChange, ...]


def parts_of(raw: object) -> Parts:
    """Return the parts of an event's data.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    data: Mapping[str, Any] = {**_UNKNOWN, **check(Shown, raw)}
    group = [{"relative": None, **member} for member in data.get("group") or ()]
    suspects = (
        Suspect(
            change_from_json(part["change"]),
            part["score"],
            part.get("factors", {}),
            tuple(_switched(change, data["service"]) for change in part.get("switches") or ()),
        )
        for part in data.get("root_causes") or ()
    )
    return Parts(
        data,
        tuple(group),
        max(0, data.get("group_size", 0) - len(group)),
        tuple(suspects),
        tuple(read(DomainDecision, part) for part in data.get("cost_domains") or ()),
        tuple(read(StackChange, part) for part in data.get("stacks") or ()),
    )


def _switched(raw: Mapping[str, Any], service: str) -> Change:
    return Change(raw["id"], service, raw["time"], raw.get("title", ""), raw.get("author", ""))


def shared_beginning(lines: Sequence[StackChange], marked: str) -> tuple[str, ...]:
    """Return the frames that all lines begin with, up to the marked one; a single line shares none."""
    if len(lines) < 2:
        return ()
    low, high = min(line.stack for line in lines), max(line.stack for line in lines)
    count = 0
    while count < min(len(low), len(high)) - 1 and low[count] == high[count] not in (marked, ELLIPSIS):
        count += 1
    return low[:count]
