"""Sampling less than once a second: a short burst at a random moment of each period.

Kernels sample at least once a second, and a kernel that waits long between samples cannot be stopped in
time. A burst samples at ``BURST_HZ`` for as long as gives the wanted mean rate: at 1/60 Hz for 0.1 s each
minute, which is one sample on average. Its moment is drawn anew in each period: every moment is as likely
as any other.
"""

from __future__ import annotations

import random
from collections.abc import Generator

from agents.sampling.kernels import Kernel
from agents.sampling.process import SampledProcess
from agents.sampling.sampler import CannotSample, Interval, ProcessSampler
from pipeline.model.clock import Clock

BURST_HZ = 10
"""Whole samples a second: a rate that a kernel supports, with pauses short enough to stop it in time."""


class BurstSampler(ProcessSampler):
    """Yields intervals like a Sampler; most of them are empty at low rates."""

    def __init__(
        self,
        kernel: Kernel,
        process: SampledProcess,
        rate_hz: float,
        *,
        interval_s: float,
        clock: Clock,
        draws: random.Random,
    ) -> None:
        super().__init__(kernel, process, interval_s=interval_s, clock=clock, attach_s=0.0)
        self._period_s = max(interval_s, 1 / rate_hz)
        self._burst_s = rate_hz * self._period_s / BURST_HZ
        self._draws = draws

    def intervals(self) -> Generator[Interval, None, None]:
        """Yield every interval once it is over.

        Raises:
            SamplerError: the process cannot be sampled.
        """
        start, data = self._clock(), b""
        period = start
        burst_at = self._moment_in(period)
        while not self.stopping and self._process.alive():
            boundary = self._boundary(start)
            if not self._wait(lambda: self.stopping, min(boundary, burst_at)) and self._clock() >= burst_at:
                data += self._burst()
                period = max(period + self._period_s, self._clock() - self._period_s)
                burst_at = self._moment_in(period)
            if self._clock() >= boundary:
                yield Interval(start, self._clock(), data)
                start, data = self._clock(), b""
        if data or self.stopping:
            yield Interval(start, self._clock(), data)

    def _moment_in(self, period: float) -> float:
        return period + self._draws.random() * (self._period_s - self._burst_s)

    def _burst(self) -> bytes:
        run = self._start(lambda: self.stopping)
        if not run.ready:
            if self.stopping or not self._process.alive():
                return b""
            raise CannotSample(self._process.pid, run.complaint())
        self._wait(lambda: self.stopping or run.exited is not None, run.ready + self._burst_s)
        self._finish(run)
        return run.take()
