"""Published events: CloudEvents 1.0 in structured mode; docs/events.md shows their use."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.messages.schema.scans import Decision, DomainDecision
from pipeline.messages.schema.types import Count, Name, Share, Text, UtcInterval, UtcTime, message
from pipeline.model import MetricKind, RegressionKind, SilenceKind


@message
class Member(TypedDict):
    """One series and its change. Levels are gCPU ratios, or in the metric's own unit."""

    metric: Name
    metric_kind: MetricKind
    change_time: UtcTime
    before: float
    after: float
    delta: float
    """After minus before."""
    relative: float | None
    """The change as a share of the level before; null for what did not exist before."""


@message
class ReportedChange(TypedDict):
    """A deployed change. Long texts and lists are cut; the whole is in the table changes under its id."""

    id: str
    service: str
    time: float
    """When it was deployed, in seconds since the epoch."""
    title: str
    author: str
    summary: str
    files: list[str]
    subroutines: list[str]
    gates: list[str]
    cut: NotRequired[Literal[True]]
    """Stands where something was cut."""


@message
class SwitchedChange(TypedDict):
    """A change of code that a flip switches; the whole is in the table changes under its id."""

    id: str
    time: float
    """When it was deployed, in seconds since the epoch."""
    title: str
    author: str


@message
class Suspect(TypedDict):
    """A change that may have caused the regression."""

    change: ReportedChange
    score: Annotated[float, Field(ge=0, le=1)]
    """The confidence that it is the root cause."""
    factors: dict[str, float]
    """Attribution, recency, text, correlation, trial: what the score is made of, as far as it is known."""
    evidence: NotRequired[dict[str, float]]
    """What the weights of the ranking multiply, by the weight's name: evidence for the change, in nats."""
    switches: NotRequired[list[SwitchedChange]]
    """Of a flip: the changes of code that its gates switch, the latest first, at most three."""


@message
class SetupExplanation(TypedDict):
    """A set-up metric that changed at the same time and explains the regression better than any change."""

    metric: Name
    change_time: UtcTime
    before: float
    after: float
    correlation: Annotated[float, Field(ge=-1, le=1)]
    """Of the regression's series with it."""
    explained: float
    """The share of the regression that the metric's own change makes."""


@message
class StackChange(TypedDict):
    """By how much stacks changed, as shares of all the service's samples."""

    stack: list[str]
    """From the root to the leaf; an element … stands for frames left out or frames that differ."""
    before: float
    after: float


@message
class ScanWindows(TypedDict):
    """Where the windows of the scan lie that found the regression."""

    start: UtcTime
    analysis_start: UtcTime
    analysis_end: UtcTime
    """Where the extended window begins; equals the end without one."""
    end: UtcTime
    silent_partitions: NotRequired[Annotated[int, Field(gt=0)]]
    """The scan is partial: data of so many partitions end in the analysis or extended window.

    Their hosts are gone, or what they send comes late and was not looked at."""


@message
class AppliedSilence(TypedDict):
    """An announced cost or a mute that is about the regression, and did not or no longer silence it."""

    kind: SilenceKind
    id: str
    owner: str
    subroutine: str
    """Glob of the names that it is about; empty: the whole service."""
    cost: float | None
    """What was announced: a share of the service's CPU, or a change of a service-level metric in its
    own unit; null of a mute."""
    total: float | None
    """What the regressions cost together that it was announced for, this one included; null of a mute."""
    change: str
    """The change whose cost was announced; empty where none was named."""
    end: UtcTime | None
    reason: str


@message
class CostlierRequests(TypedDict):
    """Requests of one type that cost more in a new release than in the one before."""

    type: Name
    """Method and path; (without requests) is what the service uses anyway, (every request) all of it."""
    release: Text
    former_release: Text
    share: float
    """Of the metric at the new release's load, that the change makes."""
    share_error: float
    """Its standard error."""
    or_types: list[str]
    """Other types by which the same could be explained, the likeliest first."""
    likely: NotRequired[dict[str, Share]]
    """Type → probability that the change is its own, of the type and of the other ones; together at most 1,
    as unlikely types are not named. Former versions leave it out."""


@message
class DetectedData(TypedDict):
    """A regression as it was found, with its levels, its group, its suspects and why it was reported."""

    service: Name
    workload: Name
    metric: Name
    """The series that stands for the group."""
    metric_kind: MetricKind
    change_time: UtcTime
    """Start of the first window of the new regime."""
    before: float
    """A gCPU ratio, or in the metric's own unit where the metric kind is service."""
    after: float
    delta: float
    relative: float | None
    """The change as a share of the level before; null for what did not exist before."""
    kind: RegressionKind
    detected_time: UtcTime
    """End of the scan that found it."""
    p_value: float
    statistic: float
    """Of the test: likelihood-ratio chi-squared."""
    group: list[Member]
    """Series with the same cause, merged into this event; cut at a bound."""
    group_size: Count
    """How many series were merged, also where the group is cut."""
    root_causes: list[Suspect]
    """The likeliest first; empty where none is likely enough."""
    cost_domains: list[DomainDecision]
    """What the cost domains said of it: why it is no cost shift."""
    stacks: list[StackChange]
    """The largest changes among its stacks first."""
    servers: float | None
    """How many the service runs on, where that is known."""
    waste_servers: float | None
    """How many of them the regression takes: delta times servers; null where either is unknown."""
    passed: list[Decision]
    """What each step decided, in order."""
    strata: NotRequired[list[str]]
    """The label or host, as name=value, with which alone it holds; absent where it holds everywhere."""
    releases: NotRequired[list[str]]
    """The releases that cost more where they run than others beside them; absent where none was seen to."""
    requests: NotRequired[list[CostlierRequests]]
    """Of the workload release-costs: which requests cost more; absent of all others."""
    change_time_interval: NotRequired[UtcInterval]
    """Between which windows the change lies, with a confidence of 95 %; of a slow rise its beginning."""
    silences: NotRequired[list[AppliedSilence]]
    """Announced costs beyond which it goes, and mutes that have ended or that it rises beside."""
    explanations: NotRequired[list[SetupExplanation]]
    """Set-up metrics that explain it better than any change, the likeliest first; absent where none does."""
    scan: NotRequired[ScanWindows]


class UpdateData(TypedDict):  # annotated: a docstring below a field is lost to classes that inherit it
    """What has become of a regression. Metric, kind, before and after are as it was reported."""

    service: Name
    workload: Name
    metric: Name
    metric_kind: MetricKind
    kind: RegressionKind
    regression: Annotated[Name, Field(description="Id of the event that reported it.")]
    regression_time: Annotated[UtcTime, Field(description="Its change time, as it was reported.")]
    change_time: Annotated[UtcTime, Field(description="When the series grew or returned.")]
    detected_time: Annotated[UtcTime, Field(description="End of the scan that found it.")]
    before: float
    after: float
    level: Annotated[float, Field(description="Of the regression's own metric now.")]
    share_remaining: Annotated[
        float,
        Field(description="How much of the regression is left: 1 as reported, 0 at the level before it."),
    ]
    strata: NotRequired[
        Annotated[
            list[str], Field(description="The label or host with which alone it held, as it was reported.")
        ]
    ]
    releases: NotRequired[
        Annotated[
            list[str], Field(description="The releases that cost more beside others, as it was reported.")
        ]
    ]


@message
class UpdatedData(UpdateData):
    """A regression that grew, or that further series turned out to be part of."""

    grown: Member | None
    """The series that grew, from the level reported last; null where series have only joined."""
    joined: list[Member]
    """Series found since to have the same cause; cut at a bound."""
    joined_size: Count
    """How many there are, also where the list is cut."""
    root_causes: NotRequired[list[Suspect]]
    """Where subroutines have joined a metric, of which only they know causes; the likeliest first."""


@message
class ResolvedData(UpdateData):
    """A regression whose series has returned to the level before it."""

    resolved_by: list[ReportedChange]
    """Changes that may have ended it: they modify one of its subroutines; the latest first."""


class CloudEvent(TypedDict):  # likewise
    """What every event has. The id is derived from content, so that a replay repeats it."""

    specversion: Literal["1.0"]
    id: Name
    source: Annotated[str, Field(description="/smidgen/ and the service.")]
    subject: Annotated[str, Field(description="The regression's metric.")]
    time: Annotated[UtcTime, Field(description="End of the scan that led to the event.")]
    datacontenttype: Literal["application/json"]


@message
class RegressionDetected(CloudEvent):
    """A new regression: reported once."""

    type: Literal["smidgen.regression.detected"]
    data: DetectedData


@message
class RegressionUpdated(CloudEvent):
    """A known regression has escalated, or more series are part of it."""

    type: Literal["smidgen.regression.updated"]
    data: UpdatedData


@message
class RegressionResolved(CloudEvent):
    """A known regression is gone."""

    type: Literal["smidgen.regression.resolved"]
    data: ResolvedData


@message
class DeadLetterHeaders(TypedDict):
    """Where a message came from that cannot be used, and why. The value is the message's own bytes."""

    topic: str
    """The broker's name of it."""
    partition: str
    """In digits; -1 for a message that a stage made itself and that its topic did not take."""
    offset: str
    reason: str
    stage: str
    """Which stage refused it."""
    time: UtcTime
    null: NotRequired[Literal["value"]]
    """Stands where the message had no value."""
    truncated: NotRequired[str]
    """How many bytes the value had, where it was cut."""
