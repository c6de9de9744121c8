"""Noise of neighbouring windows, from which a daily cycle has to stand out."""

from __future__ import annotations

import numpy as np

from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig, kept_share, unit_variance
from pipeline.model import FloatArray, IntArray

_ROUNDING = 1e-9
"""Relative rounding error of sums in different orders."""


class NearNoise:
    """The noise of neighbouring windows of series, estimated on demand."""

    least: FloatArray | float = 0.0

    def __init__(
        self, observed: FloatArray, exposure: FloatArray, *, counts: bool, config: NoiseConfig
    ) -> None:
        """Take (series, history) observed, and its exposure; (1, history) where that is the same for all."""
        self._observed, self._exposure = observed, exposure
        self._counts, self._config = counts, config

    def most(self, rows: IntArray) -> FloatArray:
        """Return an upper bound of the noise of series: (rows,). It costs a third of ``exact``.

        It is the mean of all squares, which is no less than the mean of cut squares.
        """
        if len(self._exposure) > 1 or not (self._exposure > 0).all():
            return np.full(len(rows), np.inf)
        inverse = 1.0 / self._exposure
        away = np.diff(self._observed[rows] * inverse, axis=1)
        away *= away
        weights = 1.0 / (inverse[0, 1:] + inverse[0, :-1])
        mean = away @ weights / max(len(weights), 1)
        return np.asarray(mean / kept_share(self._config.cut) * (1 + _ROUNDING))

    def exact(self, rows: IntArray) -> FloatArray:
        """Return the noise of series: (rows,)."""
        exposure = self._exposure[rows] if len(self._exposure) > 1 else self._exposure
        variance, _ = unit_variance(
            self._observed[rows], exposure, longest=1, apart=1, counts=self._counts, config=self._config
        )
        return variance


class NearCountNoise(NearNoise):
    """The noise of counts, at least that of sampling."""

    def __init__(
        self, counts: FloatArray, totals: FloatArray, sampling: FloatArray, config: NoiseConfig
    ) -> None:
        """Take (series, history) counts, (history,) totals and the variance of one sample: (series,)."""
        super().__init__(counts, totals[None], counts=True, config=config)
        self.least = self._sampling = sampling

    def most(self, rows: IntArray) -> FloatArray:
        """Return an upper bound of the noise of series: (rows,)."""
        return np.maximum(super().most(rows), self._sampling[rows])

    def exact(self, rows: IntArray) -> FloatArray:
        """Return the noise of series: (rows,)."""
        return np.maximum(super().exact(rows), self._sampling[rows])
