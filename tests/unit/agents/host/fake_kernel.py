"""A kernel whose runs give what a test wants, without a sampler."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.sampling.kernels import Sampling


@dataclass
class FakeRun:
    """Samples at once until it is stopped; gives its number at each take."""

    number: int
    streams: bool
    wake: Callable[[], None]
    fails: str = ""
    ready: float = 0.0
    exited: float | None = None
    takes: int = 0

    def __post_init__(self) -> None:
        if self.fails:
            self.exited = time.time()
        else:
            self.ready = time.time()
        self.wake()

    def stop(self) -> None:
        if self.exited is None:
            self.exited = time.time()
            self.wake()

    def kill(self) -> None:
        self.stop()

    def take(self) -> bytes:
        self.takes += 1
        return f"main;run{self.number} 1\n".encode()

    def complaint(self) -> str:
        return self.fails


@dataclass
class FakeKernels:
    """Makes kernels, and notes their settings and runs."""

    streams: bool = False
    fails: str = ""
    made: list[Sampling] = field(default_factory=list)
    runs: list[FakeRun] = field(default_factory=list)

    def __call__(self, sampling: Sampling) -> FakeKernels:
        self.made.append(sampling)
        return self

    def start(self, pid: int, wake: Callable[[], None]) -> FakeRun:
        run = FakeRun(len(self.runs), self.streams, wake, self.fails)
        self.runs.append(run)
        return run
