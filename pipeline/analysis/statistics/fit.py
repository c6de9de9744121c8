"""Least squares with columns of very different sizes, of which some may explain one another."""

from __future__ import annotations

import numpy as np

from pipeline.model import FloatArray

_LEAST_FREE = 0.1
"""How much of a period at least is taken to be left by a fit that it is part of."""


def coefficients(columns: FloatArray, metric: FloatArray) -> FloatArray:
    """Return those of least squares: (columns,); of columns that explain one another, the smallest."""
    scale = lengths(columns)
    scaled, *_ = np.linalg.lstsq(columns / scale, metric, rcond=1e-9)
    return np.asarray(scaled / scale)


def orthonormal(columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what the columns span: (periods, terms)."""
    left, sizes, _ = np.linalg.svd(columns / lengths(columns), full_matrices=False)
    return np.asarray(left[:, sizes > sizes[0] * 1e-9])


def lengths(columns: FloatArray) -> FloatArray:
    """Return the length of each column: (columns,); 1 of one that is 0."""
    found = np.sqrt(np.square(columns).sum(axis=0))
    found[found == 0.0] = 1.0
    return np.asarray(found)


def equalised(residuals: FloatArray, basis: FloatArray) -> FloatArray:
    """Return the residuals of a fit as errors: (periods,); a fit follows unusual periods more than others.

    Args:
        residuals: (periods,)
        basis: (periods, terms) orthonormal, of the fit.
    """
    free = 1.0 - np.square(basis).sum(axis=1)
    return np.asarray(residuals / np.sqrt(np.maximum(free, _LEAST_FREE)))
