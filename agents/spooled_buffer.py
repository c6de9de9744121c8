"""Buffer of messages with a spool behind it: what memory cannot hold goes to disk."""

from __future__ import annotations

import logging
import threading
from collections import deque

from agents.buffer import Pending, Tally
from agents.host.spool import Spool

log = logging.getLogger(__name__)


class SpooledBuffer:
    """A queue between threads. Messages in the spool are older than those in memory, and are taken first.

    Holds at most ``max_messages`` messages with ``max_bytes`` bytes of values in memory; the oldest make room
    in the spool. What the disk does not take is dropped.
    """

    def __init__(self, spool: Spool, *, max_messages: int, max_bytes: int) -> None:
        self._spool = spool
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._memory: deque[Pending] = deque()
        self._bytes = 0
        self._dropped = Tally()
        self._is_from_spool = False  # the message that was taken last
        self._has_returned = False  # the oldest in memory is older than all in the spool
        self._reported = ""
        self._lock = threading.Lock()

    def put(self, pending: Pending) -> bool:
        """Add a message; return whether any was dropped for it."""
        with self._lock:
            before = self._dropped
            self._memory.append(pending)
            self._bytes += len(pending.message.value)
            while len(self._memory) > self._max_messages or self._bytes > self._max_bytes:
                self._move()
            return self._dropped != before

    def take(self) -> Pending | None:
        """Remove and return the oldest message, None if there is none."""
        with self._lock:
            pending = self._spool.take()
            self._is_from_spool = pending is not None
            if pending is None:
                self._reported = ""
                pending = self._pop() if self._memory else None
            return pending

    def put_back(self, pending: Pending) -> None:
        """Make the message that was taken last the oldest one again."""
        with self._lock:
            if not self._is_from_spool:
                self._memory.appendleft(pending)
                self._bytes += len(pending.message.value)
                self._has_returned = True
            elif not self._spool.put_back(pending):
                self._drop(Tally().plus(pending))

    def close(self) -> Tally:
        """Move everything to the spool, which the next agent goes on with; return what waits there."""
        with self._lock:
            if self._has_returned and self._memory:
                returned = self._pop()
                try:
                    self._spool.prepend(returned)
                except OSError as error:
                    self._refused(returned, error)
            while self._memory:
                self._move()
            kept = self._spool.waiting
            self._spool.close()
            return kept

    @property
    def dropped(self) -> Tally:
        """Everything that was dropped so far, or cannot be read any more."""
        with self._lock:
            damaged = self._spool.damaged
            return Tally(self._dropped.messages + damaged.messages, self._dropped.samples + damaged.samples)

    @property
    def waiting(self) -> Tally:
        """Everything that waits now."""
        with self._lock:
            spooled = self._spool.waiting
            samples = spooled.samples + sum(pending.samples for pending in self._memory)
            return Tally(spooled.messages + len(self._memory), samples)

    @property
    def spooled_bytes(self) -> int:
        """Bytes on disk."""
        with self._lock:
            return self._spool.size

    def _pop(self) -> Pending:
        pending = self._memory.popleft()
        self._bytes -= len(pending.message.value)
        return pending

    def _move(self) -> None:
        """Move the oldest message in memory to the spool."""
        pending = self._pop()
        try:
            self._drop(self._spool.append(pending))
        except OSError as error:
            self._refused(pending, error)

    def _refused(self, pending: Pending, error: OSError) -> None:
        self._drop(Tally().plus(pending))
        if self._reported != str(error):
            self._reported = str(error)
            log.warning(
                "the spool cannot be written (%s): messages are being dropped", error.strerror or error
            )

    def _drop(self, tally: Tally) -> None:
        self._dropped = Tally(self._dropped.messages + tally.messages, self._dropped.samples + tally.samples)
