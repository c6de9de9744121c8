"""Queue of messages between threads: bounded in memory, with a policy for what goes beyond the bounds."""

from __future__ import annotations

import logging
import threading
from collections import deque
from enum import Enum

from agents.publishing.pending import Pending, Tally
from agents.publishing.spool import Spool, disk_bytes
from pipeline.model import Outgoing

log = logging.getLogger(__name__)

MAX_MESSAGES = 500_000
"""Most messages that wait in memory."""

UNCHECKED_BYTES = 64 * 1024
"""Bytes that may be in memory whether the disk has room or not: a broker that answers needs no disk."""

HEAD_BYTES = 1024
"""Most bytes of a message on disk besides its value: its topic, key and headers."""


class Overflow(Enum):
    """Policy for messages beyond the bounds that no spool takes."""

    DROP_OLDEST = "drop_oldest"
    KEEP = "keep"  # in memory: nothing is lost while senders ask for room before they put anything


class MessageQueue:
    """A queue that never blocks, with a spool on disk behind it if one is given.

    Memory holds at most ``max_messages`` messages with ``max_bytes`` bytes of values. Beyond that the oldest
    messages move to the spool; what no spool takes follows the policy of ``overflow``. Messages in the spool
    are older than those in memory, and are taken first. The message that was taken last is confirmed once the
    next one is taken.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        max_messages: int = MAX_MESSAGES,
        overflow: Overflow = Overflow.DROP_OLDEST,
        spool: Spool | None = None,
    ) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._overflow = overflow
        self._spool = spool
        self._memory: deque[Pending] = deque()
        self._bytes = 0
        self._disk_bytes = 0  # that everything in memory would take in the spool
        self._in_hand: Pending | None = None  # the message that was taken last
        self._is_from_spool = False  # the message in hand
        self._has_returned = False  # the oldest in memory is older than all in the spool
        self._dropped = Tally()
        self._reported = ""
        self._lock = threading.Lock()

    def put(self, pending: Pending) -> bool:
        """Add a message; return whether any was dropped for it.

        A message larger than all of memory is itself what is dropped, where no spool takes it.
        """
        with self._lock:
            before = self._dropped
            is_droppable = self._spool is None and self._overflow is Overflow.DROP_OLDEST
            if is_droppable and len(pending.message.value) > self._max_bytes:
                self._drop(Tally().plus(pending))
            else:
                self._memory.append(pending)
                self._add(pending)
                self._make_room()
            return self._dropped != before

    def has_room(self, messages: int, size: int) -> bool:
        """Return whether ``messages`` messages with ``size`` bytes of values fit without dropping any.

        With a spool they fit if it can take them and all that is in memory, as it has to at the end.
        """
        with self._lock:
            if self._spool is None:
                fits = len(self._memory) + messages <= self._max_messages
                return fits and self._bytes + size <= self._max_bytes
            in_hand = 0 if self._in_hand is None or self._is_from_spool else disk_bytes(self._in_hand)
            needed = self._disk_bytes + in_hand + size + messages * HEAD_BYTES
            if needed > self._spool.free:
                return False
            if self._disk_bytes > UNCHECKED_BYTES:
                try:
                    self._spool.check_disk(needed)
                except OSError as error:
                    self._report(error)
                    return False
            return self._make_room()

    def take(self) -> Pending | None:
        """Remove and return the oldest message; None if there is none. The one taken before is confirmed."""
        with self._lock:
            pending = self._spool.take() if self._spool else None
            self._is_from_spool = pending is not None
            if pending is None:
                self._reported = ""
                pending = self._pop() if self._memory else None
            self._in_hand = pending
            return pending

    def put_back(self) -> None:
        """Make the message that was taken last the oldest one again; the bounds may be exceeded by it."""
        with self._lock:
            pending, self._in_hand = self._in_hand, None
            if pending is None:
                return
            if not self._is_from_spool:
                self._memory.appendleft(pending)
                self._add(pending)
                self._has_returned = True
            elif not (self._spool and self._spool.put_back(pending)):
                self._drop(Tally().plus(pending))

    def close(self) -> Tally:
        """Move everything to the spool, which the next process goes on with; return what waits there."""
        with self._lock:
            if self._spool is None:
                return Tally()
            self._overflow = Overflow.DROP_OLDEST  # what the spool does not take now is lost
            if self._has_returned and self._memory:
                returned = self._pop()
                try:
                    self._spool.prepend(returned)
                except OSError as error:
                    self._drop(Tally().plus(returned))
                    self._report(error)
            while self._memory:
                self._evict()
            waiting = self._spool.waiting
            self._spool.close()
            return waiting

    @property
    def dropped(self) -> Tally:
        """Everything that was dropped so far, or cannot be read from the spool any more."""
        with self._lock:
            return self._dropped + self._spool.damaged if self._spool else self._dropped

    @property
    def waiting(self) -> Tally:
        """Everything that waits now, without the message in hand."""
        with self._lock:
            in_memory = Tally(len(self._memory), sum(pending.samples for pending in self._memory))
            return in_memory + self._spool.waiting if self._spool else in_memory

    @property
    def unconfirmed(self) -> list[Outgoing]:
        """All messages of a queue without a spool that may not have reached the broker, in order."""
        with self._lock:
            in_hand = [] if self._in_hand is None else [self._in_hand]
            return [pending.message for pending in (*in_hand, *self._memory)]

    @property
    def spooled_bytes(self) -> int:
        """Bytes on disk."""
        with self._lock:
            return self._spool.size if self._spool else 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes of everything that waits, as it is in memory or on disk."""
        with self._lock:
            return self._bytes + (self._spool.waiting_bytes if self._spool else 0)

    def _add(self, pending: Pending) -> None:
        self._bytes += len(pending.message.value)
        self._disk_bytes += disk_bytes(pending) if self._spool else 0

    def _pop(self) -> Pending:
        pending = self._memory.popleft()
        self._bytes -= len(pending.message.value)
        self._disk_bytes -= disk_bytes(pending) if self._spool else 0
        return pending

    def _make_room(self) -> bool:
        """Bring memory back within its bounds; return whether it is."""
        while len(self._memory) > self._max_messages or self._bytes > self._max_bytes:
            if not self._evict():
                return False
        return True

    def _evict(self) -> bool:
        """Move the oldest message in memory to the spool, or drop it; return False if it has to stay."""
        lost, stays = Tally().plus(self._memory[0]), self._overflow is Overflow.KEEP
        if self._spool:
            try:
                lost, stays = self._spool.append(self._memory[0]), False
            except OSError as error:
                self._report(error)
        if not stays:
            self._pop()
            self._drop(lost)
        return not stays

    def _report(self, error: OSError) -> None:
        if self._reported != str(error):
            self._reported = str(error)
            keeps = self._overflow is Overflow.KEEP
            result = "no more is taken" if keeps else "messages are being dropped"
            log.warning("the spool cannot be written (%s): %s", error.strerror or error, result)

    def _drop(self, tally: Tally) -> None:
        self._dropped += tally
