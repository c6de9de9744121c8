"""The beginning of a lasting rise: a step, or an even slope between two points (FBDetect §5.4.5).

The paper fits a line to the normalised trend. If its root mean square error is small, the rise is gradual and
lies at the beginning; otherwise it searches the partition that minimises the variance on both
sides. A line through the whole series does not fit a series that was flat at first. So the line here may
begin and end anywhere, with level pieces before and after. Its error is small if it is less than a step's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.change_interval import IntervalConfig, likeliest, posterior, step_interval
from pipeline.analysis.detect.seasonal.stl import bridge
from pipeline.analysis.statistics.blocks import block_means
from pipeline.analysis.statistics.robust import typical_deviation
from pipeline.model import FloatArray, IntArray

_POSITIONS = 100
"""Blocks in which beginning and end of a slope are looked for: all pairs of them are tried."""


@dataclass(frozen=True, slots=True)
class Rise:
    """The beginning of a rise, in windows."""

    start: int
    interval: tuple[float, float] | None = None  # of 95 %; None where no noise was given


def find_rise(
    values: FloatArray,
    weights: FloatArray,
    *,
    shortest: int,
    noise: tuple[float, float] | None = None,
) -> Rise:
    """Return the window in which a series begins to rise, and its interval.

    The interval of a gradual rise is that of its beginning, over all ends that a slope from there may have.

    Args:
        values: (windows,) the series without its season; anything where the weight is 0.
        weights: (windows,).
        shortest: Windows that a slope must at least span to be gradual; what is shorter is a step.
        noise: The variance of a mean of weight 1 and its degrees of freedom, for the interval.
    """
    if not (weights > 0).any():
        return Rise(0)
    clean = _without_transients(bridge(values, weights > 0), width=2 * (shortest // 4) + 1)
    width = -(-len(clean) // _POSITIONS)
    means, weight = block_means(clean[None, :], weights[None, :], width)
    begins, ends, errors = _slopes(means[0], weight[0])
    # A step within a block looks like a slope over two.
    gradual = ends - begins > max(2, shortest // width)
    config = IntervalConfig()
    if gradual.any() and not gradual.all():
        # A slope has one more point to place than a step (Akaike's price). A step taken for a slope begins
        # hours early, a slope for a step days late, when its cause is out of sight.
        gain = len(means[0]) * np.log(errors[~gradual].min() / errors[gradual].min())
        if gain > 2:
            # Blocks fill up from the new end; a block stands for its middle.
            first = len(clean) - width * len(means[0]) + width // 2
            best = int(begins[gradual][errors[gradual].argmin()])
            start = first + width * best
            if noise is None:
                return Rise(start)
            mass = posterior(-errors[gradual] * float(weight.sum()), *noise)
            likely = likeliest(np.bincount(begins[gradual], mass).astype(np.float64), config.confidence)
            low, high = min(int(likely.min()), best) - 0.5, max(int(likely.max()), best) + 0.5
            return Rise(start, (max(start + width * (low - best), 0.0), start + width * (high - best)))
    split = best_split(clean, weights)
    if noise is None or split < 1:
        return Rise(split)
    return Rise(split, step_interval(clean, weights, noise, split, config))


def _without_transients(values: FloatArray, width: int) -> FloatArray:
    """Clip values far from the running median, which follows a step but not a transient."""
    from scipy.ndimage import median_filter  # slow to import, and every worker imports this module

    middle = median_filter(values, size=width, mode="nearest")
    size = np.abs(values - middle)
    reach = 4 * float(typical_deviation(size[None])[0])
    clipped: FloatArray = np.clip(values, middle - reach, middle + reach)
    return clipped


def best_split(values: FloatArray, weights: FloatArray) -> int:
    """Return the first window of the second part, where two parts have the least squared error.

    Every partition is compared by running sums: the dynamic programming search for one change point.
    """
    weight = np.cumsum(weights)
    filled = np.where(weights > 0, values, 0.0)
    total = np.cumsum((filled - np.average(filled, weights=weights)) * weights)
    inside = (weight > 0) & (weight < weight[-1])
    gain = np.full(len(values), -np.inf)
    gain[inside] = total[inside] ** 2 / (weight[inside] * (weight[-1] - weight[inside]))
    return min(int(np.argmax(gain)) + 1, len(values) - 1)


def _slopes(values: FloatArray, weights: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (begin, end, squared error) of every level line that slopes between two points to another level.

    Errors are weighted, and never quite 0.
    """
    positions = np.arange(len(values))
    begins, ends = (pair.ravel() for pair in np.meshgrid(positions, positions + 1, indexing="ij"))
    begins, ends = begins[ends > begins], ends[ends > begins]
    shape = np.clip((positions - begins[:, None]) / (ends - begins)[:, None], 0.0, 1.0)
    share = weights / weights.sum()
    centred = values - values @ share
    mean = shape @ share
    covariance = shape @ (share * centred)
    variance = shape**2 @ share - mean**2
    explained = np.divide(covariance**2, variance, out=np.zeros(len(begins)), where=variance > 1e-12)
    whole = float(centred**2 @ share)
    return begins, ends, np.maximum(whole - explained, 1e-12 * whole + 1e-300)
