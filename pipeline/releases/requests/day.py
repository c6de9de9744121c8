"""Columns of the time of day: the same requests cost more at some hours, in any release."""

from __future__ import annotations

import numpy as np

from pipeline.model import FloatArray
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.releases.requests.periods import ReleasePeriods

_HARMONICS = np.array([1.0, 2.0])
"""Times of day as columns, as few as describe a usual day: a working day, and its noon."""


def day_columns(level: FloatArray, old: ReleasePeriods, new: ReleasePeriods) -> FloatArray:
    """Return columns of a share of the level that follows the time of day: (periods, 4).

    (periods, 0) if the times are not known, or the old release did not run at all hours: what a later hour
    costs could not be kept apart from what the new release does.

    Args:
        level: (periods,) of both releases, what their requests cost.
        old: The periods of the old release.
        new: Those of the new one.
    """
    if old.starts is None or new.starts is None:
        return np.empty((len(level), 0))
    if len(np.unique(old.starts % DAY_S // HOUR_S)) < DAY_S / HOUR_S:
        return np.empty((len(level), 0))
    angles = 2.0 * np.pi / DAY_S * np.concatenate([old.starts, new.starts])[:, None] * _HARMONICS
    return np.asarray(level[:, None] * np.column_stack([np.sin(angles), np.cos(angles)]))
