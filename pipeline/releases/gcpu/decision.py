"""Decision on each series of a release: slower, faster, steady, or open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri, ndtri_exp, stdtrit, xlogy

from pipeline.analysis.statistics.always_valid import p_values, radius, tightest_at
from pipeline.model import BoolArray, FloatArray
from pipeline.releases.gcpu.contrast import Contrast

State = Literal["slower", "faster", "steady", "open"]

_FURTHEST = 37.0
"""Standard errors beyond which a p-value underflows."""

_WITHOUT = 0.5
"""Smallest share of a change that must remain without any one host; else it is that host's change."""

_LEAST_THRESHOLD = 1e-9
"""Rise of gCPU that no number of samples can show: lower thresholds are raised to it."""

_MARGIN = 1.1
"""Factor by which the samples are raised at least, if few are missing."""


@dataclass(frozen=True, slots=True)
class GcpuCompareConfig:
    """Definition of slower, and the error rates of the decisions."""

    threshold: float = 0.005  # rise of gCPU
    relative: float = 0.0  # rise as a share of the series' level; the larger one of both counts
    alpha: float = 0.05  # chance that any series counts as slower, of releases that do not differ
    power: float = 0.9  # chance that a rise of the threshold is found, and that it does not count as none
    sequential: bool = False  # whether both chances hold over all looks together


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions on all series, (series,) each; intervals are of 1 - alpha, series by series."""

    baseline: FloatArray  # gCPU
    candidate: FloatArray  # gCPU
    lower: FloatArray  # of the change
    upper: FloatArray
    p_value: FloatArray  # p-value against no rise, after Holm for all tested series
    detectable: FloatArray  # the smallest rise that would have been found with the power; infinite: none
    threshold: FloatArray  # rise that counts
    tested: BoolArray  # whether a rise of the threshold is possible at all
    alone: BoolArray  # whether the change is significant, but mostly of one host
    state: tuple[State, ...]
    more_samples: float  # factor of samples that would decide all series; 1: enough, inf: it takes units, too
    more_units: float  # factor of units, where more samples do not suffice

    @property
    def state_of_all(self) -> State:
        """Slower if any series is, open if any is, else steady."""
        return "slower" if "slower" in self.state else "open" if "open" in self.state else "steady"


def decide(found: Contrast, config: GcpuCompareConfig) -> Decided:
    """Decide which series rose and which did not.

    A series is slower if its rise is significant among all that are tested (Holm, Scandinavian Journal of
    Statistics 6, 1979), may be as large as the threshold, and is no single host's; it is steady if a rise of
    the threshold is excluded. Tested are series whose gCPU is at least a quarter of the threshold, on average
    of both releases.
    """
    baseline = found.baseline
    candidate = np.clip(baseline + found.change, 0.0, 1.0)
    threshold = np.maximum(max(config.threshold, _LEAST_THRESHOLD), config.relative * found.share)
    tested = (baseline + candidate >= threshold / 2) & (found.share < 1 - 1e-9)
    scale = _scale(found, config, threshold, int(tested.sum()))
    z = _standard(found)
    p_value = _holm(scale.p_values(z), tested)
    p_faster = _holm(scale.p_values(-z), tested)
    reach = scale.quantile(config.alpha / 2) * found.error
    passed = scale.quantile(1 - config.power) * found.error
    rises = tested & (p_value <= config.alpha) & (found.change + passed >= threshold)
    falls = tested & (p_faster <= config.alpha) & (found.change - passed <= -threshold)
    alone = (rises | falls) & (found.without / np.where(found.change, found.change, 1.0) < _WITHOUT)
    slower, faster = rises & ~alone, falls & ~alone
    steady = ~tested | (found.change + passed < threshold)
    still_open = ~(slower | steady)
    detectable = (scale.critical + scale.single) * found.error
    more_samples, more_units = _missing(found, scale, still_open, threshold, found.error)
    return Decided(
        baseline=baseline,
        candidate=candidate,
        # A share is between 0 and 1, however little was sampled.
        lower=np.minimum(np.maximum(found.change - reach, -baseline), found.change),
        upper=np.maximum(np.minimum(found.change + reach, 1 - baseline), found.change),
        p_value=p_value,
        detectable=np.where(tested, np.where(detectable > 1 - baseline, np.inf, detectable), np.nan),
        threshold=threshold,
        tested=tested,
        alone=alone,
        state=tuple(map(_state, slower.tolist(), faster.tolist(), still_open.tolist())),
        more_samples=more_samples,
        more_units=more_units,
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Critical values in standard errors."""

    information: FloatArray  # (series,) 1 / variance
    rho: FloatArray | None  # (series,) parameter of bounds that hold at all looks; None: at one look
    degrees_of_freedom: FloatArray  # (series,)
    critical: FloatArray  # (series,) standard errors that are significant if no other series is
    single: FloatArray  # (series,) standard errors that the power adds

    def p_values(self, z: FloatArray) -> FloatArray:
        """Return one-sided p-values of standard normal deviates."""
        if self.rho is None:
            chances: FloatArray = ndtr(-z)
            return chances
        return p_values(z, self.information, self.rho)

    def quantile(self, alpha: float) -> FloatArray:
        """Return the standard errors that chance exceeds with the given probability."""
        return _quantile(alpha, self.information, self.rho, self.degrees_of_freedom)


def _scale(contrast: Contrast, config: GcpuCompareConfig, threshold: FloatArray, tested: int) -> _Scale:
    with np.errstate(divide="ignore"):
        information = np.maximum(1.0 / contrast.error**2, 1e-300)
    alpha = config.alpha / max(tested, 1)
    degrees = np.maximum(contrast.degrees_of_freedom, 0.1)
    single = -stdtrit(degrees, 1 - config.power)
    rho = None
    if config.sequential:
        # As much as a test of its own would need, and half of it again.
        needed = 1.5 * ((ndtri(alpha) + ndtri(1 - config.power)) / threshold) ** 2
        rho = tightest_at(needed, alpha)
    critical = _quantile(alpha, information, rho, degrees)
    return _Scale(information, rho, degrees, critical, single)


def _quantile(
    alpha: float, information: FloatArray, rho: FloatArray | None, degrees_of_freedom: FloatArray
) -> FloatArray:
    """Return the standard errors that chance exceeds with a probability, at one look or at all looks."""
    once: FloatArray = -stdtrit(degrees_of_freedom, alpha)
    if rho is None:
        return once
    always: FloatArray = radius(information, rho, alpha) * once / -ndtri(alpha)
    return always


def _standard(contrast: Contrast) -> FloatArray:
    """Return changes as standard normal deviates.

    It is the signed root of the likelihood ratio of two binomial shares, which is near normal for small
    counts too (Barndorff-Nielsen, Biometrika 73, 1986), brought from Student's distribution to the normal.
    Both shares are the change apart and, on average, what was sampled: error and exposure are of that level.
    """
    from scipy.stats import t as student  # slow to import, and the dashboard and a worker import this module

    weight = contrast.exposure / np.maximum(contrast.exposure.sum(axis=1, keepdims=True), 1e-300)
    baseline = np.clip(contrast.share - contrast.change * weight[:, 1], 0.0, 1.0)
    candidate = np.clip(baseline + contrast.change, 0.0, 1.0)
    pooled = np.clip(contrast.share, 1e-300, 1.0)
    deviance = np.zeros(len(pooled))
    for share, exposure in zip((baseline, candidate), contrast.exposure.T, strict=True):
        held = xlogy(share, np.maximum(share, 1e-300) / pooled)
        rest = xlogy(1 - share, np.maximum(1 - share, 1e-300) / np.maximum(1 - pooled, 1e-300))
        deviance += 2 * exposure * (held + rest)
    root = np.sqrt(np.maximum(deviance, 0.0))
    beyond = -ndtri_exp(student.logsf(root, np.maximum(contrast.degrees_of_freedom, 0.1)))
    z: FloatArray = np.sign(contrast.change) * np.clip(np.nan_to_num(beyond, nan=0.0), 0.0, _FURTHEST)
    return z


def _holm(p_value: FloatArray, tested: BoolArray) -> FloatArray:
    """Return adjusted p-values of the series that are tested, 1 of the others."""
    rows = np.flatnonzero(tested)
    order = rows[np.argsort(p_value[rows], kind="stable")]
    adjusted = np.ones(len(p_value))
    steps = p_value[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


def _missing(
    contrast: Contrast, scale: _Scale, still_open: BoolArray, threshold: FloatArray, error: FloatArray
) -> tuple[float, float]:
    """Return the factor of samples that would decide all series, and that of units where it takes them."""
    if not still_open.any():
        return 1.0, 1.0
    rows = np.flatnonzero(still_open)
    errors, wanted, size = error[rows], threshold[rows], contrast.change[rows]
    if not np.isfinite(errors).all():
        return np.inf, np.inf
    factor = ((scale.critical + scale.single)[rows] * errors / wanted) ** 2
    sampling = np.clip(contrast.sampling[rows], 0.0, 1.0)
    # Share of the allowed variance that units take, as far as it is no chance.
    certain = 1 - sampling - 2 * np.sqrt(2.0 / np.maximum(scale.degrees_of_freedom[rows], 1.0))
    from_units = np.maximum(certain, 0.0) * factor
    sampling = 1 - np.maximum(certain, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = np.where(from_units < 1, sampling * factor / (1 - from_units), np.inf)
        # A rise between none and the threshold: until either is excluded.
        passes = np.where(size < wanted, (scale.single[rows] * errors / (wanted - size)) ** 2, np.inf)
        shows = np.where(size > 0, (scale.critical[rows] * errors / size) ** 2, np.inf)
    near = samples <= 1
    samples[near] = np.maximum(np.minimum(passes, shows)[near], _MARGIN)
    units = np.where(from_units < 1, 1.0, factor)
    return float(max(samples.max(), _MARGIN)), float(units.max())


def _state(slower: bool, faster: bool, still_open: bool) -> State:
    if slower:
        return "slower"
    if faster:
        return "faster"
    return "open" if still_open else "steady"
