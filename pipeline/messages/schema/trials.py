"""Trials before a release: what measures them sends, and the verdict that leaves as a CloudEvent."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.messages.schema.types import Count, Moment, Name, ServiceName, ShortName, Text, UtcTime, message
from pipeline.model import ExperimentKind, SideName

SMALLEST, LARGEST = 1e-100, 1e100
"""Values beyond which squares and sums of them are no numbers any more; 0 is one."""

VERDICT: Literal["smidgen.trial.verdict"] = "smidgen.trial.verdict"
"""Type of the CloudEvent of a verdict."""

MAX_METRICS = 200
"""Most metrics of one side of a trial."""

MAX_TRIALS = 10_000
"""Most trials of an experiment."""

MAX_FACTORS = 50

TrialCount = Annotated[int, Field(ge=1, le=MAX_TRIALS)]


@message
class MeasuredMetric(TypedDict):
    """What one side of a trial measured of one metric."""

    points: SkipValidation[
        Annotated[list[Annotated[float, Field(ge=0, le=LARGEST)]], Field(min_length=1)]
    ]  # an array is checked as an array
    """In the order of time: of a minute, or of a request; 0, or from 1e-100 to 1e100."""
    warm_up: NotRequired[Count]
    """How many of the first points the sender marks as warm-up, as by a counter of the service."""
    threshold: NotRequired[Annotated[float, Field(gt=0, le=LARGEST)]]
    """Relative difference that is a regression: 0.01 is 1 %, which it is if left out."""
    direction: NotRequired[Literal["up", "down"]]
    """Whether more is worse, as of costs, or less, as of throughput."""


@message
class TrialSide(TypedDict):
    """One side of one trial. Of one side sent with different contents the one with the latest time counts."""

    kind: ExperimentKind
    """The old code against the new, or the same code twice."""
    service: ServiceName
    experiment: ShortName
    """Names the experiment among those of the service; A/A and A/B have names of their own."""
    trial: ShortName
    """Names the trial in its experiment; both sides have it."""
    side: SideName
    """A is the old code."""
    time: Moment
    """When it ended."""
    metrics: Annotated[dict[ShortName, MeasuredMetric], Field(min_length=1, max_length=MAX_METRICS)]
    release: NotRequired[Text]
    """What this side runs, such as a commit."""
    factors: NotRequired[Annotated[dict[ShortName, Text], Field(max_length=MAX_FACTORS)]]
    """What its machine is: type, kernel, region, host."""
    trials: NotRequired[TrialCount]
    """How many trials the experiment will have: with as many it is judged."""
    sequential: NotRequired[bool]
    """Judge after every trial, with the errors held for all looks together, and end once it is decided."""


@message
class ExperimentEnd(TypedDict):
    """The experiment has ended: it is judged by the trials that are there, or once there are as many."""

    kind: Literal["end"]
    service: ServiceName
    experiment: ShortName
    time: Moment
    trials: NotRequired[TrialCount]
    """How many trials it has, of which some may still be under way; if left out, all are sent."""


@message
class OfTrials(TypedDict):
    """What all messages of trials have: the kind says which of them it is."""

    kind: Literal["A/B", "A/A", "end"]


@message
class ModelScore(TypedDict):
    """How a model did on A/A experiments, and on the same with a regression put on side B."""

    model: Name
    false_positives: float
    false_negatives: float
    detectability: float | None
    """Median half-width of its interval, relative; null if trials are too few."""
    holds: bool
    """Whether its false positives are within the bound."""


@message
class MetricVerdict(TypedDict):
    """What an experiment says of one metric. Differences are relative to side A."""

    metric: Name
    decision: Literal["pass", "fail", "not enough"]
    threshold: float
    alpha: float
    """Share of false ones among metrics that differ."""
    direction: Literal["up", "down"]
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    """Of the interval of the difference; null where it has no end."""
    high: float | None
    p_value: float | None
    """Adjusted for the number of metrics."""
    model: Name
    trials: Count
    trials_needed: Count | None
    """To exclude a regression of the threshold; null if that is not known."""
    warm_up: list[Count]
    """Points of each trial that were discarded on each side, with those that the sender marked."""
    unsteady: list[Count]
    """Indexes of trials that never became steady and were left out."""
    scores: list[ModelScore]
    """By which the model was chosen; empty where there are too few A/A trials."""


@message
class TrialMachine(TypedDict):
    """Machines of the same factors, and how many sides of trials ran on them."""

    side: SideName
    factors: dict[str, str]
    trials: Count


@message
class TrialVerdictData(TypedDict):
    """What an experiment says. A later revision replaces an earlier one."""

    service: Name
    experiment: Name
    revision: Annotated[int, Field(ge=1)]
    """1 for the first verdict of the experiment; each further one is by other trials."""
    decision: Literal["pass", "fail", "not enough"]
    """fail if one metric does, pass if all do; not enough of an experiment that did not end."""
    complete: bool
    """Whether the experiment has ended; false: no more trials came for a day of event time."""
    trials: Count
    """Trials of which both sides are there."""
    expected_trials: Count | None
    half_trials: Count
    """Trials of which one side is missing."""
    releases_a: list[str]
    releases_b: list[str]
    machines: list[TrialMachine]
    """Cut at a bound."""
    metrics: list[MetricVerdict]
    """Cut at a bound, those that fail first."""
    metrics_size: Count
    """How many there are, also where the list is cut."""


@message
class TrialVerdict(TypedDict):
    """A verdict on an experiment. The id is derived from the trials it is by, so that a replay repeats it."""

    specversion: Literal["1.0"]
    id: Name
    type: Literal["smidgen.trial.verdict"]
    source: str
    """/smidgen/ and the service."""
    subject: str
    """The experiment."""
    time: UtcTime
    """When its last trial ended."""
    datacontenttype: Literal["application/json"]
    data: TrialVerdictData
