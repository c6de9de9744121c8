"""Buffer of messages with a spool behind it: what memory cannot hold goes to disk."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import replace

from agents.publishing.buffer import Buffer, Pending, Tally
from agents.publishing.publisher import Delivery, Publisher
from agents.publishing.spool import Spool, disk_bytes

log = logging.getLogger(__name__)

UNCHECKED_BYTES = 64 * 1024
"""So much may be in memory whether the disk has room or not: a broker that answers needs no disk."""

HEAD_BYTES = 1024
"""What a message takes on disk besides its value, at most: its topic, key and headers."""


class SpooledBuffer:
    """A queue between threads. Messages in the spool are older than those in memory, and are taken first.

    Holds at most ``max_messages`` messages with ``max_bytes`` bytes of values in memory; the oldest make room
    in the spool. What the disk does not take is dropped; with ``keeps`` it stays in memory, for senders that
    ask ``has_room`` before they put anything.
    """

    def __init__(self, spool: Spool, *, max_messages: int, max_bytes: int, keeps: bool = False) -> None:
        self._spool = spool
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._memory: deque[Pending] = deque()
        self._keeps = keeps
        self._bytes = 0
        self._disk_bytes = 0  # that everything in memory would take there
        self._in_hand_bytes = 0  # and the message that was taken from memory last
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
            self._add(pending)
            self._make_room()
            return self._dropped != before

    def has_room(self, messages: int, size: int) -> bool:
        """Return whether so many messages, of so many bytes together, fit without dropping any.

        They do if the spool can take them with all that is in memory, as it has to at the end.
        """
        with self._lock:
            needed = self._disk_bytes + self._in_hand_bytes + size + messages * HEAD_BYTES
            if needed > self._spool.free:
                return False
            if self._disk_bytes > UNCHECKED_BYTES:
                try:
                    self._spool.check_disk(needed)
                except OSError as error:
                    self._report(error, "no more is taken")
                    return False
            return self._make_room()

    def take(self) -> Pending | None:
        """Remove and return the oldest message, None if there is none."""
        with self._lock:
            pending = self._spool.take()
            self._is_from_spool = pending is not None
            self._in_hand_bytes = 0
            if pending is None:
                self._reported = ""
                if self._memory:
                    pending = self._pop()
                    self._in_hand_bytes = disk_bytes(pending)
            return pending

    def put_back(self, pending: Pending) -> None:
        """Make the message that was taken last the oldest one again."""
        with self._lock:
            if not self._is_from_spool:
                self._memory.appendleft(pending)
                self._add(pending)
                self._in_hand_bytes = 0
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
            self._keeps = False  # what does not go there now is lost
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

    @property
    def waiting_bytes(self) -> int:
        """Bytes of everything that waits, as it is in memory or on disk."""
        with self._lock:
            return self._bytes + self._spool.waiting_bytes

    def _add(self, pending: Pending) -> None:
        self._bytes += len(pending.message.value)
        self._disk_bytes += disk_bytes(pending)

    def _pop(self) -> Pending:
        pending = self._memory.popleft()
        self._bytes -= len(pending.message.value)
        self._disk_bytes -= disk_bytes(pending)
        return pending

    def _make_room(self) -> bool:
        """Move what memory cannot hold to the spool; return whether all of that could be moved."""
        while len(self._memory) > self._max_messages or self._bytes > self._max_bytes:
            if not self._move():
                return False
        return True

    def _move(self) -> bool:
        """Move the oldest message in memory to the spool; return whether it is not in memory any more."""
        pending = self._pop()
        try:
            self._drop(self._spool.append(pending))
        except OSError as error:
            if self._keeps:
                self._memory.appendleft(pending)
                self._add(pending)
                self._report(error, "no more is taken")
                return False
            self._refused(pending, error)
        return True

    def _refused(self, pending: Pending, error: OSError) -> None:
        self._drop(Tally().plus(pending))
        self._report(error, "messages are being dropped")

    def _report(self, error: OSError, result: str) -> None:
        if self._reported != str(error):
            self._reported = str(error)
            log.warning("the spool cannot be written (%s): %s", error.strerror or error, result)

    def _drop(self, tally: Tally) -> None:
        self._dropped = Tally(self._dropped.messages + tally.messages, self._dropped.samples + tally.samples)


def close_spooled(publisher: Publisher, buffer: Buffer | SpooledBuffer, flush_s: float) -> Delivery:
    """Publish what waits for at most ``flush_s`` seconds, keep the rest in a spool if there is one."""
    delivery = publisher.close(flush_s)
    if isinstance(buffer, Buffer):
        return delivery
    kept = buffer.close()
    return replace(delivery, dropped=publisher.delivery.dropped, unsent=Tally(), kept=kept)
