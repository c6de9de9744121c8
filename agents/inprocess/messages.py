"""Messages of ``profiles`` (docs/schemas/profile.json) from the stacks of an interval."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agents.inprocess.options import Identity
from agents.inprocess.stacks import RawStack
from agents.profiles.naming import NamedFrame, name_stack

MAX_BYTES = 1_000_000
"""Largest message: what a broker takes by default."""

Counts: TypeAlias = list[tuple[list[NamedFrame], int]]


@dataclass(frozen=True, slots=True)
class Interval:
    """Stacks with their samples, taken between two moments in epoch seconds."""

    start: float
    end: float
    rate_hz: float
    stacks: Mapping[RawStack, int]


@dataclass(frozen=True, slots=True)
class ProfileMessage:
    """A message of ``profiles`` and the samples in it."""

    value: bytes
    samples: int


def build_messages(
    interval: Interval, identity: Identity, message_id: str, max_bytes: int = MAX_BYTES
) -> Iterator[ProfileMessage]:
    """Yield the messages of an interval, one without samples if the process was idle.

    Each has an id of its own, derived from ``message_id``, so that one that arrives twice counts once. A
    message larger than ``max_bytes`` is split; a stack that is too large by itself is left out.
    """
    counts: Counts = [(name_stack(stack), count) for stack, count in interval.stacks.items()]
    yield from _within([pair for pair in counts if pair[0]], interval, identity, message_id, max_bytes)


def _within(
    counts: Counts, interval: Interval, identity: Identity, message_id: str, max_bytes: int
) -> Iterator[ProfileMessage]:
    value = json.dumps(
        _as_json(counts, interval, identity, message_id), separators=(",", ":"), allow_nan=False
    ).encode()
    if len(value) <= max_bytes:
        yield ProfileMessage(value, sum(count for _, count in counts))
    elif len(counts) > 1:
        half = len(counts) // 2
        yield from _within(counts[:half], interval, identity, f"{message_id}/1", max_bytes)
        yield from _within(counts[half:], interval, identity, f"{message_id}/2", max_bytes)


def _as_json(counts: Counts, interval: Interval, identity: Identity, message_id: str) -> dict[str, Any]:
    numbers: dict[str, int] = {}
    annotations: dict[int, dict[str, object]] = {}
    stacks: dict[tuple[int, ...], int] = {}
    for named, count in counts:
        stack = tuple(_number(frame, numbers, annotations) for frame in named)
        stacks[stack] = stacks.get(stack, 0) + count
    message: dict[str, Any] = {
        "service": identity.service,
        "host": identity.host,
        "start": interval.start,
        "end": interval.end,
        "frames": list(numbers),
        "stacks": list(stacks),
        "counts": list(stacks.values()),
        "rate_hz": interval.rate_hz,
        "id": message_id,
    }
    optional: Sequence[tuple[str, Any]] = (
        ("annotations", list(annotations.values())),
        ("release", identity.release),
        ("labels", dict(identity.labels)),
    )
    return message | {name: value for name, value in optional if value}


def _number(frame: NamedFrame, numbers: dict[str, int], annotations: dict[int, dict[str, object]]) -> int:
    name = frame.name.encode("utf-8", "replace").decode()  # a path may hold bytes that are no text
    index = numbers.setdefault(name, len(numbers))
    if frame.annotation:
        kind, value = frame.annotation
        annotations.setdefault(index, {"frame": index, "kind": kind, "value": value})
    return index
