"""The calls that a worker makes of a stage besides ``handle`` and ``settled``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.model import Outgoing, Record
from pipeline.stages.abilities import (
    Assignable,
    Counted,
    Divisible,
    Periodic,
    Positioned,
    Resumable,
    Skipping,
)
from pipeline.stages.base import Stage
from pipeline.telemetry.metrics import Sample


class StageCalls:
    """Calls of a stage's abilities, with default answers for those it lacks.

    This is the one place where a stage is asked for its abilities; see ``pipeline.stages.abilities``.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Notify the stage that this process has been assigned partitions anew."""
        if isinstance(self._stage, Assignable):
            self._stage.assigned(topic, partitions)

    def stored_up_to(self, topic: str, partitions: Sequence[int]) -> Mapping[int, int]:
        """Return the next offset by partition; an absent partition continues at its commit."""
        return self._stage.stored_up_to(topic, partitions) if isinstance(self._stage, Positioned) else {}

    def passed(self, topic: str, last: Mapping[int, int]) -> None:
        """Notify the stage of the last finished offsets of a topic."""
        if isinstance(self._stage, Positioned):
            self._stage.passed(topic, last)

    @property
    def unfinished(self) -> bool:
        """True if a part of the last batch remains."""
        return isinstance(self._stage, Divisible) and self._stage.unfinished

    def rest(self) -> bool:
        """Postpone the rest of a batch; False if that is impossible."""
        return isinstance(self._stage, Resumable) and self._stage.rest()

    def held(self, topic: str) -> Mapping[int, int]:
        """Return by partition the offset from which on messages must not be acknowledged yet."""
        return self._stage.held(topic) if isinstance(self._stage, Resumable) else {}

    @property
    def leaves_out(self) -> bool:
        """True if a record whose query the store keeps rejecting may become a dead letter."""
        return isinstance(self._stage, Skipping)

    def left_out(self, record: Record) -> None:
        """Notify the stage that a record is a dead letter, since the store rejects its query."""
        if isinstance(self._stage, Skipping):
            self._stage.left_out(record)

    @property
    def idle_s(self) -> float:
        """Seconds between two calls of ``idle``; 0 if it is never called."""
        return self._stage.idle_s if isinstance(self._stage, Periodic) else 0.0

    def idle(self) -> list[Outgoing]:
        """Return the messages that are due by the clock alone."""
        return self._stage.idle() if isinstance(self._stage, Periodic) else []

    def limited(self) -> Mapping[str, int]:
        """Return the amounts refused, folded, cut or shortened, by all names that may be counted."""
        if not isinstance(self._stage, Counted):
            return {}
        return {**dict.fromkeys(self._stage.limits, 0), **self._stage.limited}

    def samples(self) -> list[Sample]:
        """Return the stage's counts under labels of its own."""
        return self._stage.samples() if isinstance(self._stage, Counted) else []
