"""Messages from outside: profiles, points of metrics, changes."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.codec.schema.types import Count, Moment, Name, ServiceName, Several, ShortName, Text, message
from pipeline.model import AnnotationKind

MAX_COUNT = 2**40  # in all of a profile: far above any host's interval, so that no sum of many overflows

MAX_FRAME = 16 * 2**20
"""Longest name of a frame, in characters: only the message bounds it. Long ones are cut when they are counted
(``pipeline.frames.cut_name``), so that one broken symbol does not cost a host's whole interval."""

MAX_RATE_HZ = 1e6
"""Most samples a second and CPU."""

MAX_ID = 200
"""Longest id of a profile, in characters."""

MAX_METRIC = 1e100
"""Largest value of a metric, either sign: squares and sums of many stay finite."""

MAX_CONTENT = 32 * 1024
"""Longest text of a diff that a change may carry, in characters: senders cut it there."""

MetricText = Annotated[str, Field(max_length=100)]

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
