"""Regressions that a workload detects in a service's traffic, and the time it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.detect.detectable import (
    Look,
    ServiceTraffic,
    busy_windows,
    detectable_size,
    time_to_detect,
)
from pipeline.analysis.detect.service_noise import with_shared_prior
from pipeline.analysis.detect.share_normalisation import share_factor, with_share_factor
from pipeline.analysis.detect.short_term import ScanConfig, WindowIndexes, baseline_start, normalised
from pipeline.model import FloatArray, SeriesMatrix
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, format_duration
from pipeline.settings.workloads import Workload
from pipeline.storage.interface import SeriesQuery, Store

SIZES = (0.00005, 0.0005, 0.005, 0.05, 0.5)
"""Shares of the service's CPU: the smallest that FBDetect reports, and steps of ten times."""

IDLE_SHARE = 0.2
"""Share of the analysis window that a service has to be silent for to count as idle."""

QUANTILES = (("small", 0.1), ("typical", 0.5), ("large", 0.9))
"""Quantiles of the gCPU of the service's subroutines."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Detectability of subroutines of one size by one workload."""

    subroutine: str  # small, typical or large
    gcpu: float
    dispersion: float  # of subroutines of that size
    after_analysis: float | None  # gCPU that is detectable; None: nothing is
    after_extended: float | None
    after_s: dict[str, float | None]  # size → seconds until it is detectable; None: never


def outlooks_of(
    store: Store, service: str, workload: Workload, end: float
) -> tuple[ServiceTraffic, list[Outlook]]:
    """Return a service's traffic, and a workload's detectability for small, typical and large subroutines.

    Raises:
        ConfigError: nothing was counted in the windows of a scan that ends at ``end``.
        StoreUnavailable: the store did not answer.
    """
    resolution = workload.resolution_s
    end = math.floor(end / resolution) * resolution
    start = end - workload.span_s
    matrix = store.series(SeriesQuery("gcpu", service, start, end, resolution))
    if not matrix.samples.any():
        span = f"between {to_iso(start)[:16]} and {to_iso(end)[:16]} UTC"
        raise ConfigError(
            f"--service {service}: no samples in the store {span}, in windows of "
            f"{format_duration(resolution)}; --until names another time"
        )
    columns = (workload.historical_s, workload.historical_s + workload.analysis_s, workload.span_s)
    windows = WindowIndexes(*(round(column / resolution) for column in columns))
    look = look_of(workload, windows)
    traffic = _traffic(matrix, look, windows)
    level, dispersion, degrees_of_freedom = noise_of(matrix, windows)
    outlooks = []
    for name, quantile in QUANTILES:
        gcpu = float(np.quantile(level, quantile, method="nearest"))
        near = np.abs(np.log(level / gcpu)) <= math.log(2)
        noise, degrees = float(np.median(dispersion[near])), float(np.median(degrees_of_freedom[near]))
        own = replace(traffic, dispersion=noise, degrees_of_freedom=degrees)
        sizes = (detectable_size(gcpu, after, own, look) for after in (look.analysis_s, look.longest_s))
        after_analysis, after_extended = (size if math.isfinite(size) else None for size in sizes)
        times = {f"{size:g}": time_to_detect(gcpu, size, own, look) for size in SIZES}
        outlooks.append(Outlook(name, gcpu, noise, after_analysis, after_extended, times))
    return traffic, outlooks


def sizes_of(workload: Workload) -> tuple[float, ...]:
    """Return the sizes that a workload reports, whatever the traffic."""
    least = workload.threshold.absolute or 0.0
    return tuple(size for size in SIZES if size >= least)


def look_of(workload: Workload, windows: WindowIndexes) -> Look:
    """Return the points that a scan of a workload compares: daily means if it only detects slow rises."""
    if set(workload.detectors) == {"long_term"}:
        return Look(DAY_S, DAY_S, 0.0, workload.resolution_s, searched=False)
    first = baseline_start(windows, workload.resolution_s, ScanConfig())
    baseline_s = (windows.analysis - first) * workload.resolution_s
    return Look(baseline_s, workload.analysis_s, workload.extended_s, workload.resolution_s)


def _traffic(matrix: SeriesMatrix, look: Look, windows: WindowIndexes) -> ServiceTraffic:
    """Return the traffic while the service works: one that is young or pauses does not seem smaller."""
    resolution_s = matrix.resolution_s
    busy = busy_windows(matrix.totals, max(round(IDLE_SHARE * look.analysis_s / resolution_s), 1))
    first = int(np.flatnonzero(matrix.totals)[0])
    busy[:first] = False
    baseline = busy[windows.analysis - round(look.baseline_s / resolution_s) : windows.analysis]
    rate = float(matrix.totals.sum() / (busy.sum() * resolution_s))
    return ServiceTraffic(rate, len(matrix.names), baseline_busy=float(baseline.mean()))


def noise_of(matrix: SeriesMatrix, windows: WindowIndexes) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return gCPU, dispersion and its degrees of freedom of each subroutine, estimated as by a scan."""
    config = ScanConfig()
    level = matrix.samples.sum(axis=1) / matrix.totals.sum()
    matrix = with_share_factor(matrix, share_factor(matrix, history=windows.analysis))
    series = normalised(with_shared_prior(matrix, windows, config=config), windows, config)
    chosen = (level > 0) & np.array([kind == "subroutine" for kind in matrix.kinds], dtype=np.bool_)
    if not chosen.any():
        chosen = level > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        dispersion = np.maximum(series.variance / (1 - level), 1.0)  # 1: as from sampling alone
    dispersion[level > 1 - 1e-6] = 1.0  # what every sample holds has no noise of its own
    return level[chosen], dispersion[chosen], series.degrees_of_freedom[chosen]
