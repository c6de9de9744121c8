"""Program to be sampled: threads that work in units of about a millisecond, 23 frames deep.

Run as ``python -m loadgen.bench.sampled_program SECONDS THREADS RATE_HZ``. With a rate above 0 the sampler
inside is on and off in turn, a quarter of a second each, since the speed of a shared machine varies far more
from run to run than by any sampler. It prints figures as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import smidgen.inprocess as smidgen_sampler
from agents.inprocess.cpu import thread_cpu_ns

DEPTH = 20
STEPS = 12_000  # about a millisecond
PHASE_S = 0.25


def _descend(depth: int) -> int:
    return _descend(depth - 1) if depth else sum(range(STEPS))


def _work(until: float, durations: list[float]) -> None:
    while (began := time.monotonic()) < until:
        _descend(DEPTH)
        durations.append(time.monotonic() - began)


def _work_for(seconds: float, threads: int) -> list[float]:
    """Work in some threads; return the durations of all units."""
    durations: list[float] = []
    until = time.monotonic() + seconds
    working = [threading.Thread(target=_work, args=(until, durations)) for _ in range(threads)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    return durations


def _work_sampled(seconds: float, threads: int, rate_hz: float) -> tuple[list[float], float]:
    """Work under the sampler; return the durations of units, and the CPU time of the sampler's threads."""
    smidgen_sampler.start("bench", rate_hz=rate_hz, interval=60.0, budget=1.0, send_to=len)
    durations = _work_for(seconds, threads)
    own = [thread for thread in threading.enumerate() if thread.name.startswith("smidgen-")]
    sampler_s = sum(thread_cpu_ns(thread.native_id or 0) for thread in own) / 1e9
    smidgen_sampler.stop()
    return durations, sampler_s


def run(seconds: float, threads: int, rate_hz: float) -> dict[str, Any]:
    """Work and return figures.

    Returns:
        With a rate ``losses`` (share of units lost in each pair of phases), ``p99`` and ``p999`` (how much
        longer such units take), and ``sampler_s`` (the sampler's CPU time a second); always ``cpu_s``.
    """
    figures: dict[str, Any] = {}
    if rate_hz:
        losses, off, on, sampler_s = [], list[float](), list[float](), 0.0
        for _ in range(max(1, round(seconds / PHASE_S / 2))):
            without = _work_for(PHASE_S, threads)
            sampled, cost_s = _work_sampled(PHASE_S, threads, rate_hz)
            losses.append(1 - len(sampled) / len(without))
            off, on, sampler_s = off + without, on + sampled, sampler_s + cost_s
        figures = {
            "losses": losses,
            "p99": _at(on, 0.99) / _at(off, 0.99) - 1,
            "p999": _at(on, 0.999) / _at(off, 0.999) - 1,
            "sampler_s": sampler_s / (PHASE_S * len(losses)),
        }
    else:
        _work_for(seconds, threads)
    return {**figures, "cpu_s": time.process_time()}


def _at(durations: list[float], share: float) -> float:
    return sorted(durations)[int(share * len(durations))]


if __name__ == "__main__":
    print(json.dumps(run(float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))))
