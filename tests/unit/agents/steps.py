"""A clock for a sampler that moves on by its waits."""

from __future__ import annotations

import queue

from agents.sampling.sampler import ProcessSampler


class Steps:
    """A clock that a sampler's waits move on: hours take no time, and a busy machine changes nothing."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def get(self, timeout: float) -> None:
        self.now += timeout
        raise queue.Empty

    def put(self, _: None) -> None:
        return

    def drive(self, sampler: ProcessSampler) -> None:
        """Let a sampler wait here alone."""
        sampler._wakes = self  # type: ignore[assignment]
