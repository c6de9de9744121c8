"""Sending in the background: bounded, repeated while the receiver is away, never blocking the application."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from agents.inprocess.messages import ProfileMessage

log = logging.getLogger("smidgen")

MAX_WAITING_BYTES = 8 * 2**20
"""Most bytes that wait while the receiver is away; beyond, the oldest messages are dropped."""

FIRST_RETRY_S = 0.5
LAST_RETRY_S = 30.0


class TryLater(Exception):
    """A message was not taken, but may be later."""

    def __init__(self, reason: str, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.after_s = after_s


class Refused(Exception):
    """A message will never be taken."""


class Sender(Protocol):
    """Destination of messages."""

    def offer(self, message: ProfileMessage) -> None:
        """Take a message without waiting."""

    def close(self, timeout_s: float) -> None:
        """Send waiting messages, with a timeout in seconds, and end."""

    def threads(self) -> tuple[int, ...]:
        """Return the identities of its threads, which are not sampled."""


class Outbox:
    """A daemon thread that delivers messages in order.

    Args:
        deliver: Delivers one message; raises TryLater or Refused.
        max_bytes: Most bytes that wait.
        first_retry_s: Pause before the second attempt; it doubles with each one.
    """

    def __init__(
        self,
        deliver: Callable[[bytes], None],
        max_bytes: int = MAX_WAITING_BYTES,
        first_retry_s: float | None = None,
    ) -> None:
        self._deliver = deliver
        self._max_bytes = max_bytes
        self._first_retry_s = FIRST_RETRY_S if first_retry_s is None else first_retry_s
        self._waiting: deque[ProfileMessage] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._closing = threading.Event()
        self._deadline = 0.0
        self._away = False
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="smidgen-sender", daemon=True)
        self._thread.start()

    def offer(self, message: ProfileMessage) -> None:
        """Take a message without waiting; if there is no room, the oldest messages are dropped."""
        with self._lock:
            self._waiting.append(message)
            self._bytes += len(message.value)
            while self._bytes > self._max_bytes and self._waiting:
                dropped = self._waiting.popleft()
                self._bytes -= len(dropped.value)
                self._lost += dropped.samples
        self._news.set()

    def close(self, timeout_s: float) -> None:
        """Send waiting messages, with a timeout in seconds, and end; log how many were not sent."""
        self._deadline = time.monotonic() + timeout_s
        self._closing.set()
        self._news.set()
        self._thread.join(timeout_s)
        with self._lock:
            lost = self._lost + sum(message.samples for message in self._waiting)
        if lost:
            log.warning("%d samples were not sent", lost)

    def threads(self) -> tuple[int, ...]:
        """Return the identity of the thread."""
        return (self._thread.ident,) if self._thread.ident else ()

    def _run(self) -> None:
        while True:
            message = self._next()
            if message:
                self._send(message)
            elif self._closing.is_set():
                return
            else:
                self._news.wait()
                self._news.clear()

    def _next(self) -> ProfileMessage | None:
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def _send(self, message: ProfileMessage) -> None:
        """Deliver a message, or give it up if it is refused, dropped meanwhile, or the time is over."""
        retry_s = self._first_retry_s
        while self._next() is message:
            try:
                self._deliver(message.value)
            except Refused as error:
                log.warning("a message of %d samples was refused: %s", message.samples, error)
            except Exception as failure:  # whatever it is, an application goes on, and so do its samples
                text = f"{type(failure).__name__}: {failure}"
                later = failure if isinstance(failure, TryLater) else TryLater(text)
                self._outage(later)
                if not self._pause(max(retry_s * random.uniform(0.5, 1.5), later.after_s)):
                    self._give_up()
                retry_s = min(2 * retry_s, LAST_RETRY_S)
                continue
            else:
                self._outage(None)
            self._drop(message)

    def _outage(self, error: TryLater | None) -> None:
        """Log once that an outage begins or has ended."""
        if error and not self._away:
            log.warning("not sent, tried again in the background: %s", error)
        elif self._away and not error:
            log.warning("sent again; %d samples were dropped meanwhile", self._lost)
            self._lost = 0
        self._away = error is not None

    def _pause(self, seconds: float) -> bool:
        """Wait before the next attempt; return whether there is time for one."""
        if not self._closing.wait(seconds):
            return True
        remaining_s = self._deadline - time.monotonic()
        time.sleep(max(min(self._first_retry_s, remaining_s), 0.0))
        return remaining_s > self._first_retry_s

    def _give_up(self) -> None:
        with self._lock:
            self._lost += sum(message.samples for message in self._waiting)
            self._waiting.clear()

    def _drop(self, message: ProfileMessage) -> None:
        with self._lock:
            if self._waiting and self._waiting[0] is message:
                self._waiting.popleft()
                self._bytes -= len(message.value)
