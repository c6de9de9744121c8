"""Threads on CPU at the moment of a sample, by two readings of the kernel's clock of each thread.

A sampler inside the process cannot see which thread ran before it got the interpreter's lock. A thread that
used CPU since the last sample may wait by now: its CPU would be charged to the function in which it waits.
So a sample reads the clocks twice, a tenth of a millisecond apart, and a thread counts with the probability
that it was on CPU in between. The mean is unbiased, also for bursts shorter than that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping

LOOK_S = 0.0001
"""Least time between the two readings; the scheduler and the interpreter's lock add as much again."""


class NoThreadClock(Exception):
    """The system has no clock of a thread's CPU."""


def thread_cpu_ns(native_id: int) -> int:
    """Return the CPU time of a thread of this process, in nanoseconds.

    The clock's number is made as Linux does for ``pthread_getcpuclockid``, from the thread's kernel id, which
    is safe also if the thread has just ended.

    Raises:
        OSError: there is no such thread.
    """
    return time.clock_gettime_ns((~native_id << 3) | 6)


def check_thread_clock() -> None:
    """Check that CPU can be measured here.

    Raises:
        NoThreadClock: it cannot.
    """
    try:
        thread_cpu_ns(threading.get_native_id())
    except (OSError, AttributeError) as error:
        raise NoThreadClock(str(error)) from None


def read_clocks(except_for: Collection[int] = ()) -> dict[int, int]:
    """Return the CPU time of the threads that Python knows, in nanoseconds, by their identity."""
    clocks: dict[int, int] = {}
    main = threading.main_thread()
    for thread in threading.enumerate():
        native_id = os.getpid() if thread is main else thread.native_id  # after a fork Python has the old id
        if thread.ident and native_id and thread.ident not in except_for:
            try:
                clocks[thread.ident] = thread_cpu_ns(native_id)
            except OSError:  # it has just ended
                continue
    return clocks


def choose_running(
    before: Mapping[int, int], after: Mapping[int, int], elapsed_ns: int, draw: Callable[[], float]
) -> tuple[list[int], int]:
    """Return the threads that count in a sample, and how many were on CPU at all.

    Args:
        before: CPU time of each thread at the first reading, in nanoseconds.
        after: CPU time at the second reading.
        elapsed_ns: Wall time between the readings.
        draw: A uniform random number from 0 to 1.
    """
    chosen: list[int] = []
    busy = 0
    for thread, later in after.items():
        spent = later - before.get(thread, later)
        if spent > elapsed_ns // 20:
            busy += 1
        if spent > 0 and draw() < spent / elapsed_ns:
            chosen.append(thread)
    return chosen, busy
