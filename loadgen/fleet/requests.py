"""Requests of a simulated service by endpoint, as its access logs count them."""

from __future__ import annotations

import numpy as np

from loadgen.fleet.load import LoadFactors
from loadgen.fleet.scenario import Scenario
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.model import RequestCounts, TypeCounts


def draw_requests(
    scenario: Scenario, timeline: Timeline, load: LoadFactors, streams: Streams
) -> tuple[RequestCounts, ...]:
    """Draw the number of requests of each endpoint in every window; none if a scenario has no access log."""
    if not scenario.load.requests:
        return ()
    usual = scenario.load.requests * timeline.window_s / 60
    work = load.servers.sum(axis=0) / scenario.servers.count * load.cycle * load.present
    counts = {
        endpoint: streams.of("requests", endpoint).poisson(usual * work * traffic)
        for endpoint, traffic in load.traffic.items()
    }
    return tuple(
        RequestCounts(
            service=scenario.service,
            host="",
            start=float(start),
            period_s=timeline.window_s,
            types=tuple(TypeCounts(name, int(many[window])) for name, many in counts.items() if many[window]),
        )
        for window, start in enumerate(np.asarray(timeline.starts))
        if load.present[window]
    )
