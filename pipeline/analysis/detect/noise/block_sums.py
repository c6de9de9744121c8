"""Sums of blocks of windows, of any width; wider blocks are made of finer ones."""

from __future__ import annotations

from pipeline.model import FloatArray, IntArray


class BlockSums:
    """Sums of blocks of what series observed, and of its exposure."""

    def __init__(self, observed: FloatArray, exposure: FloatArray) -> None:
        """Take series: (series, windows) observed, (series, windows) or (1, windows) of exposure."""
        self.windows = observed.shape[1]
        self._of_width = {1: (observed, exposure)}

    def of_width(self, width: int) -> tuple[FloatArray, FloatArray]:
        """Return the sums of all series: (series, blocks) each."""
        if width not in self._of_width:
            finer = max(known for known in self._of_width if width % known == 0)
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
    """Return sums of blocks; what fills none is left out at the old end, as new windows matter most."""
    first = values.shape[1] % width
    sums = values[:, first::width]
    # By the index in the block: sums over an axis as short as most blocks are cost several times as much.
    for index in range(first + 1, first + width):
        sums = sums + values[:, index::width]
    return sums
