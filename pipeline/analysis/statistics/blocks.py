"""Sums and means of blocks of windows: side by side, at several widths, or at any place.

``block_means`` serves one width; ``BlockSums`` several widths, of which the wider are made of the finer;
``RunningSums`` blocks that begin anywhere, also such as overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray


def block_means(
    values: FloatArray, weights: FloatArray, width: int, *, partial: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return weighted means of blocks of windows and their weights: (series, blocks) each.

    A block without data has the mean 0 and the weight 0.

    Args:
        values: (series, windows) in any unit; anything where the weight is 0.
        weights: (series, windows), not negative.
        width: Windows of a block.
        partial: False counts blocks from the newest window back, and leaves out the oldest windows that do
            not fill a block. True counts them from the oldest window on, and the last block may be shorter.
    """
    if width == 1:
        return values, weights
    if partial:
        missing = ((0, 0), (0, -values.shape[1] % width))
        values, weights = np.pad(values, missing), np.pad(weights, missing)
    blocks = values.shape[1] // width
    newest = slice(values.shape[1] - blocks * width, None)
    shape = (len(values), blocks, width)
    moments = np.where(weights > 0, values, 0.0) * weights
    weight = weights[:, newest].reshape(shape).sum(axis=2)
    sums = moments[:, newest].reshape(shape).sum(axis=2)
    return ratio_or_zero(sums, weight), weight


class BlockSums:
    """Sums of blocks of what series observed, and of its exposure, at any width."""

    def __init__(self, observed: FloatArray, exposure: FloatArray) -> None:
        """Take series: (series, windows) observed, (series, windows) or (1, windows) of exposure."""
        self.windows = observed.shape[1]
        self._of_width = {1: (observed, exposure)}

    def of_width(self, width: int) -> tuple[FloatArray, FloatArray]:
        """Return the sums of all series: (series, blocks) each."""
        if width not in self._of_width:
            finer = max(measured for measured in self._of_width if width % measured == 0)
            observed, exposure = self._of_width[finer]
            self._of_width[width] = _sums(observed, width // finer), _sums(exposure, width // finer)
        return self._of_width[width]

    def of_rows(self, rows: IntArray, width: int) -> tuple[FloatArray, FloatArray]:
        """Return the sums of some series, (rows,) ascending: (rows, blocks) each, or (1, blocks)."""
        observed, exposure = self.of_width(width)
        if len(rows) == len(observed):
            return observed, exposure
        return observed[rows], exposure[rows] if len(exposure) > 1 else exposure


def _sums(values: FloatArray, width: int) -> FloatArray:
    """Return sums of blocks: (series, blocks).

    The oldest windows, which fill no block, are left out, as new windows matter most.
    """
    first = values.shape[1] % width
    sums = values[:, first::width]
    # By the index in the block: sums over an axis as short as most blocks are cost several times as much.
    for index in range(first + 1, first + width):
        sums = sums + values[:, index::width]
    return sums


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Running sums of a series' windows, whose differences give the mean of any block."""

    centre: FloatArray  # (rows, 1) taken off before summing, so that the sums stay exact
    moment: FloatArray  # (rows, windows + 1) weight × (value - centre)
    weight: FloatArray  # (rows, windows + 1) weight
    has_data: FloatArray  # (rows, windows + 1) windows with data


def running_sums(values: FloatArray, weights: FloatArray) -> RunningSums:
    """Return the running sums of rows of a series.

    Args:
        values: (rows, windows); NaN where the weight is 0.
        weights: (rows, windows), not negative; 0 is no data.
    """
    has_data = weights > 0
    weight = _running(weights)
    total = _running(np.where(has_data, values, 0.0) * weights)[:, -1:]
    centre = np.divide(total, weight[:, -1:], out=np.zeros_like(total), where=weight[:, -1:] > 0)
    moment = _running(np.where(has_data, values - centre, 0.0) * weights)
    return RunningSums(centre, moment, weight, _running(has_data.astype(np.float64)))


def means_at(sums: RunningSums, starts: IntArray, sizes: IntArray) -> FloatArray:
    """Return the weighted mean of each block: (rows, blocks).

    NaN if it leaves the series, or if more than half of its windows lack data.

    Args:
        sums: Of ``running_sums``.
        starts: (rows, blocks) first window of each block.
        sizes: (rows,) windows per block.
    """
    ends = starts + sizes[:, None]
    last = sums.weight.shape[1] - 1
    inside = (starts >= 0) & (ends <= last)
    left, right = np.clip(starts, 0, last), np.clip(ends, 0, last)

    def between(array: FloatArray) -> FloatArray:
        difference: FloatArray = np.take_along_axis(array, right, 1) - np.take_along_axis(array, left, 1)
        return difference

    enough = inside & (between(sums.has_data) * 2 >= sizes[:, None])
    means: FloatArray = np.divide(
        between(sums.moment), between(sums.weight), out=np.full(starts.shape, np.nan), where=enough
    )
    return means + sums.centre


def moving_starts(first: IntArray, end: IntArray, sizes: IntArray) -> IntArray:
    """Return starts of the blocks at every place within [first, end): (rows, blocks); -1 pads short rows."""
    count = np.maximum(end - first - sizes + 1, 0)
    position = np.arange(int(count.max(initial=0)), dtype=np.int64)
    return np.where(position < count[:, None], first[:, None] + position, -1)


def adjacent_starts(first: IntArray, end: IntArray, sizes: IntArray) -> IntArray:
    """Return starts of adjacent blocks in [first, end), in order: (rows, blocks); -1 pads short rows.

    The last block ends at ``end``; what remains at the beginning is left out. The padding comes first, so
    that the last column is the last block of every row.
    """
    count = np.maximum((end - first) // sizes, 0)
    back = np.arange(int(count.max(initial=0)), 0, -1, dtype=np.int64)
    return np.where(back <= count[:, None], end[:, None] - back * sizes[:, None], -1)


def mean_between(sums: RunningSums, start: IntArray, end: IntArray) -> FloatArray:
    """Return the weighted mean of [start, end) of each row: (rows,); NaN without data."""
    mass = sum_between(sums.weight, start, end)
    mean: FloatArray = np.divide(
        sum_between(sums.moment, start, end), mass, out=np.full(len(start), np.nan), where=mass > 0
    )
    return mean + sums.centre[:, 0]


def sum_between(running: FloatArray, start: IntArray, end: IntArray) -> FloatArray:
    """Return sums over [start, end) of each row: (rows,)."""
    rows = np.arange(len(start))
    difference: FloatArray = running[rows, end] - running[rows, start]
    return difference


def _running(array: FloatArray) -> FloatArray:
    out = np.zeros((array.shape[0], array.shape[1] + 1))
    np.cumsum(array, axis=1, out=out[:, 1:])
    return out


def ratio_or_zero(numerator: FloatArray, denominator: FloatArray | IntArray) -> FloatArray:
    """Divide element by element; 0 if the denominator is not positive. Shapes are broadcast."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    ratio: FloatArray = np.divide(numerator, denominator, out=np.zeros(shape), where=denominator > 0)
    return ratio
