"""Series against what is expected of them: the form in which counts and values are tested the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from pipeline.detect.change_point import Family
from pipeline.detect.noise.scale import NoiseConfig, unit_variance
from pipeline.detect.noise.shared_prior import moderated
from pipeline.detect.seasonal.daily import CycleConfig, WindowGrid, fit_daily_cycle
from pipeline.model import FloatArray, IntArray, SeriesMatrix
from pipeline.model.metric_kind import is_gcpu

_LEAST_SHARE = 0.1
"""Of its level that a cycle may leave: an expectation is above 0."""


_MOST = 1e100
"""Values beyond are no measurements, as the largest double where there is none; squares would overflow."""


@dataclass(frozen=True, slots=True)
class NormaliseConfig:
    """Settings of both estimates."""

    cycle: CycleConfig = field(default_factory=CycleConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)


@dataclass(frozen=True, slots=True)
class Normalised:
    """Series with their daily cycle taken out and their noise measured.

    The level of a span is ``centre + scale × Σ observed / Σ exposure``; its variance, in units of scale², is
    ``variance / Σ exposure``.
    """

    family: Family
    observed: FloatArray  # (series, windows) counts, or weighted values less centre and cycle
    exposure: FloatArray  # (series, windows) counts expected, or weights; 0 = no data
    variance: FloatArray  # (series,) see pipeline.detect.noise.scale
    degrees_of_freedom: FloatArray  # (series,) degrees of freedom of that
    centre: FloatArray  # (series,)
    scale: FloatArray  # (series,)
    cycle: FloatArray  # (series, windows) in units of the level
    measured: FloatArray  # (series,) the variance by the series alone

    def levels(self) -> FloatArray:
        """Return every window's level without the cycle: (series, windows), NaN where there is no data."""
        known = self.exposure > 0
        ratio = np.divide(self.observed, self.exposure, out=np.full(known.shape, np.nan), where=known)
        levels: FloatArray = self.centre[:, None] + self.scale[:, None] * ratio
        return levels


def values_and_weights(matrix: SeriesMatrix) -> tuple[FloatArray, FloatArray]:
    """Return levels (series, windows) and what each point weighs (broadcastable); no data weighs 0.

    A gCPU ratio's variance is inverse to the samples it was taken from, so it weighs as many. What the
    whole did to all shares is taken out, where the matrix says what that was.
    """
    if matrix.kinds and not is_gcpu(matrix.kinds[0]):
        known = np.abs(matrix.samples) <= _MOST  # nor is NaN
        weights: FloatArray = known.astype(np.float64)
        return np.where(known, matrix.samples, np.nan), weights
    values = np.divide(
        matrix.samples, matrix.totals, out=np.full(matrix.samples.shape, np.nan), where=matrix.totals > 0
    )
    if matrix.share_factor is not None:
        level = matrix.samples.sum(axis=1) / max(float(matrix.totals.sum()), 1.0)
        values /= _share_factors(matrix.share_factor, level)
    return values, matrix.totals


def normalise(
    matrix: SeriesMatrix, *, history: int, longest: int, apart: int, config: NormaliseConfig | None = None
) -> Normalised:
    """Learn each series' level, cycle and noise from its history, and express all of it by them.

    Args:
        matrix: Series of one source.
        history: How many windows to learn from, from the first on.
        longest: How many windows are going to be compared as one level.
        apart: How many windows will lie between the middles of two levels that are compared.
        config: Settings.
    """
    config = config or NormaliseConfig()
    if matrix.kinds and not is_gcpu(matrix.kinds[0]):
        return _normalise_values(matrix, history, longest, apart, config)
    return _normalise_counts(matrix, history, longest, apart, config)


def _normalise_counts(
    matrix: SeriesMatrix, history: int, longest: int, apart: int, config: NormaliseConfig
) -> Normalised:
    counts, totals = matrix.samples, matrix.totals
    level = counts[:, :history].sum(axis=1) / max(float(totals[:history].sum()), 1.0)
    # What was not there in the history has no cycle either; any scale serves to compare it with itself.
    scale = np.where(level > 0, level, 1.0)
    past, past_totals = counts[:, :history], totals[None, :history]
    # Of shares, where a count's dispersion is the variance by the level.
    near = unit_variance(past, past_totals, longest=1, apart=1, counts=True, config=config.noise)[0]
    share_factors = None if matrix.share_factor is None else _share_factors(matrix.share_factor, level)
    ratios = past / np.where(past_totals > 0, past_totals, np.inf)
    if share_factors is not None:
        ratios /= share_factors[:, :history]
    cycle = fit_daily_cycle(
        ratios,
        totals[:history],
        np.maximum(near, (1 - level) * level),
        WindowGrid(matrix.start, matrix.resolution_s, counts.shape[1]),
        config.cycle,
    )
    exposure = np.maximum(scale[:, None] + cycle, _LEAST_SHARE * scale[:, None]) * totals
    if share_factors is not None:
        exposure *= share_factors
    variance, degrees_of_freedom = unit_variance(
        counts[:, :history],
        exposure[:, :history],
        longest=longest,
        apart=apart,
        counts=True,
        config=config.noise,
    )
    measured = variance
    if matrix.noise is not None:
        variance, degrees_of_freedom = moderated(matrix.noise, level, variance, degrees_of_freedom)
    sampling = np.maximum(1 - level, 1e-6)  # binomial: less noise than counts have there cannot be
    return Normalised(
        "counts",
        counts,
        exposure,
        np.maximum(variance, sampling),
        degrees_of_freedom,
        np.zeros(len(counts)),
        scale,
        cycle,
        measured,
    )


def _share_factors(factor: FloatArray, level: FloatArray) -> FloatArray:
    """Return by how much each series' share moved because others changed: (series, windows).

    The others' change moves a share p by 1 - p of itself: what every sample holds stays at 1.
    """
    result: FloatArray = np.exp(np.log(factor) * np.maximum(1 - level, 0.0)[:, None])
    return result


def _normalise_values(
    matrix: SeriesMatrix, history: int, longest: int, apart: int, config: NormaliseConfig
) -> Normalised:
    values, weights = values_and_weights(matrix)
    weight = weights[:, :history].sum(axis=1)
    known = np.where(weights > 0, values, 0.0)
    centre = np.divide(known[:, :history].sum(axis=1), weight, out=np.zeros(len(values)), where=weight > 0)
    moved = np.where(weights > 0, values - centre[:, None], 0.0)
    past = moved[:, :history], weights[:, :history]
    near = unit_variance(*past, longest=1, apart=1, counts=False, config=config.noise)[0]
    cycle = fit_daily_cycle(
        *past,
        near,
        WindowGrid(matrix.start, matrix.resolution_s, values.shape[1]),
        config.cycle,
    )
    moved -= np.where(weights > 0, cycle, 0.0)
    variance, degrees_of_freedom = unit_variance(
        moved[:, :history],
        weights[:, :history],
        longest=longest,
        apart=apart,
        counts=False,
        config=config.noise,
    )
    # What remains of a constant series is rounding, in which everything looks significant.
    rounding = (1e-9 * np.maximum(np.abs(known).max(axis=1, initial=0.0), 1e-140)) ** 2
    return Normalised(
        "values",
        moved,
        weights,
        np.maximum(variance, rounding),
        degrees_of_freedom,
        centre,
        np.ones(len(values)),
        cycle,
        variance,
    )


def some_rows(series: Normalised, rows: IntArray, shown: FloatArray | float = 1.0) -> Normalised:
    """Return some series, with no data where ``shown``, (rows, windows), is 0."""
    return replace(
        series,
        observed=series.observed[rows] * shown,
        exposure=series.exposure[rows] * shown,
        variance=series.variance[rows],
        degrees_of_freedom=series.degrees_of_freedom[rows],
        centre=series.centre[rows],
        scale=series.scale[rows],
        cycle=series.cycle[rows],
        measured=series.measured[rows],
    )


def join_rows(parts: Sequence[Normalised]) -> Normalised:
    """Return the series of all parts, of one source, one part after another."""
    if len(parts) == 1:
        return parts[0]
    arrays = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Normalised)
        if field.name != "family"
    }
    return Normalised(parts[0].family, **arrays)


def residuals(
    series: Normalised, rows: IntArray, columns: slice, split: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return what two levels leave of columns of some series: observed and exposure, (rows, columns) each.

    Args:
        series: All of them.
        rows: (rows,) which of them.
        columns: That are compared.
        split: (rows,) first column of each one's new level.
    """
    observed, exposure = series.observed[rows, columns], series.exposure[rows, columns]
    right = np.arange(columns.start, columns.stop) >= split[:, None]
    level = np.zeros(observed.shape)
    for side in (~right, right):
        mean = (observed * side).sum(axis=1) / np.maximum((exposure * side).sum(axis=1), 1e-300)
        level += mean[:, None] * side
    if series.family == "counts":
        return observed, exposure * level
    return observed - level * exposure, exposure
