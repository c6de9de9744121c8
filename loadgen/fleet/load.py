"""Load of the fleet over time, over servers and over endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from loadgen.fleet.inject.effects import EndpointEffect, HostEffect
from loadgen.fleet.scenario import LoadSpec, NoiseSpec, PeriodSpec, Scenario, ServersSpec
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import BoolArray, FloatArray
from pipeline.model.units import DAY_S, WEEK_S

_PEAK_S = 15 * 3600.0  # load is highest at three in the afternoon, UTC
_WEEKEND_S = 5 * DAY_S  # from Monday; the epoch began on a Thursday
_EPOCH_MONDAY_S = 4 * DAY_S


@dataclass(frozen=True, slots=True)
class LoadFactors:
    """Factors that turn costs of stacks into expected samples.

    Expected samples of a stack in a window are Σ over generations of ``exposure`` × the stack's cost there,
    times the traffic of its endpoint.
    """

    cycle: FloatArray  # (windows,) load relative to its mean
    servers: FloatArray  # (generations, windows) servers that report
    exposure: FloatArray  # (generations, windows) samples of the whole service
    traffic: dict[str, FloatArray]  # endpoint → (windows,)
    present: BoolArray  # (windows,) whether anything arrived
    dispersion: FloatArray  # (windows,) relative excess of the variance of counts over their mean


def build_load(
    scenario: Scenario,
    timeline: Timeline,
    endpoints: Sequence[str],
    streams: Streams,
    *,
    shifts: Sequence[EndpointEffect] = (),
    outages: Sequence[HostEffect] = (),
) -> LoadFactors:
    """Draw a fleet's load.

    A server's utilisation in a window has mean μ and variance σ² (FBDetect §5.1). If its k stacks vary
    independently, each stack's share of that variance is its share of the cost, and counts over servers
    with N expected samples each have a variance of (1 + N σ²/μ²) times their mean.
    """
    cycle = cycle_of(scenario.load, timeline)
    servers = _servers(scenario.servers, timeline, streams, outages)
    generations = scenario.servers.generations
    mean_cpu = sum(g.share * g.cpu for g in generations)
    per_server = scenario.samples_per_minute * scenario.window_s / 60
    cpu = np.array([g.cpu for g in generations])[:, None]
    exposure = servers * per_server * cpu / mean_cpu * cycle
    excess = np.array([per_server * g.cpu / mean_cpu * g.variance / g.cpu**2 for g in generations])
    weights = exposure / np.maximum(exposure.sum(axis=0), 1e-12)
    present = np.ones(timeline.windows, dtype=np.bool_)
    gaps = streams.of("gaps").choice(
        timeline.windows, size=min(scenario.servers.missing_windows, timeline.windows), replace=False
    )
    present[gaps] = False
    present[cycle == 0] = False
    present[np.arange(timeline.windows) % scenario.load.every != 0] = False
    return LoadFactors(
        cycle=cycle,
        servers=servers,
        exposure=exposure,
        traffic=_traffic(scenario, timeline, endpoints, streams, shifts),
        present=present,
        dispersion=scenario.noise.dispersion * (excess @ weights),
    )


def wander(rng: np.random.Generator, sd: float, noise: NoiseSpec, timeline: Timeline) -> FloatArray:
    """Return autocorrelated noise around 0 with standard deviation ``sd``: (windows,)."""
    rho = float(np.exp(-timeline.window_s / noise.correlation_s))
    steps = rng.standard_normal(timeline.windows) * sd
    steps[1:] *= np.sqrt(1 - rho**2)
    result: FloatArray = lfilter([1.0], [1.0, -rho], steps)
    return result


def cycle_of(spec: LoadSpec, timeline: Timeline) -> FloatArray:
    """Return a service's load relative to its mean: (windows,)."""
    middles = _local(spec, timeline)
    daily = 1 + spec.daily * np.cos(2 * np.pi * (middles - _PEAK_S) / DAY_S)
    result: FloatArray = daily * (1 - spec.weekly * _weekend(middles))
    hour = middles % DAY_S / 3600.0
    result *= (hour >= spec.hours[0]) & (hour < spec.hours[1])
    for period in spec.periods:
        result *= 1 + (period.level - 1) * _within(period, timeline)
    return result


def _local(spec: LoadSpec, timeline: Timeline) -> FloatArray:
    """Return the middle of every window by the users' clock: (windows,)."""
    if spec.clock_change is None:
        return timeline.middles
    moved = timeline.middles >= timeline.at(spec.clock_change)
    return np.asarray(timeline.middles + 3600.0 * moved, dtype=np.float64)


def _within(period: PeriodSpec, timeline: Timeline) -> FloatArray:
    """Return 1 for windows that begin within a period, else 0: (windows,)."""
    begin = timeline.at(period.at)
    inside = (timeline.starts >= begin) & (timeline.starts < begin + period.length_s)
    return inside.astype(np.float64)


def _weekend(moments: FloatArray) -> FloatArray:
    return ((moments - _EPOCH_MONDAY_S) % WEEK_S >= _WEEKEND_S).astype(np.float64)


def _servers(
    spec: ServersSpec, timeline: Timeline, streams: Streams, outages: Sequence[HostEffect]
) -> FloatArray:
    rng = streams.of("servers")
    whole = np.array([round(spec.count * g.share) for g in spec.generations])
    reporting: FloatArray = rng.binomial(
        whole[:, None], 1 - spec.missing, size=(len(whole), timeline.windows)
    ).astype(np.float64)
    for outage in outages:
        reporting *= 1 - outage.lost * outage.profile
    return reporting


def _traffic(
    scenario: Scenario,
    timeline: Timeline,
    endpoints: Sequence[str],
    streams: Streams,
    shifts: Sequence[EndpointEffect],
) -> dict[str, FloatArray]:
    """Draw each endpoint's traffic, with its own daily phase, weekends and wandering."""
    traffic = {}
    for endpoint in endpoints:
        rng = streams.of("traffic", endpoint)
        daily, weekly = rng.random() * scenario.load.mix_daily, rng.normal() * scenario.load.mix_weekly
        phase = rng.random() * DAY_S
        middles = _local(scenario.load, timeline)
        own = 1 + daily * np.cos(2 * np.pi * (middles - phase) / DAY_S)
        own = own * (1 + weekly * _weekend(middles))
        traffic[endpoint] = own * np.exp(wander(rng, scenario.noise.mix_drift, scenario.noise, timeline))
        for number, period in enumerate(scenario.load.periods):
            drawn = streams.of("period", endpoint, str(number)).standard_normal()
            traffic[endpoint] *= np.exp(period.mix * drawn * _within(period, timeline))
    for shift in shifts:
        traffic[shift.endpoint] = traffic[shift.endpoint] * (1 + shift.gain * shift.profile)
    return traffic
