"""Regressions without any change: a cache hits less often, and code costs more by its misses."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from loadgen.fleet.inject.effects import Injected, SetupMetric
from loadgen.fleet.inject.order import Order, subroutine_row
from loadgen.fleet.inject.site import Site
from pipeline.model import FloatArray

WANDERS = 0.15
"""Standard deviation of the hit ratio around its level, as a share of the drop."""

_CORRELATION_S = 7200.0


def inject_hit_ratio(order: Order, site: Site) -> Injected:
    """Let the hit ratio of a cache drop permanently; a subroutine's cost follows the cache's misses."""
    delta, timeline = order.size(), site.timeline
    at = order.moment(timeline)
    subroutine = site.choose(
        order.rng, delta, lambda name: site.own_share(name) >= delta, lambda name: site.own_share(name) > 0
    )
    normal, drop = float(order.rng.uniform(0.85, 0.98)), float(order.rng.uniform(0.1, 0.3))
    rest = _wander(order.rng, timeline.windows, timeline.window_s)
    more = timeline.step(at) + WANDERS * rest  # misses beyond the usual ones, relative to the drop
    metric = f"cache.{order.id.replace('-', '_')}.hit_ratio"
    effects = site.change_cost(subroutine, delta, more, new_work=False)
    facts = {"subkind": "hit_ratio", "explanation": metric}
    row = subroutine_row(order, site, "regression", subroutine, effects, start=at, **facts)
    shown = SetupMetric(metric, np.asarray(normal - drop * more))
    return Injected((row,), stacks=tuple(effects), setup=(shown,))


def _wander(rng: np.random.Generator, windows: int, window_s: float) -> FloatArray:
    """Return noise of variance 1 that is correlated for two hours: (windows,)."""
    keep = float(np.exp(-window_s / _CORRELATION_S))
    noise = rng.standard_normal(windows) * np.sqrt(1 - keep**2)
    noise[0] /= np.sqrt(1 - keep**2)
    return np.asarray(lfilter([1.0], [1.0, -keep], noise), dtype=np.float64)
