"""Course of a metric over a rollout beside the prediction of each release's model.

Liao et al. (2021, §5, steps 3 and 4) hold the errors of both releases' models against each other, on the
periods of the new one. Here a model is least squares on the requests and on the curvature of their load, as
in ``costs``. Predictions for periods of the fit leave the period out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import BoolArray, FloatArray
from pipeline.releases.requests.costs import load_columns
from pipeline.releases.requests.rollout import RequestRollout

_MOST_OWN = 0.9
"""Largest leverage of a period: a period that no other resembles has a leverage of 1."""


@dataclass(frozen=True, slots=True)
class ModelCourse:
    """Predictions of both models for every period: (periods,); NaN where a model has too few periods.

    Args:
        by_old: By the periods before the new release.
        by_new: By those with it, also where both ran side by side.
    """

    by_old: FloatArray
    by_new: FloatArray


def model_course(rollout: RequestRollout, metric: FloatArray) -> ModelCourse:
    """Return the predictions of both releases' models for a rollout's periods.

    Args:
        rollout: The requests.
        metric: (periods,) in its unit; NaN without points.
    """
    columns = load_columns(rollout.counts)
    finite, new = np.isfinite(metric), rollout.has_new
    return ModelCourse(_modelled(columns, metric, finite & ~new), _modelled(columns, metric, finite & new))


def _modelled(columns: FloatArray, metric: FloatArray, fitted: BoolArray) -> FloatArray:
    """Return the prediction of a fit to some periods for all periods: (periods,)."""
    if fitted.sum() <= columns.shape[1]:
        return np.full(len(metric), np.nan)
    scale = np.sqrt(np.square(columns[fitted]).sum(axis=0))
    scale[scale == 0.0] = 1.0
    left, sizes, right = np.linalg.svd(columns[fitted] / scale, full_matrices=False)
    regular = sizes > sizes[0] * 1e-6
    basis = left[:, regular]
    solved = (basis.T @ metric[fitted]) / sizes[regular]
    prediction = np.asarray(columns / scale @ (right[regular].T @ solved), np.float64)
    own = np.minimum(np.square(basis).sum(axis=1), _MOST_OWN)
    prediction[fitted] = metric[fitted] - (metric[fitted] - prediction[fitted]) / (1.0 - own)
    return prediction
