"""Messages from outside: profiles, points of metrics, changes, and what people say of regressions."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.messages.schema.types import (
    Count,
    LongText,
    Moment,
    Name,
    ServiceName,
    Several,
    Share,
    ShortName,
    Text,
    message,
)
from pipeline.model import AnnotationKind, CostMeasure, SilenceKind, VerdictKind

MAX_COUNT = 2**40  # in all of a profile: far above any host's interval, so that no sum of many overflows

MAX_FRAME = 16 * 2**20
"""Longest name of a frame, in characters: only the message bounds it. Long ones are cut when they are counted
(``pipeline.model.frames.cut_name``), so that one broken symbol does not cost a host's whole interval."""

MAX_RATE_HZ = 1e6
"""Most samples a second and CPU."""

MAX_ID = 200
"""Longest id of a profile, in characters."""

MAX_METRIC = 1e100
"""Largest value of a metric, either sign: squares and sums of many stay finite."""

MAX_CONTENT = 32 * 1024
"""Longest text of a diff that a change may carry, in characters: senders cut it there."""

MetricText = Annotated[str, Field(max_length=100)]
MAX_EXPECTED = 100
"""Most costs that one change may announce."""

CostShare = Annotated[float, Field(gt=0, le=1)]

MAX_ROUTES = 2000
"""Most routes of an application that a change may name."""

MAX_CALLS = 50
"""Most calls from a handler that a change may name."""

MetricValue = Annotated[float, Field(ge=-MAX_METRIC, le=MAX_METRIC)]


@message
class Annotation(TypedDict):
    """Metadata on a frame (FBDetect §3.2, SetFrameMetadata): each value becomes a series of its own."""

    frame: Count
    """Index into the profile's frames."""
    kind: AnnotationKind
    value: Name


@message
class Profile(TypedDict):
    """One host's stack samples of one interval, identical stacks counted once."""

    service: ServiceName
    host: ShortName
    start: Moment
    end: Moment
    """At or after the start, by at most a day."""
    frames: Several[Annotated[str, Field(max_length=MAX_FRAME)]]
    """Names of subroutines; what is longer than a series' name is cut, with a hash of the whole."""
    stacks: SkipValidation[list[list[Count]]]  # arrays are checked as arrays
    """From the root to the leaf, as indexes into frames."""
    counts: SkipValidation[list[Annotated[int, Field(ge=0, le=MAX_COUNT)]]]
    """How many samples had each stack: as many numbers as there are stacks, together within the maximum."""
    annotations: NotRequired[Several[Annotation] | None]
    """At most 16 of one frame."""
    release: NotRequired[Text]
    """What runs on the host, such as a commit."""
    labels: NotRequired[SkipValidation[dict[str, str]]]
    rate_hz: NotRequired[Annotated[float, Field(gt=0, le=MAX_RATE_HZ)]]
    """How often a second each CPU was sampled: hosts of different rates are compared each with itself."""
    id: NotRequired[Annotated[str, Field(max_length=MAX_ID)]]
    """Profiles of one service and day with the same id and the same key are counted once."""


@message
class MetricPoints(TypedDict):
    """Points of one service-level metric, such as throughput or latency."""

    service: ServiceName
    metric: ShortName
    points: SkipValidation[Annotated[list[tuple[Moment, MetricValue]], Field(min_length=1)]]
    """Pairs of time and value."""
    setup: NotRequired[bool]
    """Marks a metric that explains but is never judged itself."""
    unit: NotRequired[MetricText]
    """Its unit in UCUM, as OpenTelemetry writes it: s, ms, By, 1, {request}/s."""
    kind: NotRequired[MetricText]
    """What it measures, such as latency or hit_ratio (docs/workloads.md); an unknown kind says nothing."""
    direction: NotRequired[Literal["up", "down", "none"]]
    """In which direction it gets worse; without it unit, kind and name decide."""
    id: NotRequired[Annotated[str, Field(max_length=MAX_ID)]]
    """Messages of one service and day with the same id and the same key are counted once."""


@message
class ExpectedCost(TypedDict):
    """A cost that a change announces for itself: regressions of it are silent up to that much."""

    cost: CostShare
    subroutine: NotRequired[Text]
    """Glob of the names of what may cost more; empty: whatever the change makes slower."""


@message
class RouteCall(TypedDict):
    """A subroutine on the way from a route's handler to what a change modifies."""

    subroutine: Text
    path: NotRequired[Text]
    """Of the file that defines it, from the top of the repository."""
    line: NotRequired[Count]
    """Of its definition, from 1; 0: not known."""


@message
class RouteReach(TypedDict):
    """A route of the service's application, and how near a change comes to it by the call graph."""

    route: Text
    """Methods and pattern, such as ``GET /orders/{id}``."""
    share: NotRequired[Share]
    """How much of the route's reach it modifies, each subroutine by its nearness."""
    nearness: NotRequired[Share]
    """Of the nearest modified subroutine: 1 / (1 + calls from the handler) / handlers with it; 0: none."""
    rank: NotRequired[Count]
    """How many subroutines of the route come as near."""
    chance: NotRequired[Share]
    """That a change of as many subroutines comes as near at random."""
    calls: NotRequired[Annotated[list[RouteCall], Field(fail_fast=True, max_length=MAX_CALLS)] | None]
    """From the handler to the nearest modified subroutine, both included."""


@message
class Change(TypedDict):
    """A deployed code or configuration change."""

    id: ShortName
    """Such as a commit."""
    time: Moment
    """When it was deployed, not when it was written."""
    service: ServiceName
    title: NotRequired[Text]
    author: NotRequired[Text]
    summary: NotRequired[Annotated[str, Field(max_length=100_000)]]
    files: NotRequired[Several[Text] | None]
    subroutines: NotRequired[Several[Text] | None]
    """Modified ones, spelt as in stack frames."""
    gates: NotRequired[Several[Text] | None]
    """Configuration keys that it flips, or whose flip it is."""
    content: NotRequired[Annotated[str, Field(max_length=MAX_CONTENT)]]
    """The text of the diff, cut to a bound, for its words."""
    expected: NotRequired[
        Annotated[list[ExpectedCost], Field(fail_fast=True, max_length=MAX_EXPECTED)] | None
    ]
    """What it is announced to cost, by trailers of its message such as ``Expected-Cost: 0.1%``."""
    routes: NotRequired[Annotated[list[RouteReach], Field(fail_fast=True, max_length=MAX_ROUTES)] | None]
    """All routes of the application, with how near it comes to each; empty: not known."""


@message
class Silence(TypedDict):
    """What a person said beforehand of regressions: a cost that was announced, or a mute.

    A later one with the same id and service replaces it.
    """

    kind: SilenceKind
    """An announced cost silences regressions up to that much; a mute silences all of them until its end."""
    id: ShortName
    service: ServiceName
    time: Moment
    """When it was made. Scans that ended before know nothing of it, so that a replay decides as before."""
    owner: NotRequired[Text]
    """Who answers for it; a mute must have one."""
    subroutine: NotRequired[Text]
    """Glob of the names of what it is about; empty: the whole service."""
    cost: NotRequired[Annotated[float, Field(gt=0, le=MAX_METRIC)] | None]
    """What is announced, by ``measure``: by default a share of the service's CPU: 0.001 is 0.1 %.

    Expectations alone have one."""
    measure: NotRequired[CostMeasure]
    """What the cost is: ``cpu``; or of the service-level metric that ``subroutine`` names a change in its own
    unit, ``metric``, or as a share of its level before, ``relative``."""
    change: NotRequired[Text]
    """Id of the change whose cost it is, or its beginning. Expectations alone have one."""
    start: NotRequired[Moment | None]
    """From when on: of a mute the end of a scan, of an expectation the change time. If left out: time."""
    end: NotRequired[Moment | None]
    """Until when, likewise; a mute must have one."""
    reason: NotRequired[Text]
    removed: NotRequired[Moment | None]
    """When it was taken back: scans that end later know nothing of it."""


@message
class Feedback(TypedDict):
    """What all messages of people have: the kind says which of them it is."""

    kind: Literal["expected", "muted", "verdict"]


@message
class Verdict(TypedDict):
    """What a person says of an event.

    Of one event and author the latest counts, and a cause beside it; the latest of all is the event's state.
    """

    kind: Literal["verdict"]
    event: ShortName
    """Id of the event, of type ``smidgen.regression.detected``."""
    service: ServiceName
    verdict: VerdictKind
    """A regression or none; cost that moved; planned; repaired; reported before; somebody looks into it; or
    the change that did it."""
    time: Moment
    """When it was said. Scans that ended before know nothing of it."""
    author: NotRequired[Text]
    comment: NotRequired[LongText]
    subject: NotRequired[ShortName | None]
    """Of a duplicate: id of the other event. Of a cause: id of the change, or its first 7 digits."""
    end: NotRequired[Moment | None]
    """Of an expected one: until when the same regression stays silent."""
