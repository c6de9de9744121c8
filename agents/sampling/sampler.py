"""Sampling of a process interval after interval, without a gap between them.

A run that streams samples the process to its end: its stacks are taken at every multiple of the interval.
Other kernels write their stacks when a run of them ends, so every interval needs a run of its own. Just
before an interval is over the next run is started, and as soon as that one samples, the one before is asked
to end: the process is sampled throughout, and the moment of handing over is the true end of one interval
and start of the next. Runs are started so that this moment falls on a multiple of the interval.
"""

from __future__ import annotations

import logging
import math
import queue
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from agents.sampling.kernels import Kernel, KernelRun, SamplerError
from agents.sampling.process import SampledProcess
from pipeline.model.clock import Clock

log = logging.getLogger(__name__)

START_S = 10.0
"""Seconds that a process may take until it can be sampled, and a run to become ready."""

STOP_S = 5.0
"""Seconds that a run may take to write its stacks after its last sample."""

STOP_PAUSES = 10
"""Pauses between samples that may pass before that: py-spy draws them, and at 1 Hz one in 150 lasts 5 s."""

ATTACH_S = 2.0
"""Seconds to try to attach to a process that somebody else started, perhaps only just now."""

RETRY_S = 0.05
MAX_FAILURES = 5
"""Attempts to take up sampling again after a run that ended on a living process."""

SHORTEST_SHARE = 0.25
"""An interval that would begin this little before a boundary lasts until the one after it."""


def stop_limit_s(rate_hz: float) -> float:
    """Return how long a run at some rate may take to end after it was asked to."""
    return STOP_S + STOP_PAUSES / rate_hz


@dataclass(frozen=True, slots=True)
class Interval:
    """Collapsed stacks sampled from ``start`` to ``end``, in epoch seconds."""

    start: float
    end: float
    data: bytes


class CannotSample(SamplerError):
    """A process cannot be sampled; ``reason`` does not name it."""

    def __init__(self, pid: int, reason: str, *, more: str = "") -> None:
        super().__init__(f"cannot sample process {pid}{more}: {reason}")
        self.reason = reason


class ProcessSampler:
    """Yields intervals until the process ends or ``stop`` is called.

    ``attach_s`` is how long attaching is tried to a process that somebody else started, ``stop_s`` how long a
    run may take to write its stacks after it was asked to end.
    """

    def __init__(
        self,
        kernel: Kernel,
        process: SampledProcess,
        *,
        interval_s: float,
        clock: Clock,
        attach_s: float = ATTACH_S,
        stop_s: float = STOP_S,
    ) -> None:
        self._kernel = kernel
        self._process = process
        self._interval_s = interval_s
        self._clock = clock
        self._attach_s = attach_s
        self._stop_s = stop_s
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.stopping = False  # whether it was asked to stop
        self._lead_s = 0.0  # how long the last run took to become ready

    def stop(self) -> None:
        """End sampling, from a thread or a signal handler; what was sampled so far is still yielded."""
        self.stopping = True
        self._wakes.put(None)

    def intervals(self) -> Generator[Interval, None, None]:
        """Yield every interval once it is over.

        Raises:
            SamplerError: the process cannot be sampled, or not any more.
        """
        current, following = self._first_run(), None
        try:
            while current:
                if current.streams:
                    yield from self._stream(current)
                    current = self._resume(current)
                    continue
                following = self._hand_over(current)
                end = self._clock() if following is None else following.ready
                self._finish(current)
                yield Interval(current.ready, max(current.ready, end), current.take())
                current, following = following or self._resume(current), None
        finally:
            for run in (current, following):
                if run and run.exited is None:
                    run.kill()

    def _stream(self, run: KernelRun) -> Iterator[Interval]:
        """Yield the intervals of a run that streams, until it ended."""
        start = run.ready
        while not self._wait(lambda: self._over(run), self._boundary(start)):
            end = max(start, self._clock())
            yield Interval(start, end, run.take())
            start = end
        end = max(start, self._clock())
        self._finish(run)
        yield Interval(start, end, run.take())

    def _over(self, run: KernelRun) -> bool:
        return self.stopping or run.exited is not None

    def _first_run(self) -> KernelRun | None:
        """Start the first run, repeatedly while the process is still starting; None if there is no more."""
        deadline = self._clock() + (START_S if self._process.starting else self._attach_s)
        reason = ""
        while True:
            run = self._start(lambda: self.stopping)
            if run.ready:
                return run
            if self.stopping:
                return None
            if self._process.starting and not self._process.alive():
                log.warning("nothing was sampled: the command ended first (%s)", reason or run.complaint())
                return None
            reason = run.complaint()  # while the process lives; later it is just that it ended
            if self._clock() >= deadline or not self._process.alive():
                raise CannotSample(self._process.pid, reason)
            self._pause()

    def _resume(self, ended: KernelRun) -> KernelRun | None:
        """Take up sampling again if the last run ended though the process lives."""
        for _ in range(MAX_FAILURES):
            self._pause()  # a process that is just ending still looks alive for a moment
            if self.stopping or not self._process.alive():
                return None
            log.warning("sampling was interrupted (%s), starting again", ended.complaint())
            ended = self._start(lambda: self.stopping)
            if ended.ready:
                return ended
        raise CannotSample(self._process.pid, ended.complaint(), more=" any more")

    def _hand_over(self, current: KernelRun) -> KernelRun | None:
        """Wait for the interval's end; return the run that took over, None if sampling ended."""
        boundary = self._boundary(current.ready)
        while not self._wait(lambda: self._over(current), boundary - self._lead_s):
            following = self._start(lambda: self._over(current))
            if following.ready:
                return following
            if not self._over(current):
                log.warning("an interval was extended: %s", following.complaint())
                boundary = self._boundary(self._clock())
        return None

    def _start(self, over: Callable[[], bool]) -> KernelRun:
        """Start a run and wait until it samples; one that does not, in time or before ``over``, is ended."""
        started = self._clock()
        run = self._kernel.start(self._process.pid, lambda: self._wakes.put(None))
        self._wait(lambda: run.ready > 0 or run.exited is not None or over(), started + START_S)
        if run.ready:
            self._lead_s = min(max(run.ready - started, 0.0), self._interval_s / 2)
        else:
            run.kill()
            self._wait(lambda: run.exited is not None, self._clock() + STOP_S)
        return run

    def _finish(self, run: KernelRun) -> None:
        run.stop()
        if not self._wait(lambda: run.exited is not None, self._clock() + self._stop_s):
            log.warning("the kernel did not end in time: an interval is lost")
            run.kill()

    def _boundary(self, moment: float) -> float:
        """Return the multiple of the interval at which an interval begun at ``moment`` ends."""
        boundary = (math.floor(moment / self._interval_s) + 1) * self._interval_s
        short = boundary - moment < SHORTEST_SHARE * self._interval_s
        return boundary + self._interval_s if short else boundary

    def _pause(self) -> None:
        self._wait(lambda: self.stopping, self._clock() + RETRY_S)

    def _wait(self, done: Callable[[], bool], deadline: float) -> bool:
        """Wait until ``done`` or the deadline; return whether it is done."""
        while not done():
            remaining_s = deadline - self._clock()
            if remaining_s <= 0:
                return False
            try:
                self._wakes.get(timeout=remaining_s)
            except queue.Empty:
                continue
        return True
