"""Feeder of a load: publishes window after window as agents do, at a given pace."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from typing import Self

from agents.publishing.broker import connect, quiet_client
from agents.publishing.message_queue import MessageQueue
from agents.publishing.pending import Tally
from agents.publishing.publisher import BackgroundPublisher, Delivery
from pipeline.model import Outgoing
from pipeline.model.errors import SmidgenError
from pipeline.processes import TaskSupervisor
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics

_TICK_S = 0.05
_STUCK_S = 120.0
"""Without a message that is confirmed, the broker is taken for gone."""

_BUFFER = 1 << 30
_AGENTS = 8
"""Agents that publish at the same time: each waits for the broker after every message."""


class Feeder:
    """A thread that hands batch after batch to the publishers of agents, evenly over ``seconds``.

    Messages of one service are published by one publisher, in their order. ``allow`` bounds the share of the
    load that may be sent, so that the load lasts as long as the strikes on it.
    """

    def __init__(
        self, batches: Sequence[Sequence[Outgoing]], settings: Settings, topics: Topics, *, seconds: float
    ) -> None:
        self._batches = batches
        self._gap_s = seconds / max(1, len(batches))
        self._buffers = [MessageQueue(max_messages=_BUFFER, max_bytes=_BUFFER) for _ in range(_AGENTS)]
        quiet_client(settings)
        self._publishers = [
            BackgroundPublisher(lambda: connect(settings, topics), buffer) for buffer in self._buffers
        ]
        self._allowed = 1.0
        self._stop = threading.Event()
        self._paused = threading.Event()
        self.offered = 0
        self.delivery: Delivery | None = None

    @property
    def share(self) -> float:
        """Share of the load that was handed over."""
        return self.offered / max(1, len(self._batches))

    @property
    def done(self) -> bool:
        """Whether everything was handed over and confirmed."""
        return self.offered == len(self._batches) and not self._waiting

    @property
    def _waiting(self) -> int:
        return sum(buffer.waiting.messages for buffer in self._buffers)

    def allow(self, share: float) -> None:
        """Allow a share of the load to be sent."""
        self._allowed = share

    def pause(self, timeout_s: float) -> None:
        """Stop sending, and wait until all messages handed over are confirmed."""
        self._paused.set()
        deadline = time.monotonic() + timeout_s
        while self._waiting and time.monotonic() < deadline:
            time.sleep(_TICK_S)
        time.sleep(0.5)  # the last message has left the buffer while it is under way

    def resume(self) -> None:
        """Send again."""
        self._paused.clear()

    def finish(self) -> Delivery:
        """Wait until everything is confirmed, and check that nothing was dropped.

        Raises:
            SmidgenError: the broker did not take all messages.
        """
        self._thread.join()
        moved, left = time.monotonic(), self._waiting
        while left and time.monotonic() - moved < _STUCK_S:
            time.sleep(_TICK_S)
            if (now := self._waiting) < left:
                moved, left = time.monotonic(), now
        self.delivery = _together(publisher.close(_STUCK_S) for publisher in self._publishers)
        lost = self.delivery.dropped.messages + self.delivery.unsent.messages
        if lost and not self._stop.is_set():
            raise SmidgenError(f"faults: {lost} messages of the load were not published")
        return self.delivery

    def __enter__(self) -> Self:
        for publisher in self._publishers:
            publisher.start()
        self._thread = TaskSupervisor().run_thread("load", self._feed, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self.delivery is None:
            for publisher in self._publishers:
                publisher.close(0.0)

    def _feed(self) -> None:
        due = time.monotonic()
        for number, batch in enumerate(self._batches[self.offered :], self.offered):
            while time.monotonic() < due or self._held(number):
                if self._stop.wait(_TICK_S):
                    return
            for message in batch:
                service = message.key.partition("/")[0]
                self._publishers[zlib.crc32(service.encode()) % _AGENTS].offer(message)
            self.offered = number + 1
            due = max(due + self._gap_s, time.monotonic() - 10 * self._gap_s)

    def _held(self, number: int) -> bool:
        return self._paused.is_set() or number >= self._allowed * len(self._batches)


def _together(deliveries: Iterable[Delivery]) -> Delivery:
    published, dropped, unsent = zip(*((d.published, d.dropped, d.unsent) for d in deliveries), strict=True)
    return Delivery(*(_sum(tallies) for tallies in (published, dropped, unsent)))


def _sum(tallies: Iterable[Tally]) -> Tally:
    tallies = list(tallies)
    return Tally(sum(tally.messages for tally in tallies), sum(tally.samples for tally in tallies))
