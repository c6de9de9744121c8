"""Parts of an interval, each of one process, merged into the messages of a host.

A message has one service, release and rate and one set of labels, which say what hosts are compared with:
the processes that share them are merged, with one dictionary of frames. Processes of another release or
label, or at another rate, need a message of their own, since a message has one of each for all samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from agents.host.rules import Identity
from agents.profiles.annotate import ANNOTATION_FILE
from agents.profiles.formats import Stack
from agents.profiles.message import Source, build_profile, encode_within
from agents.profiles.profile_files import profile_key
from pipeline.model import Outgoing


@dataclass(frozen=True, slots=True)
class Part:
    """Samples of one process from ``start`` to ``end``, in epoch seconds; perhaps none."""

    identity: Identity
    rate_hz: float
    start: float
    end: float
    stacks: Mapping[Stack, int]
    is_adaptive: bool = False  # its rate follows the profile


@dataclass(frozen=True, slots=True)
class Encoded:
    """The messages of an interval, each with its samples, and the samples that fit into none."""

    messages: tuple[tuple[Outgoing, int], ...]
    lost: int = 0


def merge_parts(parts: Iterable[Part], interval_s: float) -> list[Part]:
    """Merge the parts that one message can hold: those with the same identity, rate and interval.

    A part belongs to the interval that holds its middle: sampling is handed over some milliseconds before or
    after a boundary. No sample is lost or made.
    """
    merged: dict[tuple[Identity, float, int], Part] = {}
    sums: dict[tuple[Identity, float, int], dict[Stack, int]] = {}
    for part in parts:
        interval = math.floor((part.start + part.end) / 2 / interval_s)
        key = (part.identity, part.rate_hz, interval)
        before = merged.get(key, part)
        counts = sums.setdefault(key, {})
        for stack, count in part.stacks.items():
            counts[stack] = counts.get(stack, 0) + count
        start, end = min(before.start, part.start), max(before.end, part.end)
        merged[key] = replace(part, start=start, end=end, stacks=counts)
    return list(merged.values())


def with_endpoint(stacks: Mapping[Stack, int], endpoint: str) -> Mapping[Stack, int]:
    """Put all stacks under a frame that carries the endpoint, as ``agents.profiles.annotate`` does.

    An empty endpoint adds no frame.
    """
    if not endpoint:
        return stacks
    frame = f"endpoint={endpoint} ({ANNOTATION_FILE})"
    return {(frame, *stack): count for stack, count in stacks.items()}


def encode_part(part: Part, host: str, max_bytes: int) -> Encoded:
    """Encode a merged part as few messages of at most ``max_bytes``."""
    source = Source(
        part.identity.service, host, part.identity.release, dict(part.identity.labels), part.rate_hz
    )
    profile = build_profile(part.stacks, source=source, start=part.start, end=part.end, id=uuid4().hex)
    encoded, lost = encode_within(profile, max_bytes)
    key = profile_key(source)
    return Encoded(
        tuple((Outgoing("profiles", key, message.value), message.samples) for message in encoded), lost
    )
