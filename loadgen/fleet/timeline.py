"""The windows of a simulation, and shapes in time averaged over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class Timeline:
    """Equal windows from ``start`` (epoch seconds) on."""

    start: float
    window_s: float
    windows: int

    @property
    def end(self) -> float:
        """The end of the last window."""
        return self.start + self.windows * self.window_s

    @property
    def starts(self) -> FloatArray:
        """The start of every window, epoch seconds: (windows,)."""
        return self.start + np.arange(self.windows, dtype=np.float64) * self.window_s

    @property
    def middles(self) -> FloatArray:
        """The middle of every window, epoch seconds: (windows,)."""
        return self.start + (np.arange(self.windows, dtype=np.float64) + 0.5) * self.window_s

    def at(self, share: float) -> float:
        """Return the moment when ``share`` of the whole span has passed."""
        return self.start + share * (self.end - self.start)

    def shape(self, knots: Sequence[tuple[float, float]]) -> FloatArray:
        """Return the mean of a piecewise linear shape over every window: (windows,).

        ``knots`` are (epoch seconds, value) in order of time; two at the same time make a jump, and beyond
        the first and last the shape is constant. The mean is exact, so that an outage of seconds has its
        proper effect on a window of minutes.
        """
        times = np.array([time for time, _ in knots], dtype=np.float64)
        values = np.array([value for _, value in knots], dtype=np.float64)
        edges = self.start + np.arange(self.windows + 1, dtype=np.float64) * self.window_s
        return np.diff(_integral(times, values, edges)) / self.window_s

    def step(self, at: float, ramp_s: float = 0.0) -> FloatArray:
        """Return a shape that goes from 0 at ``at`` to 1 within ``ramp_s`` and stays: (windows,)."""
        return self.shape([(at, 0.0), (at + ramp_s, 1.0)])

    def pulse(self, start: float, end: float, *, rise_s: float = 0.0, fall_s: float = 0.0) -> FloatArray:
        """Return a shape that is 1 between ``start`` and ``end`` and 0 elsewhere: (windows,).

        It rises within the first ``rise_s`` and falls within the last ``fall_s`` seconds, each at most half.
        """
        half = (end - start) / 2
        rise_s, fall_s = min(rise_s, half), min(fall_s, half)
        return self.shape([(start, 0.0), (start + rise_s, 1.0), (end - fall_s, 1.0), (end, 0.0)])


def _integral(times: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Integrate a piecewise linear shape from its first knot to each moment of ``at``."""
    widths = np.diff(times)
    slopes = np.divide(np.diff(values), widths, out=np.zeros_like(widths), where=widths > 0)
    areas = np.concatenate([[0.0], np.cumsum((values[:-1] + values[1:]) / 2 * widths)])
    piece = np.searchsorted(times, at, side="right") - 1
    before, after = piece < 0, piece >= len(times) - 1
    inner = np.clip(piece, 0, max(len(times) - 2, 0))
    since = at - times[inner]
    slope = slopes[inner] if len(slopes) else np.zeros_like(at)
    inside = areas[inner] + values[inner] * since + slope * since**2 / 2
    beyond = areas[-1] + values[-1] * (at - times[-1])
    result: FloatArray = np.where(before, values[0] * (at - times[0]), np.where(after, beyond, inside))
    return result
