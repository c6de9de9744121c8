"""A service whose new release makes one type of request cost more, as the stages see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.backtest.flow import Flow
from pipeline.messages.inputs import encode_change
from pipeline.messages.measurements import encode_metric_points
from pipeline.messages.requests import encode_requests
from pipeline.model import Change, MetricPoints, RequestCounts, RouteCall, RouteReach, TypeCounts
from pipeline.settings.config import Settings
from pipeline.storage.interface import Store

SERVICE = "orders"
PERIOD_S = 30.0
OLD = 160
NEW = 60
COSTLIER = "GET /orders/:id"
RISE = 0.4
CPU_S = {  # type → CPU seconds of one request
    **{COSTLIER: 0.004, "GET /": 0.0005, "GET /search": 0.006, "POST /orders": 0.009},
    **{"GET /orders": 0.003, "GET /health": 0.0001, "PUT /orders/:id/address": 0.005},
}
USUAL = (180, 400, 90, 40, 70, 60, 15)
"""Requests of each type in a period."""

_CALLS = (
    RouteCall("orders.views.show_order", "orders/views.py", 41),
    RouteCall("orders.pricing.total", "orders/pricing.py", 12),
    RouteCall("orders.pricing.<b>price</b>", "orders/pricing.py", 27),
)
_ROUTES = tuple(RouteReach(name) for name in ("GET /", "GET /search", "POST /orders", "GET /orders"))
CHANGES = (
    Change(
        id="5ca1ab1e0000",
        service=SERVICE,
        time=0.0,
        author="Ada Lovelace <ada@example.org>",
        title="Exact prices <script>alert(1)</script>",
        files=("orders/pricing.py",),
        subroutines=("orders.pricing.<b>price</b>",),
        content="orders/pricing.py\n-    return price\n+    return sum(parts(item))\norders/other.py\n+x",
        routes=(RouteReach("GET /orders/{id}", 0.2, 1 / 3, 2, 0.004, _CALLS), *_ROUTES),
    ),
    *(
        Change(
            id=f"c0ffee{number:06}",
            service=SERVICE,
            time=0.0,
            author="Grace Hopper",
            title=f"Tidy the search, part {number}",
            files=("orders/search.py",),
            subroutines=(f"orders.search.part{number}",),
            routes=(RouteReach("GET /orders/{id}"), *_ROUTES),
        )
        for number in range(6)
    ),
)


def release(store: Store, start: float) -> float:
    """Run the stages over old and new periods from ``start``, epoch seconds, into a store; return the end."""
    start = start // PERIOD_S * PERIOD_S
    periods = OLD + NEW
    rng = np.random.default_rng(5)
    drift = 1.0 + 0.3 * np.sin(np.arange(periods) / 25.0)
    busy = drift[:, None] * np.exp(0.2 * rng.standard_normal((periods, len(USUAL))))
    counts = rng.poisson(busy * USUAL)
    costs = np.array(list(CPU_S.values()))
    request_costs = np.tile(costs, (periods, 1))
    request_costs[OLD:, 0] *= 1.0 + RISE
    cpu = (0.2 + (counts * request_costs).sum(axis=1) / PERIOD_S) * (
        1.0 + 0.01 * rng.standard_normal(periods)
    )
    begun, end = start + OLD * PERIOD_S, start + periods * PERIOD_S
    flow = Flow(
        store,
        [],
        settings=Settings(),
        clock=lambda: end + 60.0,
        stream="test",
        stages=("aggregate", "releases", "dedup", "rootcause"),
    )
    flow.send("changes", [encode_change(replace(change, time=begun - 20.0)) for change in CHANGES])
    times = np.asarray(start + PERIOD_S * (np.arange(periods) + 0.5), np.float64)
    flow.send("metrics", [encode_metric_points(MetricPoints(SERVICE, "cpu_cores", times, cpu))])
    messages = [
        encode_requests(
            RequestCounts(
                SERVICE,
                f"host-{period % 4}",
                start + PERIOD_S * period,
                PERIOD_S,
                tuple(TypeCounts(name, int(many)) for name, many in zip(CPU_S, row, strict=True)),
                "v41" if period < OLD else "v42",
            )
        )
        for period, row in enumerate(counts)
    ]
    for first in range(0, len(messages), 20):
        flow.send("requests", messages[first : first + 20])
    return end
