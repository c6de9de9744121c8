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
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from pipeline.analysis.detect.change_point import p_values
from pipeline.analysis.statistics.root import root_between
from pipeline.model import BoolArray, FloatArray

_LARGEST_ROOT = 40.0
_IMPROBABLE = 1e-3


@dataclass(frozen=True, slots=True)
class DetectableConfig:
    """Conditions under which a step counts as detectable."""

    significance: float = 0.01  # steady series that a scan may report, see the step ``significance``
    power: float = 0.9  # share of such steps that are reported
    hidden: float = 0.05  # share that week-before and isolation hide, whatever the noise; by simulation


@dataclass(frozen=True, slots=True)
class ServiceTraffic:
    """Data that a service sends."""

    samples_per_s: float  # while it works, see ``busy_windows``
    series: int  # of a scan: as many may be significant by chance
    dispersion: float = 1.0  # 1 where there is nothing but sampling noise
    degrees_of_freedom: float = 1e9  # with which the noise is estimated
    baseline_busy: float = 1.0  # share of the baseline in which it worked


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
    gcpu: float, after_s: float, traffic: ServiceTraffic, look: Look, config: DetectableConfig | None = None
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
    before = traffic.samples_per_s * look.baseline_s * traffic.baseline_busy / traffic.dispersion
    after = traffic.samples_per_s * after_s / traffic.dispersion
    if not (before > 0 and after > 0):  # or one is no number
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

    size = root_between(missing, 0.0, 1 - gcpu, xtol=1e-9)
    return math.inf if size is None else size


def time_to_detect(
    gcpu: float, size: float, traffic: ServiceTraffic, look: Look, config: DetectableConfig | None = None
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
    traffic: ServiceTraffic,
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
    if after_s <= 0:
        return None
    if missing(least) <= 0:
        return math.exp(least)
    rate = root_between(missing, least, most, xtol=1e-6)
    return None if rate is None else math.exp(rate)


def busy_windows(totals: FloatArray, shortest: int) -> BoolArray:
    """Return True for the windows in which a service worked: (windows,).

    It did not in runs of at least ``shortest`` empty windows that its samples per window make improbable.
    Shorter runs and those of a service with hardly a sample per window belong to its usual traffic.

    Args:
        totals: Samples of each window, at least one of them above 0.
        shortest: Number of windows.
    """
    mean = float(totals[totals > 0].mean())
    usual = root_between(lambda rate: mean - rate / -math.expm1(-rate), 1e-9, mean)  # of a Poisson variable
    improbable = math.inf if usual is None else -math.log(_IMPROBABLE) / usual
    busy = totals > 0
    edges = np.flatnonzero(np.diff(np.concatenate([[True], busy, [True]])))
    for start, stop in edges.reshape(-1, 2):  # each run of empty windows
        busy[start:stop] = stop - start < max(shortest, improbable)
    return np.asarray(busy, dtype=np.bool_)


def significant_root(traffic: ServiceTraffic, look: Look, config: DetectableConfig) -> float:
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

    root = root_between(beyond, 0.0, _LARGEST_ROOT)
    return math.inf if root is None else root


def _variance(gcpu: float) -> float:
    """Return the variance of one sample; the estimate for a share of 1 is kept above 0."""
    return max(gcpu * (1 - gcpu), 1e-9)
