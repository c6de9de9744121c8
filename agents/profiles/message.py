"""Profile message of one interval's stacks: every stack once, frames numbered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from agents.profiles.formats import Stack
from agents.profiles.naming import NamedFrame, name_stack
from pipeline.messages.schema.inputs import MAX_COUNT
from pipeline.model import Annotation
from pipeline.model.errors import InvalidMessage
from pipeline.model.frames import cut_name


@dataclass(frozen=True, slots=True)
class Source:
    """Source of samples: the properties that all profiles of an agent share."""

    service: str
    host: str
    release: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    rate_hz: float = 0.0  # samples a second and CPU; 0 is not known


@dataclass(frozen=True, slots=True)
class Encoded:
    """A profile message and the samples in it."""

    value: bytes
    samples: int


Message = dict[str, Any]
"""JSON object of the topic ``profiles``, docs/schemas/profile.json."""

_OPTIONAL = ("annotations", "release", "labels", "rate_hz", "id")


def build_profile(
    stacks: Mapping[Stack, int], *, source: Source, start: float, end: float, id: str = ""
) -> Message:
    """Name the frames of raw stacks, add up stacks that became equal, and number the frames.

    Args:
        stacks: Frames as the sampler spells them, root first, with their samples.
        source: Service, host, release, labels and sampling rate.
        start: When sampling began, in epoch seconds.
        end: When it ended, in epoch seconds.
        id: Profiles of a service with the same id are copies of one profile.

    Raises:
        InvalidMessage: a stack has more samples than a message can hold.
    """
    numbers: dict[str, int] = {}
    annotations: dict[int, Annotation] = {}
    counts: dict[tuple[int, ...], int] = {}
    for stack, count in stacks.items():
        indexes = tuple(_number(frame, numbers, annotations) for frame in name_stack(stack))
        if indexes:
            counts[indexes] = counts.get(indexes, 0) + count
    if counts and max(counts.values()) > MAX_COUNT:
        raise InvalidMessage(f"a stack has more than {MAX_COUNT} samples")
    return _without_empty(
        {
            "service": source.service,
            "host": source.host,
            "start": start,
            "end": end,
            "frames": list(numbers),
            "stacks": list(counts),
            "counts": list(counts.values()),
            "annotations": list(annotations.values()),
            "release": source.release,
            "labels": source.labels,
            "rate_hz": source.rate_hz,
            "id": id,
        }
    )


def encode_within(message: Message, max_bytes: int) -> tuple[list[Encoded], int]:
    """Encode a profile as few messages of at most ``max_bytes``, all of the same interval.

    Each part has an id of its own if the profile has one.

    Returns:
        The messages, and the samples of stacks that do not even fit alone, which are left out.
    """
    value = orjson.dumps(message)
    samples = sum(message["counts"])
    if len(value) <= max_bytes:
        return [Encoded(value, samples)], 0
    stacks = len(message["counts"])
    if stacks <= 1:
        return [], samples
    first, lost = encode_within(_part(message, 0, stacks // 2), max_bytes)
    second, more_lost = encode_within(_part(message, stacks // 2, stacks), max_bytes)
    return first + second, lost + more_lost


def _number(frame: NamedFrame, numbers: dict[str, int], annotations: dict[int, Annotation]) -> int:
    name = cut_name(frame.name)
    index = numbers.setdefault(name, len(numbers))
    if frame.annotation and index not in annotations:
        kind, value = frame.annotation
        annotations[index] = Annotation(index, kind, cut_name(value))
    return index


def _part(message: Message, first: int, last: int) -> Message:
    """Return the stacks from ``first`` to before ``last`` with only the frames they need."""
    stacks = message["stacks"][first:last]
    used = sorted({index for stack in stacks for index in stack})
    numbers = {old: new for new, old in enumerate(used)}
    annotations = [a for a in message.get("annotations", ()) if a.frame in numbers]
    own: Message = {
        "frames": [message["frames"][old] for old in used],
        "stacks": [[numbers[index] for index in stack] for stack in stacks],
        "counts": message["counts"][first:last],
        "annotations": [replace(a, frame=numbers[a.frame]) for a in annotations],
        "id": f"{message['id']}/{first}-{last}" if "id" in message else "",
    }
    return _without_empty(message | own)


def _without_empty(message: Message) -> Message:
    """Leave out optional fields that say nothing."""
    return {name: value for name, value in message.items() if value or name not in _OPTIONAL}
