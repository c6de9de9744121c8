"""A program to be sampled: threads that work in units of about a millisecond, 23 frames deep.

Run as ``python -m loadgen.bench.sampled_program SECONDS THREADS RATE_HZ``; a rate above 0 starts the sampler
in it. It prints units done, the duration of the slow ones, and CPU time of the program and of its sampler.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import agents.inprocess as smidgen_sampler
from agents.inprocess.cpu import thread_cpu_ns

DEPTH = 20
STEPS = 12_000  # about a millisecond


def _descend(depth: int) -> int:
    return _descend(depth - 1) if depth else sum(range(STEPS))


def _work(until: float, durations: list[float]) -> None:
    while (began := time.monotonic()) < until:
        _descend(DEPTH)
        durations.append(time.monotonic() - began)


def run(seconds: float, threads: int, rate_hz: float) -> dict[str, float]:
    """Work and return figures: units, p99_s, p999_s, cpu_s, sampler_s."""
    sent: list[int] = []
    if rate_hz:
        smidgen_sampler.start(
            "bench", rate_hz=rate_hz, interval=2.0, budget=1.0, send_to=lambda value: sent.append(len(value))
        )
    durations: list[float] = []
    until = time.monotonic() + seconds
    working = [threading.Thread(target=_work, args=(until, durations)) for _ in range(threads)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    own = [each for each in threading.enumerate() if each.name.startswith("smidgen-")]
    sampler_s = sum(thread_cpu_ns(each.native_id or 0) for each in own) / 1e9
    smidgen_sampler.stop()
    durations.sort()
    return {
        "units": len(durations),
        "p99_s": durations[int(0.99 * len(durations))],
        "p999_s": durations[int(0.999 * len(durations))],
        "cpu_s": time.process_time(),
        "sampler_s": sampler_s,
    }


if __name__ == "__main__":
    print(json.dumps(run(float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))))
