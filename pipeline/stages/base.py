"""The base of every stage: a plain object, independent of Faust, that turns a batch into messages.

Abilities of some stages only have protocols in ``pipeline.stages.abilities``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.model import Outgoing, Record

Decoder = Callable[[bytes | None], Any]
"""Turns a message's value into a payload; raises InvalidMessage."""


class Stage(ABC):
    """One step of the flow. Methods block and are never called concurrently on one stage.

    The caller repeats ``handle`` with the same batch while it raises StoreUnavailable, publishes what it
    returns, calls ``settled`` once all of it is on the topics, and only then acknowledges the batch. So a
    batch may come again, whole or in part, after any failure: duplicates are normal and change nothing.

    A stage that keeps nothing in memory across batches writes ``handle`` alone.
    """

    name: str
    inputs: Mapping[str, Decoder]
    """Logical input topics and the decoders of their values."""

    @abstractmethod
    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Process a batch of one topic and return the messages to publish, in order.

        Raises:
            StoreUnavailable: nothing was decided; the same call is to be repeated.
            QueryRefused: likewise; it may never succeed.
        """

    def settled(self) -> None:  # noqa: B027 - a default, not a hole
        """Learn that every message of the last call is on its topic.

        Raises:
            StoreUnavailable: nothing was noted; the same call is to be repeated.
        """
