"""Batches in parts: by partition, and so small that counting one takes little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.gcpu.bounds import profile_extent
from pipeline.model import Profile, Record

MAX_ELEMENTS = 2_000_000
"""Most stack elements that are counted at once: with them memory grows, by about 100 bytes each."""

MAX_CHARACTERS = 1 << 26
"""Most characters in the names of all stacks that are counted at once: a row of a stack spells them."""


def by_partition(records: Sequence[Record]) -> list[list[Record]]:
    """Return the records of each partition, in their order."""
    found: dict[int, list[Record]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return list(found.values())


def slices(batch: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cut a batch so that no part has more elements or characters than may be, unless one message has."""
    part: list[Record] = []
    elements = characters = 0
    for record in batch:
        more, spelt = (
            profile_extent(record.payload, exact_from=MAX_CHARACTERS / 100)
            if isinstance(record.payload, Profile)
            else (0, 0)
        )
        if part and (elements + more > MAX_ELEMENTS or characters + spelt > MAX_CHARACTERS):
            yield part
            part, elements, characters = [], 0, 0
        part.append(record)
        elements += more
        characters += spelt
    if part:
        yield part
