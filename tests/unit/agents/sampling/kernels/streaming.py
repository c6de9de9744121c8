"""A kernel whose runs stream, as a stand-in."""

from __future__ import annotations

import time
from collections.abc import Callable


class StreamingRun:
    """A run with one sample of its number at every take, and one more at the last."""

    streams = True

    def __init__(self, number: int, wake: Callable[[], None]) -> None:
        self.number = number
        self.ready = time.time()
        self.exited: float | None = None
        self.killed = False
        self._wake = wake

    def stop(self) -> None:
        self.exited = self.exited or time.time()
        self._wake()

    def kill(self) -> None:
        self.killed = True
        self.stop()

    def take(self) -> bytes:
        return b"main;run%d %d\n" % (self.number, 1 if self.exited is None else 2)

    def complaint(self) -> str:
        return "it ended by itself"


class Streaming:
    """Starts such runs and keeps them."""

    def __init__(self) -> None:
        self.runs: list[StreamingRun] = []

    def start(self, pid: int, wake: Callable[[], None]) -> StreamingRun:
        self.runs.append(StreamingRun(len(self.runs), wake))
        return self.runs[-1]
