"""Messages between stages: progress, and scans with their candidates."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.messages.schema.types import (
    Count,
    Interval,
    LongName,
    LongText,
    Moment,
    Name,
    Several,
    Share,
    Text,
    message,
)
from pipeline.model import DomainFinding, MetricKind, RegressionKind

MAX_PARTS = 10_000
"""Most parts of one scan: they wait in memory for each other."""


@message
class Progress(TypedDict):
    """Everything of a service in one partition of one topic is stored up to the watermark."""

    service: Name
    topic: Name
    partition: Count
    watermark: Moment
    earliest: Moment
    """Start of the oldest data in the batch that was stored last."""


@message
class DecidedRequests(TypedDict):
    """Requests that cost more in a new release, as the comparison of releases decided."""

    type: LongText
    """The likeliest type."""
    release: LongText
    former_release: LongText
    share: float
    """Of the metric, that the change makes."""
    share_error: float
    """Its standard error."""
    or_types: NotRequired[Several[LongText] | None]
    """Other types that it may be instead, the likeliest first."""
    chances: NotRequired[Several[Share] | None]
    """Probability of the type, then of each other one; empty where it is not known."""


@message
class Decision(TypedDict):
    """A step's decision: the number that it looked at and the bound that it held it against."""

    step: Name
    statistic: float
    bound: float
    reason: NotRequired[Text]
    """The decision as a sentence; empty where it passed without a remark.

    Deprecated: use code and subjects."""
    code: NotRequired[Text]
    """Which answer of the step this is; empty where it passed without a remark."""
    subjects: NotRequired[Several[LongText] | None]
    """What the answer names: the metric that it was compared with and its event, or a cost domain."""
    chances: NotRequired[Several[Share] | None]
    """Of requests that cost more: the probability of the first type that subjects name, then of each other
    one, after the two releases.

    Deprecated: use requests."""
    requests: NotRequired[DecidedRequests | None]
    """The requests that cost more, by a comparison of releases. Former versions leave it out: subjects name
    the type, both releases and other types."""


@message
class DomainDecision(TypedDict):
    """What one cost domain says of a candidate (FBDetect §5.4.6)."""

    domain: LongName
    """Its kind and what it is, for people."""
    finding: DomainFinding
    """It did not exist before; it is too large to decide; it rose with the candidate; or it did not rise, so
    that the cost came from within it."""
    before: float
    """The domain's gCPU before the change."""
    after: float
    statistic: float
    """By how much of what was expected of a true regression the domain rose."""
    bound: float


@message
class Candidate(TypedDict):
    """A change point that may be a regression, with its levels on both sides."""

    metric_kind: MetricKind
    metric: Name
    kind: RegressionKind
    change_time: Moment
    """Start of the first window of the new regime."""
    before: float
    """A gCPU ratio, or in the metric's own unit where the metric kind is service."""
    after: float
    p_value: float
    statistic: float
    """Of the test: likelihood-ratio chi-squared."""
    group: NotRequired[Several[Candidate] | None]
    """Merged members, the representative left out."""
    passed: NotRequired[Several[Decision] | None]
    """What steps decided that let it through, in order."""
    domains: NotRequired[Several[DomainDecision] | None]
    """What its cost domains said."""
    change_time_interval: NotRequired[Interval | None]
    """Between which windows the change lies, with a confidence of 95 %; of a slow rise its beginning.

    Former versions leave it out."""


@message
class Dropped(Decision):
    """A candidate that a step dropped, and the decision."""

    candidate: Candidate


@message
class Joined(TypedDict):
    """A candidate that is part of a regression which an earlier scan passed on."""

    regression: Name
    """Id of its event."""
    candidate: Candidate


@message
class Unjudged(TypedDict):
    """Series that a scan could not judge for one reason."""

    code: Name
    """Why: docs/investigate.md lists them."""
    series: Count
    value: float
    """What fell short of the bound, of the series in the middle."""
    bound: float


@message
class Rename(TypedDict):
    """A subroutine's former name, and the one that it has when a scan ends."""

    former: Name
    name: Name


@message
class Scan(TypedDict):
    """One look at one service by one workload, with everything found and dropped so far.

    A scan too large for one message is cut into numbered parts.
    """

    service: Name
    workload: Name
    start: Moment
    analysis_start: Moment
    analysis_end: Moment
    """Where the extended window begins; equals the end without one."""
    end: Moment
    series: Count
    """How many series were scanned."""
    candidates: Several[Candidate]
    dropped: NotRequired[Several[Dropped] | None]
    grown: NotRequired[Several[Candidate] | None]
    """What a regression of an earlier scan has become; also among the dropped."""
    joined: NotRequired[Several[Joined] | None]
    """What belongs to regressions of earlier scans; also among the dropped."""
    part: NotRequired[Count]
    parts: NotRequired[Annotated[int, Field(ge=0, le=MAX_PARTS)]]
    attempt: NotRequired[Text]
    """Which cut of the scan a part is of; only parts of one attempt make a scan.

    It is derived from what all parts hold: cuts that differ differ in it. Former versions leave it out."""
    share_factor: NotRequired[Several[Annotated[float, Field(gt=0)]] | None]
    """By which factor all gCPU shares of the service moved in each window; empty where that is not known.

    On change-points alone, in part 0, and only with candidates."""
    renames: NotRequired[Several[Rename] | None]
    """Names of the scan's span that others have taken the place of, learnt from its data."""
    resolution_s: NotRequired[Annotated[float, Field(gt=0)] | None]
    """Width of its windows, where it is more than the workload's."""
    unjudged: NotRequired[Several[Unjudged] | None]
    """What the scan could not judge, and why; in part 0."""
    silent_partitions: NotRequired[Count]
    """Partitions whose data end in the analysis or extended window: the scan lacks what they still bring."""
