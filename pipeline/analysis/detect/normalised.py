"""Series with their daily cycle taken out and their noise measured: one form of counts and of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from pipeline.analysis.detect.change_point import Family
from pipeline.analysis.detect.seasonal.daily import CycleConfig, WindowGrid, draw_cycle
from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig
from pipeline.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class NormaliseConfig:
    """Settings of both estimates."""

    cycle: CycleConfig = field(default_factory=CycleConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)


@dataclass(frozen=True, slots=True)
class ComparedLengths:
    """Lengths of the compared levels and of the history, in windows."""

    history: int  # to learn from, from the first on
    longest: int  # that are compared as one level
    apart: int  # between the middles of two levels that are compared


@dataclass(frozen=True, slots=True)
class Normalised:
    """Series with their daily cycle taken out and their noise measured.

    The level of a span is ``centre + scale × Σ observed / Σ exposure``; its variance, in units of scale², is
    ``variance / Σ exposure``.
    """

    family: Family
    observed: FloatArray  # (series, windows) counts, or weighted values less centre and cycle
    exposure: FloatArray  # (series, windows) counts expected, or weights; 0 = no data
    variance: FloatArray  # (series,) see pipeline.analysis.statistics.long_run_noise.batch_means
    degrees_of_freedom: FloatArray  # (series,) degrees of freedom of that
    centre: FloatArray  # (series,)
    scale: FloatArray  # (series,)
    waves: FloatArray  # (series, waves) of the daily cycle, see pipeline.analysis.detect.seasonal.daily
    grid: WindowGrid

    @property
    def cycle(self) -> FloatArray:
        """The daily cycle in units of the level: (series, windows)."""
        return draw_cycle(self.waves, self.grid)

    def levels(self) -> FloatArray:
        """Return every window's level without the cycle: (series, windows), NaN where there is no data."""
        has_data = self.exposure > 0
        ratio = np.divide(self.observed, self.exposure, out=np.full(has_data.shape, np.nan), where=has_data)
        levels: FloatArray = self.centre[:, None] + self.scale[:, None] * ratio
        return levels


_ARRAYS = tuple(field.name for field in fields(Normalised) if field.name not in ("family", "grid"))
"""The fields that have a row for each series."""


def some_rows(series: Normalised, rows: IntArray, shown: FloatArray | None = None) -> Normalised:
    """Return some series, with no data where ``shown``, (rows, windows), is 0."""
    parts = {name: getattr(series, name)[rows] for name in _ARRAYS}
    if shown is not None:
        parts["observed"] *= shown
        parts["exposure"] *= shown
    return replace(series, **parts)


def join_rows(parts: Sequence[Normalised]) -> Normalised:
    """Return the series of all parts, of one source, one part after another."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS
    }
    return replace(parts[0], **joined)


def residuals(
    series: Normalised, rows: IntArray, columns: slice, split: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the residuals of two levels in columns of some series: observed and exposure, (rows, columns).

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
