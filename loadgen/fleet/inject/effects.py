"""Effects of an injection on a fleet, and its truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.fleet.callgraph import Stack
from pipeline.model import Change, FloatArray


@dataclass(frozen=True, slots=True)
class StackEffect:
    """Cost added to one stack, which may be new: ``cost`` × ``profile``.

    ``cost`` is a share of the service's cost before any injection, negative if cost is removed. New work
    costs more on some generations of servers than on others. If the effect differs between hosts, ``profile``
    is its mean over the load.
    """

    stack: Stack
    cost: float
    profile: FloatArray  # (windows,)
    new_work: bool = True
    by_host: FloatArray | None = None  # (halves of hosts, slots, windows)


@dataclass(frozen=True, slots=True)
class MoveEffect:
    """Cost moved from one stack to another, which may be new: ``share`` × ``profile`` of the source's cost.

    Both stacks serve the same endpoint, so that the sum stays unchanged under any load.
    """

    source: Stack
    goal: Stack
    share: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class ReshapeEffect:
    """Cost moved from every stack to its new form: ``profile`` of the stack's cost."""

    form: Callable[[Stack], Stack]
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class EndpointEffect:
    """Factor of the traffic of an endpoint: 1 + ``gain`` × ``profile``."""

    endpoint: str
    gain: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class HostEffect:
    """Servers taken away: the share ``lost`` × ``profile``."""

    lost: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class MetricEffect:
    """Factor of a service-level metric: 1 + ``gain`` × ``profile``."""

    metric: str
    gain: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class SetupMetric:
    """A metric that describes the service's setup, and so may explain a regression: follows ``profile``."""

    metric: str
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class Renamed:
    """Names that code has from ``at`` (epoch seconds) on, by its former names.

    ``in_source`` says whether changes use these names too; names made by a runtime are in no source.
    """

    at: float
    names: Mapping[str, str]
    in_source: bool = True


@dataclass(frozen=True, slots=True)
class Injected:
    """One injection: its effects, the changes that were deployed with it, and the truth about it."""

    truth: tuple[Mapping[str, Any], ...]
    stacks: tuple[StackEffect, ...] = ()
    moves: tuple[MoveEffect, ...] = ()
    reshapes: tuple[ReshapeEffect, ...] = ()  # after all moves, on the stacks that the moves made, too
    endpoints: tuple[EndpointEffect, ...] = ()
    hosts: tuple[HostEffect, ...] = ()
    metrics: tuple[MetricEffect, ...] = ()
    setup: tuple[SetupMetric, ...] = ()
    changes: tuple[Change, ...] = ()
    renamed: tuple[Renamed, ...] = ()
