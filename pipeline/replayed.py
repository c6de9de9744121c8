"""Where a record stands: its place in its topic or, for a dead letter that was replayed, in the replay.

A replayed message may be on its topic twice. All its copies have one place in the replay, by which those
who count recognise them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.model import Record

PREFIX = "replay/"
"""What the name of a replay's log begins with; no topic's logical name does."""


@dataclass(frozen=True, slots=True)
class ReplayedRecord(Record):
    """A decoded message that a replay sent. Its numbers rise within a partition."""

    replay: str = ""
    replay_offset: int = -1


def log_of(record: Record) -> str:
    """Return what ``number_of`` is a number in: the topic, or the replay that sent the record."""
    if isinstance(record, ReplayedRecord):
        return f"{PREFIX}{record.topic}/{record.replay}"
    return record.topic


def number_of(record: Record) -> int:
    """Return what a record is known by once it is counted: its offset, or its number in the replay."""
    return record.replay_offset if isinstance(record, ReplayedRecord) else record.offset


def is_of_topic(log: str, topic: str) -> bool:
    """Tell whether a log is that of a topic, or of a replay to it."""
    return log == topic or log.startswith(f"{PREFIX}{topic}/")
