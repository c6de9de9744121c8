"""Quantiles of histograms with explicit bounds, as Prometheus' ``histogram_quantile`` defines them."""

from __future__ import annotations

import math
from collections.abc import Mapping


def bucket_quantile(rank: float, at_most: Mapping[float, float]) -> float:
    """Return the observation of a rank between 0 and 1; NaN if there is none.

    Within a bucket, observations are taken to be spread evenly. What lies above the last finite bound counts
    as that bound, and the first bucket begins at 0 if its bound is positive.

    Args:
        rank: Such as 0.99.
        at_most: How many observations are at most each bound; the largest bound, infinity, has them all.
    """
    bounds = sorted(at_most)
    if len(bounds) < 2 or bounds[-1] != math.inf or not at_most[math.inf] > 0:
        return math.nan
    wanted, low, under = rank * at_most[math.inf], 0.0, 0.0
    if bounds[0] <= 0:
        low = bounds[0]
    for bound in bounds:
        count = max(at_most[bound], under)  # counts of hosts that are not of one moment may cross
        if count >= wanted and count > under:
            if bound == math.inf:
                return bounds[-2]
            return low + (bound - low) * (wanted - under) / (count - under)
        low, under = bound, count
    return bounds[-2]
