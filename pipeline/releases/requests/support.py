"""Load that the old release never saw: a model cannot predict its cost."""

from __future__ import annotations

import numpy as np

from pipeline.model import BoolArray, FloatArray


def unseen_load(old: FloatArray, new: FloatArray) -> BoolArray:
    """Return the mask of new periods whose load lies outside that of the old release: (new periods,).

    The measure is leverage, which sees combinations that are new though each type alone is not: a period
    whose leverage is above the largest in the old release is an extrapolation (hidden extrapolation, in
    Montgomery, Peck and Vining, Introduction to Linear Regression Analysis). Of periods like the old ones one
    in as many as there are old ones is.

    Args:
        old: (periods, types) requests in the old release.
        new: (periods, types) requests in the new release.
    """
    centre = old.mean(axis=0)
    scale = old.std(axis=0)
    scale[scale == 0.0] = 1.0
    known, other = ((each - centre) / scale for each in (old, new))
    inverse = np.linalg.pinv(known.T @ known, hermitian=True)
    most = np.einsum("ij,jk,ik->i", known, inverse, known).max()
    result: BoolArray = np.einsum("ij,jk,ik->i", other, inverse, other) > most * (1.0 + 1e-9)
    return result
