"""Backpressure: what a stream holds in memory is bounded by bytes, not only by the number of messages.

A thousand messages of 16 MiB are 16 GiB. So what a stream has fetched is bounded (``BoundedQueue``), and so
is a batch (``take_bounded``); a single message may be larger than either bound, and is then alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

from faust import ChannelT, streams
from mode.utils.locks import Event
from mode.utils.queues import ThrowableQueue

_RESUME_SHARE = 0.4
"""A partition is fetched again once no more of the bound is taken than this."""


class BoundedQueue(ThrowableQueue):  # type: ignore[type-arg]
    """A stream's queue that is full once it holds ``max_bytes``, and fetching of a partition then stops."""

    def __init__(self, *args: Any, max_bytes: int, **kwargs: Any) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        super().__init__(*args, **kwargs)

    def full(self) -> bool:
        """Return whether a further message has to wait."""
        return self.bytes >= self.max_bytes or super().full()

    def clear(self) -> None:
        """Drop everything."""
        super().clear()
        self.bytes = 0

    def in_pressure_high_state(self, callback: Callable[..., Any]) -> bool:
        """Return whether a partition is to be left alone; ``callback`` is called when it is not any more."""
        pending = self._pending_pressure_drop_callbacks
        if callback not in pending and self.bytes >= self.max_bytes:
            pending.add(callback)
            return True
        return bool(super().in_pressure_high_state(callback))

    def maybe_endorse_pressure_drop(self) -> None:
        """Let partitions be fetched again if there is room."""
        if self.bytes <= self.max_bytes * _RESUME_SHARE:
            super().maybe_endorse_pressure_drop()

    def _put(self, item: Any) -> None:
        self.bytes += _size(item)
        super()._put(item)

    def _get(self) -> Any:
        item = super()._get()
        self.bytes -= _size(item)
        return item


async def take_bounded(
    stream: streams.Stream[Any], *, max_messages: int, max_bytes: int, within_s: float
) -> AsyncIterator[list[Any]]:
    """Yield batches of events, unacknowledged, of at most so many messages and bytes.

    A batch ends ``within_s`` after its first message. The message that reaches ``max_bytes`` is part of
    its batch. While a batch is worked on, no message is taken: they wait in the stream's queue. The
    stream acknowledges nothing by itself any more.
    """
    batch: list[Any] = []
    size = 0
    first, full, room = Event(), Event(), asyncio.Event()
    room.set()

    async def keep(value: Any) -> Any:
        nonlocal size
        event = stream.current_event
        await room.wait()
        batch.append(event)
        size += _size(event)
        first.set()
        if len(batch) >= max_messages or size >= max_bytes:
            room.clear()
            full.set()
        return value

    stream.enable_acks = False
    stream.add_processor(keep)
    stream._enable_passive(cast(ChannelT[Any], aiter(stream.channel)))
    while not stream.should_stop:
        if await stream.wait_for_stopped(first):
            return
        await stream.wait_for_stopped(full, timeout=within_s)
        room.clear()
        taken, batch, size = batch, [], 0
        yield taken
        del taken  # nothing is held while the next batch is awaited
        first.clear()
        full.clear()
        room.set()


def _size(event: Any) -> int:
    """Return the bytes of an event's message."""
    message = event.message
    return len(message.value or b"") + len(message.key or b"")
