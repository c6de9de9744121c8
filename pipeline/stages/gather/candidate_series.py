"""Evidence for the filters: the series of a scan's candidates, and candidates of earlier scans."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.analysis.detect.matrix import select_series
from pipeline.analysis.detect.share_normalisation import share_factor, with_share_factor
from pipeline.analysis.filters import FilterConfig, FilterEvidence, Known
from pipeline.model import Scan, SeriesMatrix
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import NOTHING, Without, normalise_config
from pipeline.stages.gather.history import read_history
from pipeline.storage.interface import SeriesQuery, Store


def filter_config(workload: Workload, without: Without = NOTHING) -> FilterConfig:
    """Return the configuration of filters of a workload."""
    return FilterConfig(
        resolution_s=workload.resolution_s,
        analysis_s=workload.analysis_s,
        rising=workload.direction == "up",
        normalise=normalise_config(without),
        optional=workload.steps,
        **workload.threshold.model_dump(),
    )


def gather_filters(
    store: Store, stage: str, scan: Scan, workloads: Mapping[str, Workload], without: Without = NOTHING
) -> FilterEvidence:
    """Return the evidence for the filters of a scan.

    Args:
        store: Holds series, and the candidates that ``stage`` passed on in earlier scans.
        stage: Name of the filter stage.
        scan: The scan with its candidates; its workload is in ``workloads``.
        workloads: All workloads, by name.
        without: Steps to leave out.
    """
    workload = workloads[scan.workload].as_scanned(scan)
    # A rise that lasts longer than a scan's windows began before them: an earlier scan reported it.
    memories = read_history(store, stage, scan, workloads, same_workload=True, back_s=scan.end - scan.start)
    return FilterEvidence(
        scan=scan,
        series=_candidates_series(store, scan, workload, "composition" not in without),
        earlier=tuple(Known(memory.candidate, memory.scan_end) for memory in memories),
    )


def _candidates_series(store: Store, scan: Scan, workload: Workload, normalise_shares: bool) -> SeriesMatrix:
    """Return the series of a scan's candidates, with the factor by which all shares moved if it is asked for.

    Only of a scan that does not bring the factor, as a former version's, all series of the service are read.
    """
    span = (workload.series, scan.service, scan.start, scan.end, workload.resolution_s)
    wanted = sorted({candidate.series for candidate in scan.candidates})
    windows = round((scan.end - scan.start) / workload.resolution_s)
    if not normalise_shares or scan.share_factor == ():
        return store.series(SeriesQuery(*span, wanted))
    if scan.share_factor is not None and len(scan.share_factor) == windows:
        return with_share_factor(store.series(SeriesQuery(*span, wanted)), scan.share_factor)
    matrix = store.series(SeriesQuery(*span))
    factor = share_factor(matrix, history=round((scan.analysis_start - scan.start) / workload.resolution_s))
    return with_share_factor(select_series(matrix, set(wanted)), factor)
