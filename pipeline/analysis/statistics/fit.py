"""Least squares with columns of very different sizes, some of which may be collinear."""

from __future__ import annotations

import numpy as np

from pipeline.model import FloatArray

_LEAST_FREE = 0.1
"""Least share of a period's error that a fit, which the period is part of, is taken to leave."""


def coefficients(columns: FloatArray, metric: FloatArray) -> FloatArray:
    """Return least-squares coefficients: (columns,), the shortest ones if columns are collinear."""
    scale = lengths(columns)
    scaled, *_ = np.linalg.lstsq(columns / scale, metric, rcond=1e-9)
    return np.asarray(scaled / scale)


def orthonormal(columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the span of columns: (periods, terms)."""
    left, sizes, _ = np.linalg.svd(columns / lengths(columns), full_matrices=False)
    return np.asarray(left[:, sizes > sizes[0] * 1e-9])


def lengths(columns: FloatArray) -> FloatArray:
    """Return the Euclidean length of each column: (columns,); 1 for a column of zeros."""
    sizes = np.sqrt(np.square(columns).sum(axis=0))
    sizes[sizes == 0.0] = 1.0
    return np.asarray(sizes)


def equalised(residuals: FloatArray, basis: FloatArray) -> FloatArray:
    """Return residuals scaled to the size of errors: (periods,), in the unit of the residuals.

    A fit follows unusual periods more than others, so their residuals are too small: they are divided by
    √(1 − leverage) (Davidson and Flachaire, Journal of Econometrics 146, 2008, HC2).

    Args:
        residuals: (periods,)
        basis: (periods, terms) orthonormal basis of the fit.
    """
    free = 1.0 - np.square(basis).sum(axis=1)
    return np.asarray(residuals / np.sqrt(np.maximum(free, _LEAST_FREE)))
