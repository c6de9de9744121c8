"""The scanner: it reads the series of a scan, searches them for change points, and returns the scan."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pipeline.analysis.detect.schedule import DueScan
from pipeline.analysis.detect.search import SearchConfig, SearchResult, due_detectors
from pipeline.analysis.detect.unjudged import merge_unjudged
from pipeline.analysis.published.kdd2018.cusum import find_kdd2018
from pipeline.analysis.published.kdd2018.setups import TEAMS
from pipeline.model import Scan, Unjudged
from pipeline.model.clock import to_iso
from pipeline.model.errors import QueryRefused
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import NOTHING, Without, scan_config
from pipeline.stages.gather.scan_series import ScanReader, ScanSeries, direction_unknown
from pipeline.stages.mix_search import Searched, find_at_constant_mix
from pipeline.storage.interface import Store

log = logging.getLogger(__name__)

MOST_UNDIRECTED = 10_000
"""Most metrics for which it is remembered that the log has named them."""


@dataclass(frozen=True, slots=True)
class FinishedScan:
    """A scan with its unpublished figures."""

    scan: Scan
    unstable_names: int = 0  # series that were seen for one process's life only


class Scanner:
    """Maker of the scans of services by workloads.

    Args:
        store: Holds the series to scan.
        workloads: All workloads that scan, by name.
        window_s: Width of the windows in which samples are counted.
        without: Steps that are left out.
    """

    def __init__(
        self, store: Store, workloads: Mapping[str, Workload], window_s: float, without: Without = NOTHING
    ) -> None:
        self._store = store
        self._workloads = workloads
        self._reader = ScanReader(store, workloads, window_s)
        self._without = without
        self._undirected: set[tuple[str, str]] = set()  # services and metrics that the log has named

    def scan(self, service: str, due: DueScan) -> FinishedScan | None:
        """Make a due scan; None if its workload scans metrics and the service has none.

        Raises:
            StoreUnavailable: repeat the call.
            QueryRefused: the store refuses a query of the scan; the error names the scan.
        """
        try:
            return self._scan(service, due)
        except QueryRefused as error:
            text = f"the scan of {service} by {due.workload} that ends at {to_iso(due.end)}: {error}"
            raise QueryRefused(text) from error

    def _scan(self, service: str, due: DueScan) -> FinishedScan | None:
        workload = self._workloads[due.workload]
        config = search_config(workload, due.end, self._without)
        series = self._reader.gather_series(
            service, workload, due.end, with_lead="short_term" in config.detectors
        )
        if series.is_empty:
            return None
        searched = Searched(service, series.workload, series.matrix, series.windows)
        search_result = find_at_constant_mix(self._store, searched, config, self._without)
        unjudged = search_result.unjudged
        if series.undirected:
            self._log_undirected(service, series.undirected)
            unjudged = merge_unjudged(
                [*(reason for reason in unjudged if reason.series), direction_unknown(series.undirected)]
            )
        scan = _scan_of(service, workload, series, due.end, search_result, unjudged)
        _log_scan(scan, search_result)
        return FinishedScan(scan, search_result.one_life)

    def _log_undirected(self, service: str, metrics: tuple[str, ...]) -> None:
        """Log the metrics that are left out, once each."""
        new = [name for name in metrics if (service, name) not in self._undirected]
        if not new:
            return
        if len(self._undirected) > MOST_UNDIRECTED:
            self._undirected.clear()
        self._undirected.update((service, name) for name in new)
        log.warning(
            "service=%s: not judged, since nothing says in which direction they get worse: %s",
            service,
            ", ".join(new[:20]),
        )


def search_config(workload: Workload, end: float, without: Without = NOTHING) -> SearchConfig:
    """Return the configuration of the search for change points in a workload's scan that ends at ``end``."""
    return SearchConfig(
        detectors=due_detectors(workload.detectors, end, interval_s=workload.rerun_interval_s),
        direction=workload.direction,
        published={"kdd2018": partial(find_kdd2018, config=TEAMS[workload.kdd2018 or "efficiency_infra"])},
        short_term=scan_config(without),
        share_normalisation="composition" not in without,
        shared_prior="common_noise" not in without,
        exchanged_names="exchanged_names" not in without,
        renames="renames" not in without,
        **workload.threshold.model_dump(),
    )


def _scan_of(
    service: str,
    declared: Workload,
    series: ScanSeries,
    end: float,
    found: SearchResult,
    unjudged: tuple[Unjudged, ...],
) -> Scan:
    workload, windows = series.workload, series.windows
    start = end - workload.span_s
    analysis_start, analysis_end = (
        start + (index - windows.history) * workload.resolution_s
        for index in (windows.analysis, windows.extended)
    )
    return Scan(
        service=service,
        workload=workload.name,
        start=start,
        analysis_start=analysis_start,
        analysis_end=analysis_end,
        end=end,
        series=len(series.matrix.names),
        candidates=found.candidates,
        share_factor=_shown_factor(found),
        dropped=found.dropped,
        resolution_s=None if workload.resolution_s == declared.resolution_s else workload.resolution_s,
        unjudged=unjudged,
        renames=found.renames,
    )


def _shown_factor(found: SearchResult) -> tuple[float, ...] | None:
    """Return the share factor for a scan; filters do not need it without candidates."""
    if not found.candidates:
        return None
    return () if found.share_factor is None else tuple(found.share_factor.tolist())


def _log_scan(scan: Scan, found: SearchResult) -> None:
    if found.unusable:
        log.error("dropped %d candidates with numbers that are not finite", found.unusable)
    log.info(
        "scan service=%s workload=%s end=%s series=%d candidates=%d unstable_names=%d renames=%d unjudged=%s",
        scan.service,
        scan.workload,
        to_iso(scan.end),
        scan.series,
        len(scan.candidates),
        found.one_life,
        len(scan.renames),
        ",".join(f"{reason.code}:{reason.series}" for reason in scan.unjudged) or "none",
    )
