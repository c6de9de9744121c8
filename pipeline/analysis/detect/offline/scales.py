"""Scale on which a series is described: its own, or that of its logarithms.

What grows by so much per cent is a line on the logarithmic scale, with noise of one size there; on its own
scale it bends, and its noise grows. Both descriptions are of the same values, so that their lengths compare
once the density of the logarithms is turned into that of the values (the Jacobian, as in Box and Cox, JRSS B
1964).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.offline.transients import replace_transients
from pipeline.model import FloatArray

_SIMILAR = 1.5
"""Times the smallest size: in a smaller range a logarithm bends by 5 % at most, and is not tried."""

_LEAST_SPREAD = 1e-60
"""Largest range with transients: its square must not overflow."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit in which most values lie within 1 of 0."""

    logarithmic: bool
    size: float  # of the largest value, with the sign of all of them on the logarithmic scale
    middle: float
    spread: float

    def apply(self, values: FloatArray) -> FloatArray:
        """Return (points,) values on this scale."""
        parts = values / self.size  # so that neither a difference nor a square overflows
        scaled: FloatArray = ((np.log(parts) if self.logarithmic else parts) - self.middle) / self.spread
        return scaled

    def level(self, scaled: FloatArray) -> float:
        """Return the mean of scaled values, in the units of the series."""
        if self.logarithmic:
            return float(np.exp(self.middle + self.spread * scaled).mean()) * self.size
        return (self.middle + self.spread * float(scaled.mean())) * self.size

    def nats(self, scaled: FloatArray) -> float:
        """Return the nats by which the density of values differs from that of scaled values."""
        nats = len(scaled) * float(np.log(self.spread))
        return nats + float((self.middle + self.spread * scaled).sum()) if self.logarithmic else nats


def scales(values: FloatArray, time: FloatArray, *, longest: int, bound: float) -> list[Scale]:
    """Return the scales to try, none for values that differ by the arithmetic's rounding at most.

    The range is that without transients: beside one value of a billion all others would be the same.

    Args:
        values: (points,) finite, at least eight.
        time: (points,) ascending.
        longest: Points of the longest transient.
        bound: Standard deviations from which a point is odd.
    """
    size = float(np.abs(values).max())
    if size == 0:
        return []
    scales_ = []
    for logarithmic in (False, True):
        if logarithmic:
            size = size if values[0] > 0 else -size
        parts = values / size
        if logarithmic and not 0 < parts.min() * _SIMILAR < parts.max():
            continue
        parts = np.log(parts) if logarithmic else parts
        clean, _ = replace_transients(parts, time, longest=longest, bound=bound)
        spread = float(np.ptp(clean))
        if spread <= 8 * np.finfo(float).eps * float(np.abs(clean).max()):
            spread = float(np.ptp(parts))
        spread = max(spread, _LEAST_SPREAD * float(np.ptp(parts)))
        if spread > 8 * np.finfo(float).eps * (1.0 if logarithmic else float(np.abs(clean).max())):
            scales_.append(Scale(logarithmic, size, float(np.median(parts)), spread))
    return scales_
