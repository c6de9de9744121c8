"""What counts as CPU, by type, unit and period."""

from __future__ import annotations

import pytest

from agents.profiles.formats import Measure
from agents.profiles.formats.cpu import Clock, clock_of, usual_value

TIME = "nanoseconds"


@pytest.mark.parametrize(
    ("type_", "unit", "period_type", "clock"),
    [
        ("samples", "count", "", "cpu"),  # collapsed stacks, and most agents
        ("samples", "count", "cpu", "cpu"),  # Go, gperftools, eBPF profilers
        ("sample", "count", "wall", "wall"),  # Node.js
        ("cpu", TIME, "cpu", "cpu"),
        ("cpu", "microseconds", "", "cpu"),
        ("cpu-time", TIME, "", "cpu"),  # Datadog
        ("cpu-samples", "count", "", "cpu"),
        ("process_cpu", TIME, "", "cpu"),
        ("itimer", TIME, "", "cpu"),
        ("cycles", "count", "cycles", "cpu"),
        ("cycles_sample", "count", "", "cpu"),  # perf_to_profile
        ("cpu_core/cycles/", "count", "", "cpu"),
        ("task-clock", "count", "", "cpu"),
        ("weight", "seconds", "", "cpu"),  # speedscope says no more
        ("wall", TIME, "", "wall"),
        ("wallclock", TIME, "samples", "wall"),  # Parca's threads that wait
        ("wall-time", TIME, "", "wall"),
        ("samples", "count", "off_cpu", ""),
        ("events", "count", "", ""),  # hits of a probe
        ("events", TIME, "", ""),  # threads that wait
        ("events", "count", "cpu", "cpu"),
        ("off_cpu", TIME, "", ""),
        ("alloc_objects", "count", "space", ""),
        ("alloc_space", "bytes", "space", ""),
        ("inuse_space", "bytes", "", ""),
        ("samples", "bytes", "", ""),
        ("exception-samples", "count", "", ""),
        ("lock-acquire-wait", TIME, "", ""),
        ("contentions", "count", "contentions", ""),
        ("delay", TIME, "contentions", ""),
        ("goroutine", "count", "goroutine", ""),
        ("goroutines", "count", "", ""),
        ("mutex_duration", TIME, "", ""),
        ("page-faults", "count", "", ""),
        ("cache-misses", "count", "", ""),
        ("sched:sched_switch", "count", "", ""),
        ("gpu-time", TIME, "", ""),
        ("weight", "bytes", "", ""),
    ],
)
def test_the_clock_of_a_value(type_: str, unit: str, period_type: str, clock: Clock) -> None:
    assert clock_of(Measure(type_, unit, 0.0, period_type)) == clock


@pytest.mark.parametrize(
    ("measures", "default", "chosen"),
    [
        pytest.param([("wall", TIME), ("cpu", TIME), ("alloc_space", "bytes")], "wall", 1, id="CPU first"),
        pytest.param([("cpu", TIME), ("samples", "count")], "", 1, id="counts before times"),
        pytest.param([("cpu-samples", "count"), ("cpu-time", TIME)], "", 1, id="Datadog's time"),
        pytest.param(
            [("alloc_space", "bytes"), ("wall", TIME)], "alloc_space", 1, id="the wall where no CPU is"
        ),
        pytest.param(
            [("alloc_objects", "count"), ("inuse_space", "bytes")], "inuse_space", 1, id="the default"
        ),
        pytest.param([("alloc_objects", "count"), ("inuse_space", "bytes")], "", 0, id="or the first"),
    ],
)
def test_the_usual_value(measures: list[tuple[str, str]], default: str, chosen: int) -> None:
    assert usual_value([Measure(*measure) for measure in measures], default) == chosen
