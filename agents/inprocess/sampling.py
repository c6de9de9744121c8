"""The sampling thread: stacks of the other threads at random moments, handed over interval by interval."""

from __future__ import annotations

import logging
import math
import random
import sys
import threading
import time
from collections.abc import Callable, Collection

from agents.inprocess.cpu import LOOK_S, choose_running, read_clocks
from agents.inprocess.messages import Interval
from agents.inprocess.options import Options
from agents.inprocess.stacks import RawStack, StackReader
from agents.inprocess.switching import SwitchInterval

log = logging.getLogger("smidgen")

SHORTEST_SHARE = 0.25
"""A first interval shorter than this share of the others is joined with the next one."""

LARGEST_GAP_S = 1.0
"""An interval begins where the one before ended, unless the clock is farther away than this."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Pause after a failure, which doubles with every failure in a row up to the second number."""

_COST_MEMORY = 0.1  # weight of one sample in the mean cost
_FEWEST = 20  # samples after which the cost is known


class SamplerThread:
    """A daemon thread that samples until it is stopped; an error in it costs a line in the log and a pause.

    Args:
        options: Rate, interval, budget, and whether to count CPU or wall time.
        hand_over: Takes each interval; must not wait.
        others: Returns the identities of further threads that are not sampled.
    """

    def __init__(
        self, options: Options, hand_over: Callable[[Interval], None], others: Callable[[], Collection[int]]
    ) -> None:
        self._options = options
        self._hand_over = hand_over
        self._others = others
        self._rate_hz = options.rate_hz
        self._cost_s = 0.0
        self._samples = 0
        self._since = 0.0  # when the interval began, in epoch seconds
        self._stacks: dict[RawStack, int] = {}
        self._reader = StackReader()
        self._random = random.Random()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smidgen-sampler", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Hand over the interval that has begun, and end."""
        self._stopping.set()
        self._thread.join(timeout_s)

    @property
    def rate_hz(self) -> float:
        """The rate now, which the budget may have lowered."""
        return self._rate_hz

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            switching = SwitchInterval()
            try:
                while not self._stopping.is_set():
                    self._sample_interval(switching)
                    pause_s = FIRST_PAUSE_S
            except Exception as error:
                self._stacks = {}
                text = "sampling failed, and starts again in %.0f s: %s: %s"
                log.warning(text, pause_s, type(error).__name__, error)
            finally:
                switching.restore()
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _sample_interval(self, switching: SwitchInterval) -> None:
        now, rate_hz = time.time(), self._rate_hz
        if abs(now - self._since) > LARGEST_GAP_S:  # else intervals join
            self._since = now
        start, end = self._since, interval_end(self._since, self._options.interval_s)
        seconds = end - now
        began = at = time.monotonic()
        while True:
            # Random pauses of mean 1/rate are not in step with timers and loops.
            at = max(at + self._random.uniform(0, 2 / rate_hz), time.monotonic())
            if self._stopping.wait(min(at, began + seconds) - time.monotonic()) or at >= began + seconds:
                break
            before = time.thread_time()
            self._sample(switching)
            self._note_cost(time.thread_time() - before)
        stacks, self._stacks = self._stacks, {}
        self._since = end if at >= began + seconds else now + time.monotonic() - began
        self._hand_over(Interval(start, max(start, self._since), rate_hz, stacks))
        self._keep_budget()

    def _sample(self, switching: SwitchInterval) -> None:
        hidden = {threading.get_ident(), *self._others()}
        if self._options.wall:
            chosen = [thread for thread in sys._current_frames() if thread not in hidden]
        else:
            before, first = read_clocks(hidden), time.monotonic_ns()
            time.sleep(LOOK_S)
            after, second = read_clocks(hidden), time.monotonic_ns()
            chosen, busy = choose_running(before, after, second - first, self._random.random)
            switching.note(busy)
        for stack in self._reader.read_all(chosen) if chosen else ():
            self._stacks[stack] = self._stacks.get(stack, 0) + 1

    def _note_cost(self, cost_s: float) -> None:
        self._samples += 1
        weight = max(_COST_MEMORY, 1 / self._samples)
        self._cost_s += weight * (cost_s - self._cost_s)

    def _keep_budget(self) -> None:
        if self._samples < _FEWEST:
            return
        rate_hz = affordable_hz(self._options.rate_hz, self._rate_hz, self._cost_s, self._options.budget)
        if rate_hz != self._rate_hz:
            log.warning(
                "a sample costs %.2f ms of CPU: %g a second instead of %g, to take at most %g %% of a core",
                1000 * self._cost_s, rate_hz, self._rate_hz, 100 * self._options.budget,
            )  # fmt: skip
            self._rate_hz = rate_hz


def interval_end(start: float, interval_s: float) -> float:
    """Return the multiple of the interval at which one that begins at ``start`` (epoch seconds) ends."""
    end = (math.floor(start / interval_s) + 1) * interval_s
    return end + interval_s if end - start < SHORTEST_SHARE * interval_s else end


def affordable_hz(asked_hz: float, rate_hz: float, cost_s: float, budget: float) -> float:
    """Return the rate of the next interval: what is asked for, or a half, a quarter … within the budget.

    The rate rises only if the doubled rate takes at most half of the budget, so that it does not oscillate.

    Args:
        asked_hz: The rate that was asked for.
        rate_hz: The present rate.
        cost_s: CPU time of a sample.
        budget: Share of one CPU.
    """
    while rate_hz * cost_s > budget and rate_hz > 0.01:
        rate_hz /= 2
    while rate_hz < asked_hz and 2 * rate_hz * cost_s <= budget / 2:
        rate_hz = min(2 * rate_hz, asked_hz)
    return rate_hz
