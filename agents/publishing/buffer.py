"""Buffer of messages to publish: bounded by messages and bytes, the oldest makes room for the newest."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from pipeline.model import Outgoing
from pipeline.model.units import counted


@dataclass(frozen=True, slots=True)
class Pending:
    """A message that waits, and the stack samples in it."""

    message: Outgoing
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """How many messages, and the stack samples in them."""

    messages: int = 0
    samples: int = 0

    def plus(self, pending: Pending) -> Tally:
        """Return the tally with one message more."""
        return Tally(self.messages + 1, self.samples + pending.samples)

    def minus(self, earlier: Tally) -> Tally:
        """Return what came since an earlier tally."""
        return Tally(self.messages - earlier.messages, self.samples - earlier.samples)

    def __str__(self) -> str:
        return f"{counted(self.messages, 'message')} ({counted(self.samples, 'sample')})"


class Waiting(Protocol):
    """A queue of messages between threads that never blocks: a Buffer, or one with a spool behind it."""

    def put(self, pending: Pending) -> bool:
        """Add a message; return whether one was dropped for it."""

    def take(self) -> Pending | None:
        """Remove and return the oldest message, None if there is none."""

    def put_back(self, pending: Pending) -> None:
        """Make the message that was taken last the oldest one again."""

    @property
    def dropped(self) -> Tally:
        """Everything that was dropped so far."""

    @property
    def waiting(self) -> Tally:
        """Everything that waits now."""


class Buffer:
    """A queue between threads that never blocks and never grows past its bounds.

    Holds at most ``max_messages`` messages whose values together have at most ``max_bytes`` bytes.
    """

    def __init__(self, *, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._waiting: deque[Pending] = deque()
        self._bytes = 0
        self._dropped = Tally()
        self._lock = threading.Lock()

    def put(self, pending: Pending) -> bool:
        """Add a message; return whether one was dropped for it, the oldest first.

        A message larger than the whole buffer is itself what is dropped.
        """
        size = len(pending.message.value)
        with self._lock:
            before = self._dropped
            if size > self._max_bytes or not self._max_messages:
                self._dropped = self._dropped.plus(pending)
                return True
            while len(self._waiting) >= self._max_messages or self._bytes + size > self._max_bytes:
                self._dropped = self._dropped.plus(self._pop())
            self._waiting.append(pending)
            self._bytes += size
            return self._dropped != before

    def take(self) -> Pending | None:
        """Remove and return the oldest message, None if there is none."""
        with self._lock:
            return self._pop() if self._waiting else None

    def has_room(self, messages: int, size: int) -> bool:
        """Return whether so many messages, of so many bytes together, fit without dropping any."""
        with self._lock:
            fits = len(self._waiting) + messages <= self._max_messages
            return fits and self._bytes + size <= self._max_bytes

    def put_back(self, pending: Pending) -> None:
        """Make a message that was taken the oldest one again; the bounds may be exceeded by it."""
        with self._lock:
            self._waiting.appendleft(pending)
            self._bytes += len(pending.message.value)

    @property
    def dropped(self) -> Tally:
        """Everything that was dropped so far."""
        with self._lock:
            return self._dropped

    @property
    def waiting(self) -> Tally:
        """Everything that is in the buffer now."""
        with self._lock:
            return Tally(len(self._waiting), sum(pending.samples for pending in self._waiting))

    @property
    def waiting_bytes(self) -> int:
        """Bytes of all the values in the buffer now."""
        with self._lock:
            return self._bytes

    def _pop(self) -> Pending:
        pending = self._waiting.popleft()
        self._bytes -= len(pending.message.value)
        return pending
