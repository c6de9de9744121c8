"""Series relative to their expectation: the form in which counts and values are tested in the same way."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.detect.count_histories import CountHistories, share_factors
from pipeline.analysis.detect.noise.near import NearNoise
from pipeline.analysis.detect.normalised import ComparedLengths, NormaliseConfig, Normalised
from pipeline.analysis.detect.seasonal.daily import WindowGrid, draw_cycle, fit_daily_waves
from pipeline.analysis.statistics.long_run_noise.batch_means import unit_variance
from pipeline.model import FloatArray, SeriesMatrix
from pipeline.model.metric_kind import is_gcpu

__all__ = ["ComparedLengths", "NormaliseConfig", "Normalised", "normalise", "values_and_weights"]

_MOST = 1e100
"""Values beyond are no measurements, as the largest double where there is none; squares would overflow."""


def values_and_weights(matrix: SeriesMatrix) -> tuple[FloatArray, FloatArray]:
    """Return levels (series, windows) and what each point weighs (broadcastable); no data weighs 0.

    A gCPU ratio's variance is inverse to the samples it was taken from, so it weighs as many. What the
    whole did to all shares is taken out, where the matrix says what that was.
    """
    if matrix.kinds and not is_gcpu(matrix.kinds[0]):
        has_data = np.abs(matrix.samples) <= _MOST  # nor is NaN
        weights: FloatArray = has_data.astype(np.float64)
        return np.where(has_data, matrix.samples, np.nan), weights
    values = np.divide(
        matrix.samples, matrix.totals, out=np.full(matrix.samples.shape, np.nan), where=matrix.totals > 0
    )
    if matrix.share_factor is not None:
        level = matrix.samples.sum(axis=1) / max(float(matrix.totals.sum()), 1.0)
        values /= share_factors(matrix.share_factor, level)
    return values, matrix.totals


def normalise(
    matrix: SeriesMatrix, *, history: int, longest: int, apart: int, config: NormaliseConfig | None = None
) -> Normalised:
    """Estimate each series' level, cycle and noise from its history, and express the series by them.

    Args:
        matrix: Series of one source.
        history: How many windows to learn from, from the first on.
        longest: How many windows are going to be compared as one level.
        apart: How many windows will lie between the middles of two levels that are compared.
        config: Settings.
    """
    compared, config = ComparedLengths(history, longest, apart), config or NormaliseConfig()
    if matrix.kinds and not is_gcpu(matrix.kinds[0]):
        return normalise_values(matrix, compared, config)
    return CountHistories(matrix, compared, config).part(0, len(matrix.samples), matrix.noise).measured()


def normalise_values(matrix: SeriesMatrix, compared: ComparedLengths, config: NormaliseConfig) -> Normalised:
    """Return series of values in the form in which they are compared."""
    history = compared.history
    values, weights = values_and_weights(matrix)
    weight = weights[:, :history].sum(axis=1)
    filled = np.where(weights > 0, values, 0.0)
    centre = np.divide(filled[:, :history].sum(axis=1), weight, out=np.zeros(len(values)), where=weight > 0)
    moved = np.where(weights > 0, values - centre[:, None], 0.0)
    before, before_weights = moved[:, :history], weights[:, :history]
    grid = WindowGrid(matrix.start, matrix.resolution_s, values.shape[1])
    noise = NearNoise(before, before_weights, counts=False, config=config.noise)
    waves = fit_daily_waves(before, before_weights, noise, grid, config.cycle)
    moved -= np.where(weights > 0, draw_cycle(waves, grid), 0.0)
    variance, degrees_of_freedom = unit_variance(
        moved[:, :history],
        weights[:, :history],
        longest=compared.longest,
        apart=compared.apart,
        counts=False,
        config=config.noise,
    )
    # What remains of a constant series is rounding, in which everything looks significant.
    rounding = (1e-9 * np.maximum(np.abs(filled).max(axis=1, initial=0.0), 1e-140)) ** 2
    return Normalised(
        "values",
        moved,
        weights,
        np.maximum(variance, rounding),
        degrees_of_freedom,
        centre,
        np.ones(len(values)),
        waves,
        grid,
    )
