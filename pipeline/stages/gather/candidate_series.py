"""What the filters ask for: the series of a scan's candidates, and what earlier scans passed on."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.detect.matrix import select_series
from pipeline.detect.share_normalisation import with_share_factor
from pipeline.filters import FilterConfig, FilterEvidence, Known
from pipeline.model import Scan
from pipeline.stages.ablation import NOTHING, Without, normalise_config
from pipeline.stages.gather.history import read_history
from pipeline.storage.interface import Store
from pipeline.workloads import Workload


def filter_config(workload: Workload, without: Without = NOTHING) -> FilterConfig:
    """Return what a workload says of filters."""
    return FilterConfig(
        resolution_s=workload.resolution_s,
        historical_s=workload.historical_s,
        analysis_s=workload.analysis_s,
        rising=workload.direction == "up",
        normalise=normalise_config(without),
        **workload.threshold.model_dump(),
    )


def gather_filters(
    store: Store, stage: str, scan: Scan, workloads: Mapping[str, Workload], without: Without = NOTHING
) -> FilterEvidence:
    """Return what the filters of a scan decide on.

    Args:
        store: Where series are, and what ``stage`` passed on in earlier scans.
        stage: Name of the filter stage.
        scan: With candidates; its workload is among ``workloads``.
        workloads: All that are known.
        without: Steps to leave out.
    """
    workload = workloads[scan.workload]
    matrix = store.series(workload.series, scan.service, scan.start, scan.end, workload.resolution_s)
    if "composition" not in without:
        matrix = with_share_factor(matrix, history=round(workload.historical_s / workload.resolution_s))
    # What grows for longer than a scan sees began before it, and was reported when it was in sight.
    memories = read_history(store, stage, scan, workloads, same_workload=True, back_s=scan.end - scan.start)
    return FilterEvidence(
        scan=scan,
        series=select_series(matrix, {c.series for c in scan.candidates}),
        known=tuple(Known(memory.candidate, memory.scan_end) for memory in memories),
    )
