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
    old_load, new_load = ((counts - centre) / scale for counts in (old, new))
    inverse = np.linalg.pinv(old_load.T @ old_load, hermitian=True)
    most = np.einsum("ij,jk,ik->i", old_load, inverse, old_load).max()
    result: BoolArray = np.einsum("ij,jk,ik->i", new_load, inverse, new_load) > most * (1.0 + 1e-9)
    return result
