"""Messages from outside: profiles, points of metrics, changes."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic cannot read typing.TypedDict before Python 3.12

from pipeline.codec.inputs import MAX_CONTENT, MAX_COUNT, MAX_FRAME, MAX_ID, MAX_METRIC
from pipeline.codec.schema.types import Count, Moment, Name, ServiceName, ShortName, Text, documented
from pipeline.model import AnnotationKind

MetricValue = Annotated[float, Field(ge=-MAX_METRIC, le=MAX_METRIC)]


@documented
class Annotation(TypedDict):
    """Metadata on a frame (FBDetect §3.2, SetFrameMetadata): each value becomes a series of its own."""

    frame: Count
    """Index into the profile's frames."""
    kind: AnnotationKind
    value: Name


@documented
class Profile(TypedDict):
    """One host's stack samples of one interval, identical stacks counted once."""

    service: ServiceName
    host: ShortName
    start: Moment
    end: Moment
    """At or after the start, by at most a day."""
    frames: list[Annotated[str, Field(max_length=MAX_FRAME)]]
    """Names of subroutines; what is longer than a series' name is cut, with a hash of the whole."""
    stacks: list[list[Count]]
    """From the root to the leaf, as indexes into frames."""
    counts: list[Annotated[int, Field(ge=0, le=MAX_COUNT)]]
    """How many samples had each stack: as many numbers as there are stacks, together within the maximum."""
    annotations: NotRequired[list[Annotation] | None]
    """At most 16 of one frame."""
    release: NotRequired[Text]
    """What runs on the host, such as a commit."""
    labels: NotRequired[dict[str, str]]
    id: NotRequired[Annotated[str, Field(max_length=MAX_ID)]]
    """Profiles of one service and day with the same id and the same key are counted once."""


@documented
class MetricPoints(TypedDict):
    """Points of one service-level metric, such as throughput or latency."""

    service: ServiceName
    metric: ShortName
    points: Annotated[list[tuple[Moment, MetricValue]], Field(min_length=1)]
    """Pairs of time and value."""
    setup: NotRequired[bool]
    """Marks a metric that explains but is never judged itself."""


@documented
class Change(TypedDict):
    """A deployed code or configuration change."""

    id: ShortName
    """Such as a commit."""
    service: ServiceName
    time: Moment
    """When it was deployed, not when it was written."""
    title: NotRequired[Text]
    author: NotRequired[Text]
    summary: NotRequired[Annotated[str, Field(max_length=100_000)]]
    files: NotRequired[list[Text] | None]
    subroutines: NotRequired[list[Text] | None]
    """Modified ones, spelt as in stack frames."""
    gates: NotRequired[list[Text] | None]
    """Configuration keys that it flips, or whose flip it is."""
    content: NotRequired[Annotated[str, Field(max_length=MAX_CONTENT)]]
    """The text of the diff, cut to a bound, for its words."""
