"""Batches by partition."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.model import Record


def by_partition(records: Sequence[Record]) -> list[list[Record]]:
    """Return the records of each partition, in their order."""
    found: dict[int, list[Record]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return list(found.values())
