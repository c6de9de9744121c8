"""What SOMDedup knows of each candidate, as one row of numbers (FBDetect §5.4.7).

Five blocks: the magnitudes of the series' low Fourier frequencies, its variance, the change point, the
candidate root causes as a bitmap, and the metric id by TF-IDF of its 2- and 3-grams. The paper says what
goes in, not how it is scaled; here each block is made so that two candidates that have nothing to do with
each other are about √2 apart in it, whatever its number of columns, and so that none outweighs another.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft, sparse

from pipeline.model import BoolArray, FloatArray

BLOCKS = 5
"""Spectrum, variance, change point, causes, name."""


@dataclass(frozen=True, slots=True)
class FeatureConfig:
    """How each block is made, and what it weighs; §5.4.7 names the blocks and gives no numbers."""

    frequencies: int = 32  # lowest of the window: of 11 days, down to a period of eight hours
    grams: tuple[int, ...] = (2, 3)  # §5.4.7
    dimensions: int = 64  # a projection keeps inner products to 1 / √64 (Johnson and Lindenstrauss)
    time_tolerance_s: float = 1200.0  # two windows of ten minutes: what two estimates of one moment differ by
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
    """Return one row of features a candidate: (candidates, columns).

    Args:
        values: (candidates, windows) the series that the scan saw, NaN where there is no data.
        names: (candidates,) metric ids: subroutine and metric name in one.
        change_times: (candidates,) epoch seconds.
        causes: (candidates, changes) whether a change may be the root cause.
        config: Settings.

    Raises:
        ValueError: the arguments are not of as many candidates each.
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
        frequencies: How many; fewer columns stay 0 where the windows are too few.

    Returns:
        (series, frequencies)
    """
    magnitudes = np.zeros((len(values), frequencies))
    if values.size:
        found = np.abs(fft.rfft(_centred(values), axis=1))[:, 1 : frequencies + 1]
        magnitudes[:, : found.shape[1]] = found
    return _to_unit_length(magnitudes)


def log_variances(values: FloatArray) -> FloatArray:
    """Return the logarithm to base 10 of each series' variance: (series,); the least one where it is 0."""
    centred = _centred(values)
    known = np.maximum((~np.isnan(values)).sum(axis=1), 1)
    variances = (centred * centred).sum(axis=1) / known
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
    bits = _to_unit_length(causes.astype(np.float64))
    if causes.shape[1] <= dimensions:
        return bits
    return bits @ _signs([str(change) for change in range(causes.shape[1])], dimensions)


def name_vectors(names: Sequence[str], grams: Sequence[int], dimensions: int) -> FloatArray:
    """Return metric ids as vectors whose inner products are the cosines of TF-IDF of their n-grams.

    A term is the rarer the more it weighs: log((1 + names) / (1 + names that hold it)) + 1. The vectors over
    all terms are projected with random signs that each term's own hash gives, so that a name's vector hangs
    on no order; inner products stay within about 1 / √dimensions of what they were.

    Args:
        names: Metric ids.
        grams: Lengths of the character n-grams.
        dimensions: Of the projection.

    Returns:
        (names, dimensions)
    """
    terms: dict[str, int] = {}
    rows, columns, counts = [], [], []
    for row, name in enumerate(names):
        for term, count in Counter(_grams(name, grams)).items():
            rows.append(row)
            columns.append(terms.setdefault(term, len(terms)))
            counts.append(float(count))
    if not terms:
        return np.zeros((len(names), dimensions))
    matrix = sparse.csr_array((counts, (rows, columns)), shape=(len(names), len(terms)))
    holding = np.bincount(columns, minlength=len(terms))
    weighted = matrix * (np.log((1 + len(names)) / (1 + holding)) + 1)[np.newaxis]
    return _to_unit_length(np.asarray(weighted @ _signs(list(terms), dimensions)))


def _grams(name: str, lengths: Sequence[int]) -> list[str]:
    return [name[at : at + length] for length in lengths for at in range(len(name) - length + 1)]


def _signs(terms: Sequence[str], dimensions: int) -> FloatArray:
    """Return a row of random signs a term, drawn by the term's hash: (terms, dimensions)."""
    digests = b"".join(
        hashlib.shake_128(term.encode("utf-8", "surrogatepass")).digest(-(-dimensions // 8)) for term in terms
    )
    bits = np.unpackbits(np.frombuffer(digests, dtype=np.uint8).reshape(len(terms), -1), axis=1)
    signs: FloatArray = (2.0 * bits[:, :dimensions] - 1.0) / np.sqrt(dimensions)
    return signs


def _centred(values: FloatArray) -> FloatArray:
    """Return series less their means, with 0 in gaps; 0 throughout where a series only rounds."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    means = filled.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    centred = np.where(known, filled - means[:, np.newaxis], 0.0)
    flat = np.abs(centred).max(axis=1, initial=0.0) <= 1e-12 * np.abs(means)
    centred[flat] = 0.0
    return centred


def _scaled(column: FloatArray, tolerance: float) -> FloatArray:
    """Return numbers in units of their spread, but at least of what means nothing: (candidates, 1)."""
    if not len(column):
        return np.zeros((0, 1))
    centred = column - np.median(column)
    spread = np.sqrt(np.mean(np.square(centred)))
    return np.asarray(centred / max(float(spread), tolerance))[:, np.newaxis]


def _to_unit_length(rows: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    scaled: FloatArray = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled
