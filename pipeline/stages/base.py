"""The base of every stage: a plain object that turns a batch into messages, with no Faust in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pipeline.model import Outgoing, Record
from pipeline.telemetry.metrics import Sample

Decoder = Callable[[bytes | None], Any]
"""Turns a message's value into a payload; raises InvalidMessage."""


def handle_whole(stage: Stage, batch: Sequence[Record]) -> list[Outgoing]:
    """Have a stage do all of a batch, where what it returns is published in any case; return its messages."""
    sent = stage.handle(batch)
    stage.settled()
    while stage.unfinished:
        sent += stage.handle(batch)
        stage.settled()
    return sent


class Stage(ABC):
    """One step of the flow. Methods block and are never called concurrently on one stage.

    The caller repeats ``handle`` with the same batch while it raises StoreUnavailable, publishes what it
    returns, calls ``settled`` once all of it is on the topics, and only then acknowledges the batch. So a
    batch may come again, whole or in part, after any failure: duplicates are normal and change nothing.

    A stage may do a part of a batch at a time, so that no call takes long: while it is ``unfinished`` once a
    part is settled, ``handle`` is called again with the same batch.

    A stage that keeps nothing in memory across batches writes ``handle`` alone.
    """

    name: str
    leaves_out = False
    """Whether a record may be left out for which the store goes on refusing what ``handle`` asks; see
    QueryRefused. Of others the call is repeated for as long as it takes."""
    inputs: Mapping[str, Decoder]
    """Logical input topics and how their values are decoded."""
    limited: Mapping[str, int] = MappingProxyType({})
    """How much was refused, folded, cut or shortened here so far, by names of telemetry.LIMITED."""
    limits: Sequence[str] = ()
    """Names of telemetry.LIMITED that this stage may count: they are shown while there is nothing, too."""
    idle_s = 0.0
    """How often ``idle`` is called, in the one process that has the first partitions; 0 is never."""

    @property
    def unfinished(self) -> bool:
        """Whether the batch that was handled last has to be handled again for what is left of it."""
        return False

    def rest(self) -> bool:
        """Let what is left of a batch rest, since another one waits; False if it cannot.

        It goes on beside the next one, and until it is done ``held`` says from where on.
        """
        return False

    def held(self, topic: str) -> Mapping[int, int]:
        """Return by partition of a topic the offset from which on messages are not to be acknowledged yet."""
        return {}

    def samples(self) -> list[Sample]:
        """Return what the stage counts under labels of its own, as telemetry.METRICS names it."""
        return []

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:  # noqa: B027 - a default, not a hole
        """Forget what is known of these partitions: this process owns them anew."""

    def stored_up_to(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Return the offset up to which the store has what follows of each partition's messages.

        Reading goes on there if Kafka has committed more. Of other partitions it has no say.

        Raises:
            StoreUnavailable: the same call is to be repeated.
        """
        return {}

    def passed(self, topic: str, last: Mapping[int, int]) -> None:  # noqa: B027 - a default, not a hole
        """Learn that all messages of a topic up to these offsets, by partition, are done with.

        Also those that were dead letters. It comes after ``settled``, before they are acknowledged.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """

    def left_out(self, record: Record) -> None:  # noqa: B027 - a default, not a hole
        """Learn that what ``handle`` failed at for this record alone is not tried again: it is a dead letter.

        If more of the record is to be done, the stage is ``unfinished``, and the record is handled again.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """

    @abstractmethod
    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Process a batch of one topic and return the messages to publish, in order.

        Raises:
            StoreUnavailable: nothing was decided; the same call is to be repeated.
            QueryRefused: likewise; it may never succeed.
        """

    def idle(self) -> list[Outgoing]:
        """Return the messages that are due by the clock alone; ``settled`` is called once they are on topics.

        Raises:
            StoreUnavailable: nothing was decided; the same call is to be repeated.
        """
        return []

    def settled(self) -> None:  # noqa: B027 - likewise
        """Learn that every message of the last ``handle`` or ``idle`` is on its topic.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """
