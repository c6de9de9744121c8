"""The store as a scan is to see it: at a constant mix of senders and requests, by present names."""

from __future__ import annotations

from pipeline.analysis.mix import request_decision, standardise
from pipeline.model import Scan
from pipeline.settings.workloads import Workload
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.gather.constant_mix import ConstantMixStore
from pipeline.stages.gather.release_effects import effects_of
from pipeline.stages.gather.renamed import by_present_names
from pipeline.stages.gather.request_mix import RequestMixStore, RequestSpan
from pipeline.storage.interface import Store


def as_scanned(store: Store, scan: Scan, workload: Workload | None, without: Without = NOTHING) -> Store:
    """Return the store as those see it who judge a scan; an unknown workload has no mix."""
    if workload is not None and workload.series == "gcpu":
        resolution_s = scan.resolution_s or workload.resolution_s
        if standardise.KEY not in without:
            span = (scan.start, scan.end)
            store = ConstantMixStore(store, scan.service, span, resolution_s, effects_of(scan))
        if request_decision.KEY not in without:
            least = workload.threshold.absolute or 0.0
            requests = RequestSpan(
                scan.service, scan.start, scan.analysis_start, scan.end, resolution_s, least
            )
            store = RequestMixStore(store, requests)
    return by_present_names(store, scan)
