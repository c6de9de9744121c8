"""The alert of a delivery, as the table ``alerts`` keeps it."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from pipeline.messages.schema.types import Count, LongText, Name, Several, Text, message
from pipeline.model import MetricKind

EventId = Annotated[str, Field(max_length=400, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:~-]*$")]
"""What targets put into headers, addresses, queries and markers as it is."""


@message
class SuspectedChange(TypedDict):
    """The likeliest suspect of a regression, or the change that may have ended it."""

    id: Name
    title: LongText
    author: LongText
    score: float
    files: Several[str]


@message
class MetricOutcome(TypedDict):
    """What an experiment says of one metric."""

    metric: Name
    decision: Literal["pass", "fail", "not enough"]
    threshold: float
    direction: Literal["up", "down"]
    model: Name
    trials: Count
    trials_needed: NotRequired[Count | None]
    difference: NotRequired[float | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    p_value: NotRequired[float | None]
    mean_a: NotRequired[float | None]
    mean_b: NotRequired[float | None]


@message
class TrialOutcome(TypedDict):
    """What an experiment says, with the metrics that led to its decision."""

    experiment: Name
    decision: Literal["pass", "fail", "not enough"]
    revision: Count
    complete: bool
    trials: Count
    expected_trials: Count
    releases_a: Several[Text]
    releases_b: Several[Text]
    machines: Several[Text]
    metrics: Several[MetricOutcome]
    metrics_size: Count


@message
class Alert(TypedDict):
    """What was known of an event. Times are epoch seconds. What a former version did not know is absent."""

    event: EventId
    kind: Literal["detected", "updated", "resolved"]
    regression: EventId
    service: Name
    workload: Text
    metric: Name
    metric_kind: MetricKind
    time: float
    since: float
    before: float
    after: float
    level: float
    relative: NotRequired[float | None]
    p_value: NotRequired[float | None]
    servers: NotRequired[float | None]
    waste_servers: NotRequired[float | None]
    group_size: NotRequired[Count]
    suspect: NotRequired[SuspectedChange | None]
    owners: NotRequired[Several[str]]
    trial: NotRequired[TrialOutcome | None]
