"""Warm-up of a new release: its higher use just after the start."""

from __future__ import annotations

import numpy as np

from pipeline.model import FloatArray

FADING_PERIODS = (3.0, 10.0, 30.0)
"""Periods after which a warm-up has fallen to 37 %: of connections, a just-in-time compiler, or caches."""


def warm_up_columns(level: FloatArray, old: int) -> FloatArray:
    """Return columns of a share of the level that fades: (periods, FADING_PERIODS).

    Sums of several follow other courses as well.

    Args:
        level: (periods,) of both releases, what the new one uses by all of its requests; 0 in the old one.
        old: How many periods are of the old release.
    """
    age = np.maximum(np.arange(len(level)) - old, 0.0)
    return np.asarray(level[:, None] * np.exp(-age[:, None] / np.array(FADING_PERIODS)))
