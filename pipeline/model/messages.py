"""Messages from outside (stack samples, points of metrics, deployed changes), and progress."""

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
    """A decoded message with its position in the log.

    Messages of a partition with the same ``id`` are copies of one message; without an id each is distinct.
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
    leaf, as indexes into ``frames``; ``counts[i]`` is the number of samples with that stack. Profiles of a
    service with the same ``id`` are copies of one profile; without an id each is distinct.
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
    rate_hz: float = 0.0  # samples per second of CPU; 0: unknown
    id: str = ""

    @property
    def sender(self) -> Stratum:
        """The stratum of the samples; hosts that are sampled at another rate are another stratum."""
        rate = {RATE_LABEL: f"{self.rate_hz:g}"} if self.rate_hz else {}
        return Stratum.of({**rate, **self.labels}, host=self.host, release=self.release)


@dataclass(frozen=True, slots=True)
class MetricPoints:
    """Points of one service-level metric. ``setup`` marks a metric that explains others and is never scanned.

    Messages of a metric with the same ``id`` are copies of one message.
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
        """Unit, kind and direction, as the service sends them."""
        return MetricMetadata(self.unit, self.kind, self.direction)


@dataclass(frozen=True, slots=True)
class RouteCall:
    """A subroutine on the way from a route's handler to what a change modifies, and where it is defined."""

    subroutine: str
    path: str = ""
    line: int = 0  # from 1; 0: unknown


@dataclass(frozen=True, slots=True)
class RouteReach:
    """A route of a service's application, and the nearness of a change to it by the source's call graph.

    A subroutine's nearness is 1 / ((calls from the handler + 1) × handlers that reach it). A change that
    modifies no subroutine of the route has the default numbers.

    Args:
        route: Methods and pattern, ``GET /orders/{id}``.
        share: Share of the nearness of all subroutines of the route that the change modifies.
        nearness: Nearness of the nearest modified subroutine.
        rank: Number of the route's subroutines that are at least as near; 1 for the nearest one.
        chance: Probability that a random change of as many subroutines of the source is at least as near.
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
    """A deployed code or configuration change. ``time`` is that of the deployment, not of the authoring."""

    id: str
    service: str
    time: float
    title: str
    author: str = ""
    summary: str = ""
    files: tuple[str, ...] = ()
    subroutines: tuple[str, ...] = ()  # modified ones, spelt as in stack frames
    gates: tuple[str, ...] = ()
    content: str = ""  # the diff's text, cut to a bound, for matching words
    expected: tuple[ExpectedCost, ...] = ()  # costs that it announces
    routes: tuple[RouteReach, ...] = ()  # all of the application, by its source; empty: unknown


@dataclass(frozen=True, slots=True)
class Progress:
    """The event time up to which a service's data in one partition of one topic is stored.

    ``earliest`` is the start of the oldest data in the last stored batch; a service that is seen for the
    first time is scanned from there on.
    """

    service: str
    topic: str
    partition: int
    watermark: float
    earliest: float
