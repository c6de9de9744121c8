"""What arrives from outside: stack samples, points of metrics, deployed changes; and progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.model.arrays import FloatArray, IntArray
from pipeline.model.metric_kind import AnnotationKind
from pipeline.model.metric_metadata import MetricMetadata
from pipeline.model.silence import ExpectedCost
from pipeline.model.strata import RATE_LABEL, Stratum


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded message with its place in the log.

    Messages of a partition with one ``id`` are copies of one message; without an id each stands for itself.
    """

    topic: str  # logical name, a key of topics.yaml
    partition: int
    offset: int
    payload: Any
    id: str = ""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An encoded message to publish. ``topic`` is a logical name, a key of topics.yaml."""

    topic: str
    key: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation:
    """Metadata on the frame at ``frame`` (an index into the profile's frames)."""

    frame: int
    kind: AnnotationKind
    value: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One host's stack samples of one interval, identical stacks counted once.

    ``stack_frames[stack_starts[i]:stack_starts[i + 1]]`` are the frames of stack i from the root to the
    leaf, as indexes into ``frames``; ``counts[i]`` is how many samples had that stack. Profiles of a
    service with the same ``id`` are one that was published again; without an id each stands for itself.
    """

    service: str
    host: str
    start: float
    end: float
    frames: tuple[str, ...]
    stack_frames: IntArray  # (frames of all stacks,)
    stack_starts: IntArray  # (stacks + 1,)
    counts: IntArray  # (stacks,)
    annotations: tuple[Annotation, ...] = ()
    release: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    rate_hz: float = 0.0  # samples a second of CPU; 0 is not known
    id: str = ""

    @property
    def sender(self) -> Stratum:
        """The stratum that the samples belong to; hosts that are sampled at another rate are another."""
        rate = {RATE_LABEL: f"{self.rate_hz:g}"} if self.rate_hz else {}
        return Stratum.of({**rate, **self.labels}, host=self.host, release=self.release)


@dataclass(frozen=True, slots=True)
class MetricPoints:
    """Points of one service-level metric. ``setup`` marks one that explains but is never judged itself.

    Points of a metric with the same ``id`` are those of one message that was published again.
    """

    service: str
    metric: str
    timestamps: FloatArray  # (points,)
    values: FloatArray  # (points,)
    setup: bool = False
    unit: str = ""
    kind: str = ""
    direction: str = ""
    id: str = ""

    @property
    def metadata(self) -> MetricMetadata:
        """What the service says of the metric."""
        return MetricMetadata(self.unit, self.kind, self.direction)


@dataclass(frozen=True, slots=True)
class RouteCall:
    """A subroutine on the way from a route's handler to what a change modifies, and where it is defined."""

    subroutine: str
    path: str = ""
    line: int = 0  # from 1; 0: not known


@dataclass(frozen=True, slots=True)
class RouteReach:
    """A route of a service's application, and how near a change comes to it by the call graph of the source.

    A subroutine's nearness is 1 over one more than its calls from the handler, and over the number of
    handlers that reach it. Of a change that modifies nothing of the route the numbers are 0 and 1.

    Args:
        route: Methods and pattern, ``GET /orders/{id}``.
        share: Of the nearness of all that the route reaches, how much the change modifies.
        nearness: Of the nearest modified subroutine.
        rank: How many subroutines of the route come as near, 1 for the nearest of all.
        chance: That a change of as many subroutines of the source comes as near at random.
        calls: From the handler to the nearest modified subroutine, both included.
    """

    route: str
    share: float = 0.0
    nearness: float = 0.0
    rank: int = 1
    chance: float = 1.0
    calls: tuple[RouteCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A deployed code or configuration change. ``time`` is when it was deployed, not when it was written."""

    id: str
    service: str
    time: float
    title: str
    author: str = ""
    summary: str = ""
    files: tuple[str, ...] = ()
    subroutines: tuple[str, ...] = ()  # modified ones, spelt as in stack frames
    gates: tuple[str, ...] = ()
    content: str = ""  # the diff's text, cut to a bound, for its words
    expected: tuple[ExpectedCost, ...] = ()  # what it announces to cost
    routes: tuple[RouteReach, ...] = ()  # all of the application, by its source; empty: not known


@dataclass(frozen=True, slots=True)
class Progress:
    """Everything of a service in one partition of one topic is stored up to ``watermark``.

    ``earliest`` is the start of the oldest data in the batch that was stored last; a service that is seen
    for the first time is scanned from there on.
    """

    service: str
    topic: str
    partition: int
    watermark: float
    earliest: float
