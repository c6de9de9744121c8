"""The step that a workload detects in a service's traffic, and after how long (FBDetect Appendix A.2).

A gCPU of p, measured with n samples, has a variance of p (1 - p) D / n, D being the dispersion: by how much
the noise exceeds that of sampling. A step is reported if it stands out so far that at most a hundredth of
a series of each scan does by chance, the search for its position included (``p_values``). It is detectable if
noise takes as much away in few cases only. So a size is detectable from

    b sqrt(V) + z sqrt(V'),         V, V': the variance of the change without a step and with one

on, b being the root at which the p-value reaches the bound, z the normal quantile of the power.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from pipeline.analysis.detect.change_point import p_values

_LARGEST_ROOT = 40.0


@dataclass(frozen=True, slots=True)
class DetectableConfig:
    """Conditions under which a step counts as detectable."""

    significance: float = 0.01  # steady series that a scan may report, see the step ``significance``
    power: float = 0.9  # share of such steps that are reported
    hidden: float = 0.05  # share that week-before and isolation hide, whatever the noise; by simulation


@dataclass(frozen=True, slots=True)
class Traffic:
    """Data that a service sends."""

    samples_per_s: float
    series: int  # of a scan: as many may be significant by chance
    dispersion: float = 1.0  # 1 where there is nothing but sampling noise
    degrees_of_freedom: float = 1e9  # with which the noise is estimated


@dataclass(frozen=True, slots=True)
class Look:
    """The two levels that a scan compares: the baseline, and the level after a step."""

    baseline_s: float
    analysis_s: float
    extended_s: float
    resolution_s: float
    searched: bool = True  # whether the position of the step is searched, as the long-term detector does not

    @property
    def longest_s(self) -> float:
        """The longest part of a step, in seconds, that a scan sees."""
        return self.analysis_s + self.extended_s


def detectable_size(
    gcpu: float, after_s: float, traffic: Traffic, look: Look, config: DetectableConfig | None = None
) -> float:
    """Return the smallest rise of a subroutine that is detectable, as a gCPU ratio; infinite if none is.

    Args:
        gcpu: Of the subroutine before the step.
        after_s: How much has been seen since the step.
        traffic: Of the service.
        look: What a scan compares.
        config: Settings.
    """
    config = config or DetectableConfig()
    before = traffic.samples_per_s * look.baseline_s / traffic.dispersion
    after = traffic.samples_per_s * after_s / traffic.dispersion
    if before <= 0 or after <= 0:
        return math.inf
    root, degrees = significant_root(traffic, look, config), traffic.degrees_of_freedom
    if not math.isfinite(root):
        return math.inf
    # The root strays with the estimate of the noise, too; and of two estimates, of the history's noise and of
    # that around the step, the larger counts: its mean is the expectation of the larger of two normals.
    quantile = float(special.ndtri(config.power / (1 - config.hidden))) * math.sqrt(
        1 + root**2 / (2 * degrees)
    )
    root *= math.sqrt(1 + math.sqrt(2 / (math.pi * degrees)))

    def missing(size: float) -> float:
        level = gcpu + size
        pooled = (gcpu * before + level * after) / (before + after)
        chance = _variance(pooled) * (1 / before + 1 / after)
        risen = _variance(gcpu) / before + _variance(level) / after
        return root * math.sqrt(chance) + quantile * math.sqrt(risen) - size

    most = 1 - gcpu
    return math.inf if missing(most) > 0 else _root(missing, most, xtol=1e-9)


def time_to_detect(
    gcpu: float, size: float, traffic: Traffic, look: Look, config: DetectableConfig | None = None
) -> float | None:
    """Return the seconds until a rise of a size is detectable; None if it never is with this traffic.

    A scan looks for steps that are older than its extended window, and three windows at least must follow.

    Args:
        gcpu: Of the subroutine before the step.
        size: A gCPU ratio.
        traffic: Of the service.
        look: What a scan compares.
        config: Settings.
    """
    shortest = max(3 * look.resolution_s, look.extended_s)

    def lacks(after_s: float) -> bool:
        return detectable_size(gcpu, after_s, traffic, look, config) > size

    if lacks(look.longest_s):
        return None
    first, last = (math.ceil(span / look.resolution_s) for span in (shortest, look.longest_s))
    seen = (window * look.resolution_s for window in range(first, last + 1))
    return next((after_s for after_s in seen if not lacks(after_s)), None)


def samples_to_detect(
    gcpu: float,
    size: float,
    after_s: float,
    traffic: Traffic,
    look: Look,
    config: DetectableConfig | None = None,
) -> float | None:
    """Return the samples per second that make a rise of a size detectable; None if no number does.

    Args:
        gcpu: Of the subroutine before the step.
        size: A gCPU ratio.
        after_s: How much is seen since the step.
        traffic: Of the service; how much it sends now does not matter.
        look: What a scan compares.
        config: Settings.
    """

    def missing(log_rate: float) -> float:
        sent = replace(traffic, samples_per_s=math.exp(log_rate))
        return min(detectable_size(gcpu, after_s, sent, look, config), 1.0) - size

    least, most = -20.0, 30.0  # from a sample in years to more than there are processors
    if missing(most) > 0 or after_s <= 0:
        return None
    if missing(least) <= 0:
        return math.exp(least)
    from scipy.optimize import brentq

    return math.exp(float(brentq(missing, least, most, xtol=1e-6)))


def significant_root(traffic: Traffic, look: Look, config: DetectableConfig) -> float:
    """Return the size of a step, in standard errors, that is significant among a scan's series.

    It is infinite where too few degrees of freedom estimate the noise, as of a service that is a minute old.
    """
    bound = config.significance / max(traffic.series, 1)
    span, splits = 0.0, 1
    if look.searched:
        first = look.baseline_s / look.longest_s
        last = (look.baseline_s + look.analysis_s) / max(look.extended_s, look.resolution_s)
        span = max(math.log(last / first), 0.0)
        splits = max(round(look.analysis_s / look.resolution_s), 1)

    def beyond(root: float) -> float:
        degrees = np.array([traffic.degrees_of_freedom])
        p_value = p_values(np.array([root]), degrees, np.array([span]), np.array([splits]))
        return math.log(max(float(p_value[0]), 1e-300)) - math.log(bound)

    return _root(beyond, _LARGEST_ROOT) if beyond(_LARGEST_ROOT) < 0 else math.inf


def _root(function: Callable[[float], float], most: float, **options: float) -> float:
    from scipy.optimize import brentq  # slow to import, and every worker imports this module

    return float(brentq(function, 0.0, most, **options))


def _variance(gcpu: float) -> float:
    """Return the variance of one sample; the estimate for a share of 1 is kept above 0."""
    return max(gcpu * (1 - gcpu), 1e-9)
