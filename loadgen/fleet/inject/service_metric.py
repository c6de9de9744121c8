"""Regressions that show in a service-level metric alone: throughput, latency, errors."""

from __future__ import annotations

from loadgen.fleet.inject.effects import Injected, MetricEffect
from loadgen.fleet.inject.order import Order, truth_row
from loadgen.fleet.inject.site import Site
from pipeline.model import SeriesKey

METRIC_OF = {"throughput": "throughput", "latency": "latency_p99_ms", "errors": "error_rate"}
"""Type → the metric that worsens."""


def inject_service_metric(order: Order, site: Site) -> Injected:
    """Worsen one service-level metric by a relative step; for it ``delta`` in the truth is relative."""
    size, (at, by_config) = order.size(), order.deployed(site.timeline)
    metric = METRIC_OF[order.type]
    gain = -size if order.type == "throughput" else size
    profile = site.timeline.step(at)
    place = int(order.rng.integers(len(site.subroutines)))
    cause, setup = order.cause(site, at, profile, [site.subroutines[place]], by_config=by_config)
    row = truth_row(
        order,
        site,
        "regression",
        [(SeriesKey("service", metric), gain)],
        start=at,
        cause=cause,
        subkind=f"service_{order.type}",
        direction="down" if gain < 0 else "up",
    )
    return Injected(
        (row,), metrics=(MetricEffect(metric, gain, profile),), changes=cause.changes, setup=setup
    )
