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
    """Remembers something of the partitions that this process owns."""

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Forget what is known of these partitions: this process owns them anew."""


@runtime_checkable
class Positioned(Protocol):
    """Keeps in the store how far it has read."""

    def stored_up_to(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Return the offset up to which the store has what follows from each partition's messages.

        Reading goes on there if Kafka has committed more. A partition that is absent goes on at its commit.

        Raises:
            StoreUnavailable: the same call is to be repeated.
        """

    def passed(self, topic: str, last: Mapping[int, int]) -> None:
        """Learn that all messages of a topic up to these offsets, by partition, are done with.

        Dead letters are among them. It comes after ``settled``, before the messages are acknowledged.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """


@runtime_checkable
class Divisible(Protocol):
    """Does a part of a batch at a time, so that no call takes long.

    While it is ``unfinished`` once a part is settled, ``handle`` is called again with the same batch.
    """

    @property
    def unfinished(self) -> bool:
        """Whether the batch that was handled last has to be handled again for what is left of it."""


@runtime_checkable
class Resumable(Divisible, Protocol):
    """May leave the rest of a batch until later, and take in the next batch meanwhile."""

    def rest(self) -> bool:
        """Let what is left of a batch rest, since another one waits; False if it cannot.

        It goes on beside the next one, and until it is done ``held`` says from where on.
        """

    def held(self, topic: str) -> Mapping[int, int]:
        """Return by partition of a topic the offset from which on messages are not to be acknowledged yet."""


@runtime_checkable
class Skipping(Protocol):
    """Can do without a record whose query the store keeps rejecting: that becomes a dead letter.

    Other stages repeat the call for as long as it takes; see QueryRefused.
    """

    def left_out(self, record: Record) -> None:
        """Learn that what ``handle`` failed at for this record alone is not tried again.

        If more of the record is to be done, the stage is ``unfinished``, and the record is handled again.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """
        return  # a default: nothing to note


@runtime_checkable
class Periodic(Protocol):
    """Has messages that are due by the clock alone.

    It is called in one process, the one that has the first partitions.
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
    """Counts what it does, for /metrics."""

    limits: Sequence[str] = ()
    """Names of telemetry.LIMITED that the stage may count: they are shown while there is nothing, too."""
    limited: Mapping[str, int] = MappingProxyType({})
    """How much was refused, folded, cut or shortened so far, by these names."""

    def samples(self) -> list[Sample]:
        """Return the counts under labels of its own, as telemetry.METRICS names them."""
        return []


def handle_whole(stage: Stage, batch: Sequence[Record]) -> list[Outgoing]:
    """Have a stage do all of a batch, where what it returns is published in any case; return its messages."""
    sent = stage.handle(batch)
    stage.settled()
    while isinstance(stage, Divisible) and stage.unfinished:
        sent += stage.handle(batch)
        stage.settled()
    return sent
