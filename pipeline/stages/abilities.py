"""Abilities that only some stages have, a protocol each; a stage names those it has as its bases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from pipeline.model import Outgoing, Record
from pipeline.stages.base import Stage
from pipeline.telemetry.metrics import Sample


@runtime_checkable
class Assignable(Protocol):
    """A stage that remembers state of the partitions that this process owns."""

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget the state of these partitions: this process has been assigned them anew."""


@runtime_checkable
class Positioned(Protocol):
    """A stage that keeps its progress in the store."""

    def stored_up_to(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Return the offset up to which the store has the results of each partition's messages.

        Reading continues there if Kafka's commit is higher. An absent partition continues at its commit.

        Raises:
            StoreUnavailable: the same call is to be repeated.
        """

    def passed(self, topic: str, last: Mapping[int, int]) -> None:
        """Note that all messages of a topic up to these offsets, by partition, are finished.

        Dead letters are among them. It is called after ``settled``, before messages are acknowledged.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """


@runtime_checkable
class Divisible(Protocol):
    """A stage that handles a part of a batch per call, so that no call takes long.

    While it is ``unfinished`` after a part is settled, ``handle`` is called again with the same batch.
    """

    @property
    def unfinished(self) -> bool:
        """True if the last batch has to be handled again for its remaining part."""


@runtime_checkable
class Resumable(Divisible, Protocol):
    """A stage that may postpone the rest of a batch, and take in the next batch meanwhile."""

    def rest(self) -> bool:
        """Postpone the rest of a batch, since another one waits; False if that is impossible.

        The rest continues beside the next batch; until it is finished ``held`` has its offsets.
        """

    def held(self, topic: str) -> Mapping[int, int]:
        """Return by partition of a topic the offset from which on messages must not be acknowledged yet."""


@runtime_checkable
class Skipping(Protocol):
    """A stage that can leave out a record whose query the store keeps rejecting: it becomes a dead letter.

    Other stages repeat the call for as long as it takes; see QueryRefused.
    """

    def left_out(self, record: Record) -> None:
        """Note that the failed part of ``handle`` for this record alone is not tried again.

        If another part of the record remains, the stage is ``unfinished``, and the record is handled again.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """
        return  # a default: nothing to note


@runtime_checkable
class Periodic(Protocol):
    """A stage with messages that are due by the clock alone.

    It is called in one process only, the one with the first partitions.
    """

    idle_s: float
    """Seconds from one call of ``idle`` to the next."""

    def idle(self) -> list[Outgoing]:
        """Return the messages that are due; ``settled`` is called once they are on their topics.

        Raises:
            StoreUnavailable: nothing was decided; the same call is to be repeated.
        """


@runtime_checkable
class Counted(Protocol):
    """A stage with counts for /metrics."""

    limits: Sequence[str] = ()
    """Names of telemetry.LIMITED that the stage may count: they are shown at 0, too."""
    limited: Mapping[str, int] = MappingProxyType({})
    """Amounts refused, folded, cut or shortened so far, by these names."""

    def samples(self) -> list[Sample]:
        """Return the counts under labels of its own, as telemetry.METRICS names them."""
        return []


def handle_whole(stage: Stage, batch: Sequence[Record]) -> list[Outgoing]:
    """Let a stage handle a whole batch, if all its messages are published in any case; return them."""
    sent = stage.handle(batch)
    stage.settled()
    while isinstance(stage, Divisible) and stage.unfinished:
        sent += stage.handle(batch)
        stage.settled()
    return sent
