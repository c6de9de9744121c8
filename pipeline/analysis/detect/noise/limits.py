"""Bounds of the noise of counts, from the windows with data alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.statistics.blocks import BlockSums
from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig, kept_share, noise_scales
from pipeline.model import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class NoiseLimits:
    """Bounds of the noise of counts, given the windows in which they have data."""

    least_degrees: float  # degrees of freedom
    most_degrees: float
    growth: float  # by which longer means may vary more than the longest blocks
    pairs: float  # of blocks, at least
    cut: float

    def most_variance(self, whole: FloatArray, observed: FloatArray, exposure: FloatArray) -> FloatArray:
        """Return a bound that no estimate of the variance exceeds: (series,).

        A pair's square is no more than both blocks' r² e, r being what was observed by the exposure e. All
        blocks' sum of that is no more than all that was observed by the largest r of a window.

        Args:
            whole: (series,) all that was observed.
            observed: (series, windows).
            exposure: (series, windows), 0 where there is no data.
        """
        least = exposure.min(axis=1, initial=np.inf)
        if not least.all():
            least = np.where(exposure > 0, exposure, np.inf).min(axis=1)
        largest = observed.max(axis=1, initial=0.0) / least
        return np.asarray(2 * whole * largest / (kept_share(self.cut) * self.pairs) * self.growth)


def noise_limits(
    has_data: BoolArray, *, longest: int, apart: int, config: NoiseConfig | None = None
) -> NoiseLimits | None:
    """Return bounds of the noise of counts with data in the same windows.

    Args:
        has_data: (windows,) True for windows of the history with data.
        longest: Windows of a level.
        apart: Windows between the middles of the two levels.
        config: Settings.

    Returns:
        None if so few blocks have a partner that windows without data would be removed.
    """
    config = config or NoiseConfig()
    blocks = BlockSums(has_data[None].astype(np.float64), has_data[None].astype(np.float64))
    pairs, shares = [], []
    scales = noise_scales(len(has_data), longest, apart, config)
    for scale in scales:
        whole = blocks.of_width(scale.width)[1] > 0
        pairs.append(int((whole[:, scale.lag :] & whole[:, : -scale.lag]).sum()))
        shares.append(pairs[-1] / max(int(whole.sum()), 1))
    if min(shares) < config.paired:
        return None
    least = config.between_jumps * min(pairs)
    growth = longest / scales[-1].width if longest > scales[-1].width > 1 else 1.0
    degrees = least * config.efficiency, max(pairs) * config.efficiency
    return NoiseLimits(*degrees, growth, least, config.cut)
