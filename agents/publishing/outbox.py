"""Outbox of a log's counts: messages until the broker has confirmed them."""

from __future__ import annotations

import threading
from collections import deque

from agents.publishing.buffer import Pending, Tally
from pipeline.model import Outgoing


class Outbox:
    """A queue between threads that drops nothing: whoever fills it looks for room first.

    It is what a Publisher takes from, which asks for the next message once the last one was confirmed.
    """

    dropped = Tally()

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._messages: deque[Pending] = deque()
        self._bytes = 0
        self._is_in_hand = False  # the oldest one
        self._lock = threading.Lock()

    @property
    def has_room(self) -> bool:
        """Whether more should be put."""
        with self._lock:
            return self._bytes < self._max_bytes

    def __len__(self) -> int:
        """Return how many messages may not have reached the broker."""
        with self._lock:
            return len(self._messages)

    @property
    def unconfirmed(self) -> list[Outgoing]:
        """All messages that may not have reached the broker, in order."""
        with self._lock:
            return [pending.message for pending in self._messages]

    def put(self, pending: Pending) -> bool:
        """Add a message; return False, since none is dropped for it."""
        with self._lock:
            self._messages.append(pending)
            self._bytes += len(pending.message.value)
        return False

    def take(self) -> Pending | None:
        """Return the oldest message, None if there is none; the one that was taken last is confirmed."""
        with self._lock:
            if self._is_in_hand:
                self._bytes -= len(self._messages.popleft().message.value)
            self._is_in_hand = bool(self._messages)
            return self._messages[0] if self._messages else None

    def put_back(self, pending: Pending) -> None:
        """Make the message that was taken last the oldest one again."""
        with self._lock:
            self._is_in_hand = False

    @property
    def waiting(self) -> Tally:
        """Everything that waits now."""
        with self._lock:
            return Tally(len(self._messages) - self._is_in_hand)
