"""Sampling of one process in a thread of its own, at a rate that may change while it goes on."""

from __future__ import annotations

import logging
import math
import random
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agents.host.bursts import BURST_HZ, BurstSampler
from agents.host.discovery import MatchedProcess
from agents.host.parts import Part, with_endpoint
from agents.profiles.formats.collapsed import parse_collapsed
from agents.sampling.kernels import AutoKernel, Kernel, Sampling, make_kernel
from agents.sampling.process import ExistingProcess
from agents.sampling.sampler import Interval, ProcessSampler, stop_limit_s
from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError, SmidgenError

log = logging.getLogger(__name__)

ORPHAN_S = 60
"""Most seconds that a kernel outlives a killed agent, besides two intervals."""


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Settings of the samplings of all processes. ``folder`` is for the files of kernels."""

    folder: Path
    interval_s: float
    clock: Clock
    rate_of: Callable[[MatchedProcess], float]
    take: Callable[[Part], None]  # called from threads
    wake: Callable[[], None]  # likewise, at the end of a sampling


class ProcessSampling:
    """Samples a process until it ends or ``stop`` is called; ``failure`` says why it could not."""

    def __init__(self, found: MatchedProcess, settings: SamplingSettings) -> None:
        self.matched = found
        self.failure = ""
        self.rate_hz = settings.rate_of(found)
        self._settings = settings
        self._stopping = False
        self._sampler: ProcessSampler | None = None
        self._kernel: Kernel | None = None
        self._thread = threading.Thread(target=self._run, name=f"process {found.pid}", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the sampling to end; samples taken so far are still handed over."""
        self._stopping = True
        if self._sampler:
            self._sampler.stop()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the sampling, with a timeout in seconds."""
        self._thread.join(timeout_s)

    @property
    def kernel(self) -> str:
        """Name of the kernel in use; that of the rule until one was chosen."""
        chosen = self._kernel.chosen if isinstance(self._kernel, AutoKernel) else ""
        return chosen or self.matched.target.how.kernel

    @property
    def ended(self) -> bool:
        """True once it samples no more."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping and self._sample_at_one_rate():
                self.rate_hz = self._settings.rate_of(self.matched)
        except SmidgenError as error:
            self.failure = getattr(error, "reason", str(error))
        except Exception as error:  # whatever it is, it is tried again later
            log.exception("sampling of process %d failed", self.matched.pid)
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            self._settings.wake()

    def _sample_at_one_rate(self) -> bool:
        """Sample until the rate changes or the process ends; return True if the rate changed."""
        try:
            process = ExistingProcess(self.matched.pid)
        except ConfigError:
            return False  # it has ended meanwhile
        self._sampler = self._make_sampler(process)
        if self._stopping:
            self._sampler.stop()
        with closing(self._sampler.intervals()) as intervals:
            for interval in intervals:
                self._settings.take(self._part(interval))
                if self._settings.rate_of(self.matched) != self.rate_hz:
                    return True
        return False

    def _make_sampler(self, process: ExistingProcess) -> ProcessSampler:
        settings, how = self._settings, self.matched.target.how
        folder = settings.folder / f"{self.matched.pid}-{self.matched.key[1]:.2f}"
        folder.mkdir(exist_ok=True)
        is_burst = self.rate_hz < 1
        sampling = Sampling(
            folder=folder,
            clock=settings.clock,
            rate_hz=BURST_HZ if is_burst else int(self.rate_hz),
            longest_s=math.ceil(2 * settings.interval_s) + ORPHAN_S,
            native=how.native,
            idle=how.idle,
            subprocesses=how.subprocesses,
            nonblocking=how.nonblocking,
            call_graph=how.call_graph,
        )
        kernel = self._kernel = make_kernel(how.kernel, sampling)
        if is_burst:
            return BurstSampler(
                kernel,
                process,
                self.rate_hz,
                interval_s=settings.interval_s,
                clock=settings.clock,
                draws=random.Random(),
            )
        return ProcessSampler(
            kernel,
            process,
            interval_s=settings.interval_s,
            clock=settings.clock,
            attach_s=0.0,  # sampling is tried again later, with growing pauses
            stop_s=stop_limit_s(self.rate_hz),
        )

    def _part(self, interval: Interval) -> Part:
        stacks = parse_collapsed(interval.data).stacks
        target = self.matched.target
        return Part(
            target.identity,
            self.rate_hz,
            interval.start,
            interval.end,
            with_endpoint(stacks, target.endpoint),
            target.how.adaptive,
        )
