"""Features of SOMDedup: one row of numbers for each candidate (FBDetect §5.4.7).

Five blocks: the magnitudes of the series' low Fourier frequencies, its variance, the change point, the
candidate root causes as a bitmap, and the metric id by TF-IDF of its 2- and 3-grams. The paper names
the blocks, not their scales. Here each block is scaled so that two unrelated candidates are about √2 apart in
it, whatever its number of columns, and no block outweighs another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from pipeline.analysis.statistics.name_vectors import name_vectors, random_signs, to_unit_length
from pipeline.model import BoolArray, FloatArray

BLOCKS = 5
"""Spectrum, variance, change point, causes, name."""


@dataclass(frozen=True, slots=True)
class FeatureConfig:
    """Settings and weight of each block; §5.4.7 names the blocks and gives no numbers."""

    frequencies: int = 32  # lowest of the window: of 11 days, down to a period of eight hours
    grams: tuple[int, ...] = (2, 3)  # §5.4.7
    dimensions: int = 64  # a projection keeps inner products to 1 / √64 (Johnson and Lindenstrauss)
    time_tolerance_s: float = 1200.0  # two windows of ten minutes: the error of two change times
    variance_tolerance: float = 0.3  # decades: a factor of two is no difference
    spectrum_weight: float = 1.0
    variance_weight: float = 1.0
    time_weight: float = 1.0
    causes_weight: float = 1.0
    name_weight: float = 1.0


def candidate_features(
    values: FloatArray,
    names: Sequence[str],
    change_times: FloatArray,
    causes: BoolArray,
    *,
    config: FeatureConfig | None = None,
) -> FloatArray:
    """Return one row of features for each candidate: (candidates, columns).

    Args:
        values: (candidates, windows) the series that the scan saw, NaN where there is no data.
        names: (candidates,) metric ids: subroutine and metric name in one.
        change_times: (candidates,) epoch seconds.
        causes: (candidates, changes) whether a change may be the root cause.
        config: Settings.

    Raises:
        ValueError: the arguments have different numbers of candidates.
    """
    config = config or FeatureConfig()
    sizes = {len(values), len(names), len(change_times), len(causes)}
    if len(sizes) != 1:
        raise ValueError(f"features of {sorted(sizes)} candidates: should be as many each")
    blocks = (
        config.spectrum_weight * spectra(values, config.frequencies),
        config.variance_weight * _scaled(log_variances(values), config.variance_tolerance),
        config.time_weight * _scaled(change_times, config.time_tolerance_s),
        config.causes_weight * cause_bits(causes, config.dimensions),
        config.name_weight * name_vectors(names, config.grams, config.dimensions),
    )
    return np.hstack(blocks)


def spectra(values: FloatArray, frequencies: int) -> FloatArray:
    """Return the magnitudes of each series' lowest frequencies, as a vector of length 1.

    The size of a series plays no part, only its shape; one that never changes is 0. Gaps hold the mean.

    Args:
        values: (series, windows), NaN where there is no data.
        frequencies: Number of columns; the last are 0 if the windows are too few.

    Returns:
        (series, frequencies)
    """
    magnitudes = np.zeros((len(values), frequencies))
    if values.size:
        lowest = np.abs(fft.rfft(_centred(values), axis=1))[:, 1 : frequencies + 1]
        magnitudes[:, : lowest.shape[1]] = lowest
    return to_unit_length(magnitudes)


def log_variances(values: FloatArray) -> FloatArray:
    """Return the decimal logarithm of each series' variance, or of the least one above 0: (series,)."""
    centred = _centred(values)
    counts = np.maximum((~np.isnan(values)).sum(axis=1), 1)
    variances = (centred * centred).sum(axis=1) / counts
    positive = variances > 0
    floor = variances[positive].min() if positive.any() else 1.0
    logs: FloatArray = np.log10(np.where(positive, variances, floor))
    return logs


def cause_bits(causes: BoolArray, dimensions: int) -> FloatArray:
    """Return each candidate's bitmap of potential root causes as a vector of length 1, 0 without any.

    Args:
        causes: (candidates, changes)
        dimensions: Bitmaps of more changes are projected to this many.

    Returns:
        (candidates, at most ``dimensions``)
    """
    bits = to_unit_length(causes.astype(np.float64))
    if causes.shape[1] <= dimensions:
        return bits
    return bits @ random_signs([str(change) for change in range(causes.shape[1])], dimensions)


def _centred(values: FloatArray) -> FloatArray:
    """Return series less their means, with 0 in gaps; all 0 if a series differs by rounding only."""
    has_data = ~np.isnan(values)
    filled = np.where(has_data, values, 0.0)
    means = filled.sum(axis=1) / np.maximum(has_data.sum(axis=1), 1)
    centred = np.where(has_data, filled - means[:, np.newaxis], 0.0)
    flat = np.abs(centred).max(axis=1, initial=0.0) <= 1e-12 * np.abs(means)
    centred[flat] = 0.0
    return centred


def _scaled(column: FloatArray, tolerance: float) -> FloatArray:
    """Return numbers around their median, in units of their spread or the tolerance: (candidates, 1)."""
    if not len(column):
        return np.zeros((0, 1))
    centred = column - np.median(column)
    spread = np.sqrt(np.mean(np.square(centred)))
    return np.asarray(centred / max(float(spread), tolerance))[:, np.newaxis]
