"""Histories of gCPU series: level, daily cycle and noise of each, estimated once for a scan.

All series are compared with what their level and their cycle make expect. Their noise costs far more than
that, and is measured only of those that are asked for: a sample says what all have in common, and most of the
others change by so little that it does not matter how noisy they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.analysis.detect.noise.limits import NoiseLimits, noise_limits
from pipeline.analysis.detect.noise.near import NearCountNoise
from pipeline.analysis.detect.noise.shared_prior import least_moderated, moderated
from pipeline.analysis.detect.normalised import ComparedLengths, NormaliseConfig, Normalised, some_rows
from pipeline.analysis.detect.seasonal.daily import WindowGrid, draw_cycle, fit_daily_waves
from pipeline.analysis.statistics.long_run_noise.batch_means import SeriesNoise
from pipeline.model import FloatArray, IntArray, SeriesMatrix, SharedVariancePrior

_LEAST_SHARE = 0.1
"""Least share of its level that a cycle leaves: an expectation must be above 0."""

_LEAST_NOISE = 1e-6
"""Least dispersion, for a subroutine that nearly every sample holds."""

_ROWS = 512
"""Series that are learnt together, few enough that what is computed of them stays in the cache."""


class CountHistories:
    """Expectation and noise of gCPU series, from their histories."""

    def __init__(
        self, matrix: SeriesMatrix, compared: ComparedLengths, config: NormaliseConfig | None = None
    ) -> None:
        """Take all series of a service.

        Args:
            matrix: Up to the last window that is compared.
            compared: What is going to be compared.
            config: Settings.
        """
        self.compared, self.config = compared, config or NormaliseConfig()
        self._matrix = matrix
        series, history = len(matrix.samples), compared.history
        self.counts: FloatArray = matrix.samples[:, :history].sum(axis=1)
        self.level: FloatArray = self.counts / max(float(matrix.totals[:history].sum()), 1.0)
        # What was not there in the history has no cycle either; any scale serves to compare it with itself.
        self.scale = np.where(self.level > 0, self.level, 1.0)
        self.variance, self.degrees_of_freedom = np.full((2, series), np.nan)  # by each one's own history
        self.limits = noise_limits(
            matrix.totals[:history] > 0,
            longest=compared.longest,
            apart=compared.apart,
            config=self.config.noise,
        )
        self._grid = WindowGrid(matrix.start, matrix.resolution_s, matrix.samples.shape[1])
        self._waves = np.zeros((series, 2 * self.config.cycle.harmonics))
        self._sample, self._sample_exposure = np.zeros(0, dtype=np.int64), np.zeros((0, 0))

    def sample_noise(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return variance and degrees of freedom of a sample, from each series' own history: (rows,) each.

        What is expected of them is kept until all series are looked at.

        Args:
            rows: (rows,) ascending.
        """
        parts = []
        for first in range(0, len(rows), _ROWS):
            some = rows[first : first + _ROWS]
            counts = self._matrix.samples[some]
            parts.append(self._expected(some, counts))
            self.learn_noise(some, self.noise_of(counts, parts[-1]), np.arange(len(some)))
        self._sample, self._sample_exposure = rows, np.concatenate(parts)
        return self.variance[rows], self.degrees_of_freedom[rows]

    def part(self, first: int, end: int, prior: SharedVariancePrior | None) -> UnmeasuredCounts:
        """Return the series [first, end) in the form in which they are compared."""
        return UnmeasuredCounts(self, slice(first, min(end, len(self.level))), prior)

    def noise_of(self, counts: FloatArray, exposure: FloatArray) -> SeriesNoise:
        """Return the estimator of the noise of (series, windows) from their history."""
        history = slice(self.compared.history)
        return SeriesNoise(counts[:, history], exposure[:, history], counts=True, config=self.config.noise)

    def learn_noise(self, rows: IntArray, noise: SeriesNoise, of: IntArray) -> None:
        """Measure the noise of the series at the indexes ``of``."""
        self.variance[rows], self.degrees_of_freedom[rows] = noise.unit_variance(
            of, longest=self.compared.longest, apart=self.compared.apart
        )

    def unmeasured(self, rows: slice) -> Normalised:
        """Return series without their noise, relative to their expectation."""
        counts = self._matrix.samples[rows]
        low, high = np.searchsorted(self._sample, (rows.start, rows.stop))
        if low == high:
            exposure = self._expected(np.arange(rows.start, rows.stop), counts)
        else:
            exposure, sampled = np.empty(counts.shape), self._sample[low:high] - rows.start
            exposure[sampled] = self._sample_exposure[low:high]
            rest = np.delete(np.arange(len(counts)), sampled)
            exposure[rest] = self._expected(rest + rows.start, counts[rest])
        nothing = np.zeros(len(counts))
        return Normalised(
            "counts",
            counts,
            exposure,
            nothing,
            nothing,
            nothing,
            self.scale[rows],
            self._waves[rows],
            self._grid,
        )

    def _expected(self, rows: IntArray, counts: FloatArray) -> FloatArray:
        """Return the counts expected from level and cycle: (rows, windows). The cycle is estimated here."""
        if not len(rows):
            return np.empty(counts.shape)
        level, scale = self.level[rows], self.scale[rows][:, None]
        factor = self._matrix.share_factor
        factors = None if factor is None else share_factors(factor, level)
        self._waves[rows] = self._learn_waves(counts, level, factors)
        exposure = scale + draw_cycle(self._waves[rows], self._grid)
        np.maximum(exposure, _LEAST_SHARE * scale, out=exposure)
        exposure *= self._matrix.totals
        if factors is not None:
            exposure *= factors
        return exposure

    def _learn_waves(self, counts: FloatArray, level: FloatArray, factors: FloatArray | None) -> FloatArray:
        """Return the coefficients of daily waves: (series, waves)."""
        history = slice(self.compared.history)
        totals = self._matrix.totals[history]
        shares = counts[:, history] * (1.0 / np.where(totals > 0, totals, np.inf))
        # Of shares, where a count's dispersion is the variance by the level.
        noise = NearCountNoise(counts[:, history], totals, (1 - level) * level, self.config.noise)
        if factors is not None:
            shares /= factors[:, history]
        return fit_daily_waves(shares, totals, noise, self._grid, self.config.cycle)


class UnmeasuredCounts:
    """Some gCPU series whose noise is measured on demand."""

    def __init__(self, histories: CountHistories, rows: slice, prior: SharedVariancePrior | None) -> None:
        """Take some of all series; ``prior`` is what all of them have in common."""
        self._histories, self._prior = histories, prior
        self._every = np.arange(rows.start, rows.stop)
        self.limits = histories.limits
        self.bare = histories.unmeasured(rows)
        self._noise = histories.noise_of(self.bare.observed, self.bare.exposure)

    def __len__(self) -> int:
        return len(self.bare.scale)

    def measured(self, rows: IntArray | None = None) -> Normalised:
        """Return some of the series with their noise, (rows,) ascending, or all of them."""
        every, rows = self._every, np.arange(len(self)) if rows is None else rows
        missing = rows[np.isnan(self._histories.variance[every[rows]])]
        if len(missing):
            self._histories.learn_noise(every[missing], self._noise, missing)
        series = self.bare if len(rows) == len(every) else some_rows(self.bare, rows)
        variance, degrees = self._known(every[rows])
        return replace(series, variance=variance, degrees_of_freedom=degrees)

    def least_noise(
        self, rows: IntArray, limits: NoiseLimits, *, by_blocks: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least possible variance of series at the most degrees of freedom: (rows,).

        Args:
            rows: (rows,) ascending.
            limits: Of all series.
            by_blocks: Whether the longest blocks say it, which costs something; else sampling does.
        """
        histories = self._histories
        variance, degrees = self._known(self._every[rows])
        unknown = np.flatnonzero(np.isnan(variance))
        asked, compared = rows[unknown], histories.compared
        level, low = histories.level[self._every[asked]], np.zeros(len(asked))
        if by_blocks:
            low = self._noise.floor(asked, longest=compared.longest, apart=compared.apart)
        most_degrees = limits.most_degrees
        if self._prior is not None:
            low = least_moderated(self._prior, level, low, (limits.least_degrees, most_degrees))
            most_degrees += self._prior.degrees_of_freedom
        variance[unknown], degrees[unknown] = _noisier(low, level), most_degrees
        return variance, degrees

    def noisiest(self, limits: NoiseLimits) -> Normalised:
        """Return the series with the largest noise that is possible."""
        histories, history = self._histories, slice(self._histories.compared.history)
        variance, degrees = self._known(self._every)
        unknown = np.flatnonzero(np.isnan(variance))
        high = limits.most_variance(
            histories.counts[self._every[unknown]],
            self.bare.observed[unknown, history],
            self.bare.exposure[unknown, history],
        )
        if self._prior is not None:
            high = np.maximum(high, np.exp(self._prior.log_variances.max()))
        variance[unknown] = _noisier(high, histories.level[self._every[unknown]])
        degrees[unknown] = limits.least_degrees
        return replace(self.bare, variance=variance, degrees_of_freedom=degrees)

    def _known(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return variance and degrees of freedom of series, moderated by the prior; NaN if not measured."""
        level = self._histories.level[rows]
        variance, degrees = self._histories.variance[rows], self._histories.degrees_of_freedom[rows]
        if self._prior is not None:
            variance, degrees = moderated(self._prior, level, variance, degrees)
        return _noisier(variance, level), degrees


def _noisier(variance: FloatArray, level: FloatArray) -> FloatArray:
    """Return a variance that is no less than that of sampling, which is binomial."""
    return np.maximum(variance, np.maximum(1 - level, _LEAST_NOISE))


def share_factors(factor: FloatArray, level: FloatArray) -> FloatArray:
    """Return the factor by which each series' share moved because others changed: (series, windows).

    The others' change moves a share p by 1 - p of itself: what every sample holds stays at 1.
    """
    result: FloatArray = np.log(factor) * np.maximum(1 - level, 0.0)[:, None]
    return np.exp(result, out=result)
