"""Throughput of a scan of a fleet's series, from the store's counts to the candidates after the filters."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from loadgen.bench.detect import KINDS, draw_counts
from loadgen.harness import BenchResult, results_of_workers
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.messages.scans import encode_progress
from pipeline.model import Progress
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload
from pipeline.storage.arrays import ArrayStore

SERVICE_SERIES = 2000
"""Series of one service; a fleet is as many services as it takes."""

STEPPED = 500
"""One series in so many steps up in the analysis window, so that the filters have something to keep."""

END = 1_700_006_400.0  # a midnight: a boundary of every re-run interval
WINDOWS = 500
WORKLOAD = Workload.model_validate(
    {
        "name": "bench-scan",
        "resolution": "30m",
        "rerun_interval": "12h",
        "historical": "220h",
        "analysis": "12h",
        "extended": "18h",
        "threshold": {"absolute": 0.00005},
    }
)


@dataclass(frozen=True, slots=True)
class ServiceScan:
    """Cost and candidates of one service's scan."""

    worker: int  # process id of the worker
    seconds: float
    processor_s: float
    series: int
    steps: int
    candidates: int
    left: int  # candidates that the filters leave
    peak_bytes: int  # of the worker's memory, since it began


def services_of(series: int) -> int:
    """Return the number of services that ``series`` series make."""
    return -(-series // SERVICE_SERIES)


def measure_scan(advance: Callable[[], None], *, series: int, processes: int) -> list[BenchResult]:
    """Scan a fleet by ``processes`` processes at a time.

    The time is that of the process busy longest, without drawing the series. The store keeps arrays in
    memory, whose reading costs next to nothing.

    Args:
        advance: Called after each service, ``services_of(series)`` times.
        series: Number of series in the whole fleet.
        processes: Number of processes at a time.

    Raises:
        SmidgenError: a process died.
    """
    sizes = [min(SERVICE_SERIES, series - first) for first in range(0, series, SERVICE_SERIES)]
    done = results_of_workers(_scan_numbered, list(enumerate(sizes)), processes, advance)
    busy: dict[int, float] = {}
    for scan in done:
        busy[scan.worker] = busy.get(scan.worker, 0.0) + scan.seconds
    figures = {
        "seconds": max(busy.values()),
        "series/s": series / max(busy.values()),
        "series/s of processor time": series / sum(scan.processor_s for scan in done),
        "candidates": float(sum(scan.candidates for scan in done)),
        "left by the filters": float(sum(scan.left for scan in done)),
        "MB at most in a process": max(scan.peak_bytes for scan in done) / 1e6,
    }
    setup = {
        "series": float(series),
        "windows": float(WINDOWS),
        "steps": float(sum(scan.steps for scan in done)),
        "processes": float(processes),
    }
    return [BenchResult("scan of a fleet", figures, setup)]


def _scan_numbered(service: tuple[int, int]) -> ServiceScan:
    return scan_service(*service)


def scan_service(number: int, series: int) -> ServiceScan:
    """Draw one service and scan it as the stages detect and filter do: composition, detection, filters."""
    dataset, steps = draw_service(number, series)
    flow = Flow(
        ArrayStore(dataset),
        (WORKLOAD,),
        settings=Settings(),
        clock=lambda: END,
        stages=("detect", "filter"),
    )
    # The earliest data are this late so that the watermark passes only one boundary.
    progress = Progress(
        dataset.service, "profiles", 0, END + WORKLOAD.wait_s, END - WORKLOAD.rerun_interval_s
    )
    began, busy = time.perf_counter(), time.process_time()
    flow.send("windows", [encode_progress(progress)])
    seconds, processor_s = time.perf_counter() - began, time.process_time() - busy
    candidates, left = (
        sum(len(scan.candidates) for scan in flow.scans(t)) for t in ("change-points", "filtered")
    )
    return ServiceScan(os.getpid(), seconds, processor_s, series, steps, candidates, left, _peak_bytes())


def draw_service(number: int, series: int) -> tuple[Dataset, int]:
    """Return a service, and the number of its series that step up by a third in the analysis window."""
    rng = np.random.default_rng([number, series])
    samples, totals = draw_counts(rng, series, WINDOWS)
    change = WINDOWS - round((WORKLOAD.extended_s + WORKLOAD.analysis_s / 2) / WORKLOAD.resolution_s)
    stepped = np.arange(number % STEPPED, series, STEPPED)
    more = samples[stepped, :change].mean(axis=1, keepdims=True) / 3
    samples[stepped, change:] += rng.poisson(more, (len(stepped), WINDOWS - change))
    dataset = Dataset(
        service=f"service{number}",
        start=END - WORKLOAD.span_s,
        end=END,
        window_s=WORKLOAD.resolution_s,
        stack_window_s=WORKLOAD.resolution_s,
        kinds=KINDS * series,
        names=tuple(f"subroutine{i:06d}" for i in range(series)),
        samples=np.minimum(samples, totals),
        totals=totals,
        stacks=(),
        stack_samples=np.zeros((0, WINDOWS)),
        metrics=(),
        changes=(),
    )
    return dataset, len(stepped)


def _peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
