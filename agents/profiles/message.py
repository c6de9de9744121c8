"""Profile message of one interval's stacks: every stack once, frames numbered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from agents.profiles.formats import Stack
from agents.profiles.naming import NamedFrame, name_stack
from pipeline.messages.inputs import encode_profile
from pipeline.messages.schema.inputs import MAX_COUNT
from pipeline.model import Annotation, Profile
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


def build_profile(stacks: Mapping[Stack, int], *, source: Source, start: float, end: float) -> Profile:
    """Name the frames of raw stacks, add up stacks that became equal, and number the frames.

    Args:
        stacks: Frames as the sampler spells them, root first, with their samples.
        source: Service, host, release, labels and sampling rate.
        start: When sampling began, in epoch seconds.
        end: When it ended, in epoch seconds.

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
    return Profile(
        service=source.service,
        host=source.host,
        start=start,
        end=end,
        frames=tuple(numbers),
        stack_frames=np.array([index for stack in counts for index in stack], dtype=np.int64),
        stack_starts=np.cumsum([0, *map(len, counts)], dtype=np.int64),
        counts=np.array(list(counts.values()), dtype=np.int64),
        annotations=tuple(annotations.values()),
        release=source.release,
        labels=source.labels,
        rate_hz=source.rate_hz,
    )


def encode_within(profile: Profile, max_bytes: int) -> tuple[list[Encoded], int]:
    """Encode a profile as few messages of at most ``max_bytes``, all of the same interval.

    Each part has an id of its own if the profile has one.

    Returns:
        The messages, and the samples of stacks that do not even fit alone, which are left out.
    """
    value = encode_profile(profile)
    if len(value) <= max_bytes:
        return [Encoded(value, int(profile.counts.sum()))], 0
    stacks = len(profile.counts)
    if stacks <= 1:
        return [], int(profile.counts.sum())
    first, lost = encode_within(_part(profile, 0, stacks // 2), max_bytes)
    second, more_lost = encode_within(_part(profile, stacks // 2, stacks), max_bytes)
    return first + second, lost + more_lost


def _number(frame: NamedFrame, numbers: dict[str, int], annotations: dict[int, Annotation]) -> int:
    name = cut_name(frame.name)
    index = numbers.setdefault(name, len(numbers))
    if frame.annotation and index not in annotations:
        kind, value = frame.annotation
        annotations[index] = Annotation(index, kind, cut_name(value))
    return index


def _part(profile: Profile, first: int, last: int) -> Profile:
    """Return the stacks from ``first`` to before ``last`` with only the frames they need."""
    starts = profile.stack_starts[first : last + 1]
    used, flat = np.unique(profile.stack_frames[starts[0] : starts[-1]], return_inverse=True)
    renumbered = {int(old): new for new, old in enumerate(used)}
    return replace(
        profile,
        id=profile.id and f"{profile.id}/{first}-{last}",
        frames=tuple(profile.frames[old] for old in renumbered),
        stack_frames=flat.astype(np.int64),
        stack_starts=starts - starts[0],
        counts=profile.counts[first:last],
        annotations=tuple(
            replace(a, frame=renumbered[a.frame]) for a in profile.annotations if a.frame in renumbered
        ),
    )
