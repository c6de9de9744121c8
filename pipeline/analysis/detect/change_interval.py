"""The confidence interval of a change time: where the likelihood of two levels puts the change.

Under a flat prior the posterior of a moment is its likelihood, that of the best levels. Where neighbouring
windows are similar, sums of windows stray as those of independent ones with the long-run variance do (Bai
1997 has the limit, a two-sided random walk with drift). So the likelihood ratio is divided by the variance at
the scale of the interval itself: a clear step is dated within a window or two, where wandering noise has
hardly moved, a faint one within hours, where it has. In that limit the moment is a location parameter, and a
set that holds 95 % of the posterior covers the truth as often (Pitman 1939). As the noise is estimated, the
posterior is that of Student's t.

Changes do not wait for windows: where one lies within a window, that is a mixture of both levels. The
interval is given in whole windows, since who deploys does not do so at one moment either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.detect.change_point import Family, SideSums, ratio, signed_roots, split_sums
from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig, SeriesNoise
from pipeline.model import BoolArray, FloatArray, IntArray

Noise = Callable[[IntArray, int], tuple[FloatArray, FloatArray]]
"""Returns the variance of some series at a scale of so many windows, and its degrees of freedom: (rows,)."""

_PARTS = 8
"""Moments of a window that are compared."""

_SMEAR = 1
"""Parts by which edges of windows are not sharp: a profile counts in the window of its middle."""

_ROUNDS = 6
"""Rounds of interval and noise at its scale, which only grows; mostly two or three are needed."""


@dataclass(frozen=True, slots=True)
class IntervalConfig:
    """Settings of the interval."""

    confidence: float = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class DevianceProfile:
    """Deviance of a series at each split, in units of the noise's variance."""

    deviance: FloatArray  # (splits,) twice the log-likelihood ratio of two levels against one, or -inf
    information: FloatArray  # (splits,) what the deviance of the first window loses at the other level


def split_profile(
    observed: FloatArray, exposure: FloatArray, allowed: BoolArray, family: Family, *, first: int
) -> DevianceProfile:
    """Return the profile of the splits of one series.

    Args:
        observed: (windows,) counts, or values times their weights.
        exposure: (windows,) counts expected, or weights; 0 where there is no data.
        allowed: (splits,) of the splits from ``first`` on; a split is the first window of the new level.
        family: What is observed.
        first: At least 1.
    """
    last = first + len(allowed) - 1
    sums = split_sums(observed[None], exposure[None], first=first, last=last)
    deviance = np.where(allowed, signed_roots(sums, family)[0] ** 2, -np.inf)
    return DevianceProfile(
        deviance, _information(sums, exposure[first : last + 1], family, int(deviance.argmax()))
    )


def _information(sums: SideSums, exposure: FloatArray, family: Family, split: int) -> FloatArray:
    """Return the squared distance of both levels in each window, by the variance of one sample."""
    left, right = ratio(sums.left, sums.left_exposure), ratio(sums.right, sums.right_exposure)
    squared = float((right - left)[0, split]) ** 2
    if family == "values":
        return np.asarray(exposure * squared)
    total = (sums.left + sums.right)[0, split]
    level = total / max(float((sums.left_exposure + sums.right_exposure)[0, split]), 1e-300)
    return np.asarray(exposure * squared / max(level, 1e-300))


class NoiseAtScale:
    """The noise of some series at any scale, in windows."""

    def __init__(
        self, observed: FloatArray, exposure: FloatArray, *, apart: int, counts: bool, config: NoiseConfig
    ) -> None:
        """Take series.

        Args:
            observed: (series, windows).
            exposure: (series, windows).
            apart: Windows between blocks that are compared, at least: neighbours of one noise differ by less.
            counts: Whether what is observed are counts.
            config: Settings of the estimate.
        """
        self._noise = SeriesNoise(observed, exposure, counts=counts, config=config)
        self._apart = apart
        self._longest = max(1, exposure.shape[1] // config.min_blocks)

    def __call__(self, rows: IntArray, width: int) -> tuple[FloatArray, FloatArray]:
        """Return the variance of some series at a scale, and its degrees of freedom: (rows,)."""
        longest, apart = min(width, self._longest), max(width, self._apart)
        return self._noise.unit_variance(rows, longest=longest, apart=apart)


def split_intervals(
    profiles: Sequence[DevianceProfile], noise: Noise, split: IntArray, config: IntervalConfig | None = None
) -> FloatArray:
    """Return the windows between which changes lie, from their likeliest moments: (series, 2).

    Args:
        profiles: Of the splits of each series.
        noise: Of the series.
        split: (series,) which one is reported; the interval holds it.
        config: Settings.

    Returns:
        Both in windows from the profile's first split.
    """
    config = config or IntervalConfig()
    moments = [_moments(profile) for profile in profiles]
    width, interval = np.ones(len(split), dtype=np.int64), np.stack([split, split], axis=1).astype(np.float64)
    finite = np.array([bool(np.isfinite(profile.deviance).any()) for profile in profiles], dtype=np.bool_)
    for row in np.flatnonzero(~finite).tolist():  # nothing to compare: it may lie anywhere
        interval[row] = 0.0, len(profiles[row].deviance) - 1.0
    active = np.flatnonzero(finite)
    for _ in range(_ROUNDS):
        for scale in np.unique(width[active]).tolist():
            rows = active[width[active] == scale]
            for row, variance, degrees in zip(
                rows.tolist(), *(numbers.tolist() for numbers in noise(rows, scale)), strict=True
            ):
                chosen = likeliest(posterior(moments[row], variance, degrees), config.confidence)
                interval[row, 0] = min(math.floor((chosen.min() - _SMEAR) / _PARTS), split[row])
                interval[row, 1] = max(math.ceil((chosen.max() + _SMEAR) / _PARTS), split[row])
        lengths = (interval[active, 1] - interval[active, 0]).astype(np.int64)
        wider = lengths > width[active]
        active, lengths = active[wider], lengths[wider]
        width[active] = lengths
    return interval


def step_interval(
    values: FloatArray,
    weights: FloatArray,
    noise: tuple[float, float],
    split: int,
    config: IntervalConfig | None = None,
) -> tuple[float, float]:
    """Return the windows between which a step of values lies, if noise has the same variance at all scales.

    Args:
        values: (windows,) anything where the weight is 0.
        weights: (windows,).
        noise: The long-run variance of a mean of weight 1, and its degrees of freedom.
        split: First window of the new level, from 1 on.
        config: Settings.
    """
    observed = np.where(weights > 0, values, 0.0) * weights
    allowed = np.ones(len(values) - 1, dtype=np.bool_)
    profile = split_profile(observed, weights, allowed, "values", first=1)
    same = np.array([noise[0]]), np.array([noise[1]])
    begin, end = split_intervals([profile], lambda *_: same, np.array([split - 1]), config)[0].tolist()
    return begin + 1, end + 1


def posterior(deviance: FloatArray, variance: float, degrees_of_freedom: float) -> FloatArray:
    """Return the probability of each moment: (moments,), of sum 1.

    Args:
        deviance: (moments,) for noise of variance 1; -inf where a moment is not allowed.
        variance: By which it is to be divided.
        degrees_of_freedom: With which that was estimated.
    """
    short = (np.max(deviance) - deviance) / max(variance, 1e-300)
    # A normal likelihood integrated over the noise's scale is Student's.
    mass = np.exp(-degrees_of_freedom / 2 * np.log1p(short / degrees_of_freedom))
    result: FloatArray = mass / mass.sum()
    return result


def likeliest(mass: FloatArray, confidence: float) -> IntArray:
    """Return the fewest moments that together have a given share of a posterior."""
    # Most are so unlikely that all of them together are not needed: they need not be put in order.
    likely = np.flatnonzero(mass > (1 - confidence) / (2 * len(mass)))
    order = likely[np.argsort(-mass[likely], kind="stable")]
    count = int(np.searchsorted(np.cumsum(mass[order]), confidence)) + 1
    return np.asarray(order[:count])


def _moments(profile: DevianceProfile) -> FloatArray:
    """Return the deviance of changes at parts of windows: (_PARTS (splits - 1) + 1,).

    The squared distance of a window from a mixture with a share f of the new level is a quadratic in f. It is
    known at 0 and 1, and its curvature is the information.
    """
    finite = np.isfinite(profile.deviance)
    deviance, between = np.where(finite, profile.deviance, 0.0), finite[:-1] & finite[1:]
    share = np.arange(_PARTS) / _PARTS
    inside = deviance[:-1, None] + share * np.diff(deviance)[:, None]
    inside += share * (1 - share) * profile.information[:-1, None]
    inside[~between] = -np.inf
    inside[:, 0] = profile.deviance[:-1]
    return np.append(inside.ravel(), profile.deviance[-1])
