"""What an injection does to a fleet, and what it says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.fleet.callgraph import Stack
from pipeline.model import Change, FloatArray


@dataclass(frozen=True, slots=True)
class StackEffect:
    """Adds cost to one stack, which may be new: ``cost`` × ``profile``.

    ``cost`` is a share of the service's cost before any injection, negative where cost goes away. New work
    costs more on some generations of servers than on others. Where it acts on some hosts more than on others,
    ``profile`` is its mean over the load.
    """

    stack: Stack
    cost: float
    profile: FloatArray  # (windows,)
    new_work: bool = True
    by_host: FloatArray | None = None  # (halves of hosts, slots, windows)


@dataclass(frozen=True, slots=True)
class MoveEffect:
    """Moves ``share`` × ``profile`` of whatever one stack costs to another one, which may be new.

    Both serve the same endpoint, so that the sum stays as it is under any load.
    """

    source: Stack
    goal: Stack
    share: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class ReshapeEffect:
    """Moves ``profile`` of what every stack costs to the stack of the form that it takes on."""

    form: Callable[[Stack], Stack]
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class EndpointEffect:
    """Multiplies the traffic of an endpoint by 1 + ``gain`` × ``profile``."""

    endpoint: str
    gain: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class HostEffect:
    """Takes a share of the servers away: ``lost`` × ``profile``."""

    lost: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class MetricEffect:
    """Multiplies a service-level metric by 1 + ``gain`` × ``profile``."""

    metric: str
    gain: float
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class SetupMetric:
    """A metric that describes how the service is set up, and so may explain: follows ``profile``."""

    metric: str
    profile: FloatArray  # (windows,)


@dataclass(frozen=True, slots=True)
class Renamed:
    """Names that code has from ``at`` (epoch seconds) on, by those it had before.

    ``in_source`` says whether changes name it so too; what a runtime makes up, no source knows.
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
    reshapes: tuple[ReshapeEffect, ...] = ()  # after all moves, on what those have made too
    endpoints: tuple[EndpointEffect, ...] = ()
    hosts: tuple[HostEffect, ...] = ()
    metrics: tuple[MetricEffect, ...] = ()
    setup: tuple[SetupMetric, ...] = ()
    changes: tuple[Change, ...] = ()
    renamed: tuple[Renamed, ...] = ()
