"""Service-level metrics that follow from cost and load, and set-up metrics that may explain regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loadgen.fleet.inject.effects import Injected
from loadgen.fleet.load import LoadFactors, wander
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import FloatArray, MetricPoints

_SETUP = ("setup.algorithm_b_share", "setup.compression_level", "setup.region_east_share")
"""Set-up metrics that explain nothing: each takes a new value from time to time, for no reason."""

_SAID: Mapping[str, tuple[str, str]] = {
    "throughput": ("{request}/s", "throughput"),
    "requests_per_server": ("{request}/s", "demand"),
    "latency_p50_ms": ("ms", "latency"),
    "latency_p99_ms": ("ms", "latency"),
    "error_rate": ("1", "errors"),
    "cpu_utilisation": ("1", "utilization"),
    "memory_mb": ("MBy", "usage"),
}
"""Unit and kind of each metric."""

_NOISE = {
    "throughput": 0.01,
    "requests_per_server": 0.01,
    "latency_p50_ms": 0.01,
    "latency_p99_ms": 0.03,
    "error_rate": 0.05,
    "cpu_utilisation": 0.005,
    "memory_mb": 0.01,
}
"""Relative standard deviation of each metric, half of it wandering slowly."""


def build_metrics(
    scenario: Scenario,
    injected: Sequence[Injected],
    load: LoadFactors,
    total_cost: FloatArray,
    timeline: Timeline,
    streams: Streams,
) -> tuple[MetricPoints, ...]:
    """Draw one point per metric and window; windows without data are left out.

    Throughput is a server's maximum, so it falls as requests cost more; latency grows with utilisation. So
    both follow every injection of cost, besides injections into themselves.
    """
    mean_cpu = sum(g.share * g.cpu for g in scenario.servers.generations)
    crowding = load.servers.sum(axis=0).mean() / np.maximum(load.servers.sum(axis=0), 1.0)
    busy = np.clip(mean_cpu * load.cycle * total_cost * crowding, 0.0, 0.97)
    idle = (1 - mean_cpu) / (1 - busy)
    levels: dict[str, FloatArray] = {
        "throughput": 500.0 / total_cost,
        "requests_per_server": 500.0 * mean_cpu * load.cycle * crowding,
        "latency_p50_ms": 40.0 * total_cost * idle**0.3,
        "latency_p99_ms": 250.0 * total_cost * idle**0.6,
        "error_rate": 0.0005 * idle**0.5,
        "cpu_utilisation": busy,
        "memory_mb": 3000.0 * (1 + 0.02 * load.cycle),
    }
    for injection in injected:
        for effect in injection.metrics:
            levels[effect.metric] = levels[effect.metric] * (1 + effect.gain * effect.profile)
    values = {name: _noisy(scenario, name, level, timeline, streams) for name, level in levels.items()}
    setup = [
        ("servers", load.servers.sum(axis=0)),
        *((name, _steps(streams, name, timeline)) for name in _SETUP),
        *((effect.metric, effect.profile) for injection in injected for effect in injection.setup),
    ]
    service, present = scenario.service, load.present
    return (
        *(
            MetricPoints(service, n, timeline.starts[present], v[present], False, *_SAID[n])
            for n, v in values.items()
        ),
        *(MetricPoints(service, n, timeline.starts[present], v[present], True) for n, v in setup),
    )


def _noisy(
    scenario: Scenario, name: str, level: FloatArray, timeline: Timeline, streams: Streams
) -> FloatArray:
    rng = streams.of("metric", name)
    sd = _NOISE[name] / np.sqrt(2)
    noise = rng.standard_normal(timeline.windows) * sd + wander(rng, sd, scenario.noise, timeline)
    result: FloatArray = level * np.exp(noise)
    return result


def _steps(streams: Streams, name: str, timeline: Timeline) -> FloatArray:
    rng = streams.of("metric", name)
    values = rng.random(6)
    turns = np.sort(rng.uniform(timeline.start, timeline.end, size=5))
    result: FloatArray = values[np.searchsorted(turns, timeline.middles)]
    return result
