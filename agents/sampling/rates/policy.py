"""The rate that a service needs, by its size and the threshold (FBDetect Appendix A.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.analysis.detect.detectable import Look, ServiceTraffic, samples_to_detect
from pipeline.analysis.detect.short_term import WindowIndexes
from pipeline.settings.workloads import Workload
from pipeline.views.report.detectability import look_of

GCPU = 0.000083
"""gCPU of a subroutine before it rises: the median of FBDetect's largest service (§5.1)."""

SERIES = 12_000
"""Subroutines of a service."""

NOISE = (1.0, 3.0)
"""Least and most variance of gCPU, times that of sampling."""


@dataclass(frozen=True, slots=True)
class RateCase:
    """Service and threshold for which a rate has to suffice."""

    processors: float  # busy processors of all hosts
    threshold: float  # gCPU ratio
    gcpu: float = GCPU
    series: int = SERIES
    noise: tuple[float, float] = NOISE

    def traffic(self, rate_hz: float) -> tuple[ServiceTraffic, ServiceTraffic]:
        """Return the traffic at a rate, with the least and the most noise."""
        least, most = (ServiceTraffic(self.processors * rate_hz, self.series, noise) for noise in self.noise)
        return least, most


def look_at(workload: Workload) -> Look:
    """Return what a scan of a workload compares."""
    ends = (workload.historical_s, workload.historical_s + workload.analysis_s, workload.span_s)
    return look_of(workload, WindowIndexes(*(round(end / workload.resolution_s) for end in ends)))


def threshold_of(workload: Workload, gcpu: float = GCPU) -> float:
    """Return the smallest rise of a subroutine that a workload reports, as a gCPU ratio."""
    return workload.threshold.absolute or gcpu * (workload.threshold.relative or 0.0)


def enough_hz(case: RateCase, look: Look) -> tuple[float, float]:
    """Return the rates from which the threshold is detectable, infinite where none is enough.

    They count for each busy processor, with the least and the most noise.
    """
    bounds = [
        samples_to_detect(case.gcpu, case.threshold, look.longest_s, traffic, look)
        for traffic in case.traffic(1.0)
    ]
    least, most = (math.inf if rate is None else rate / case.processors for rate in bounds)
    return least, most


def samples_needed(threshold: float, workloads: Iterable[Workload]) -> float:
    """Return the samples a second of a service from which a threshold is detectable with the most noise.

    It is enough that one workload looks at gCPU and reports so small a rise; infinite if none does.

    Args:
        threshold: gCPU ratio.
        workloads: Any.
    """
    case = RateCase(1.0, threshold)
    looks = (
        look_at(workload)
        for workload in workloads
        if workload.series == "gcpu" and threshold_of(workload) <= threshold
    )
    return min((enough_hz(case, look)[1] for look in looks), default=math.inf)


def smallest_threshold(workloads: Iterable[Workload]) -> float | None:
    """Return the smallest rise that one of the workloads reports, None if none looks at gCPU."""
    return min((threshold_of(workload) for workload in workloads if workload.series == "gcpu"), default=None)
