"""Evidence for deduplication, read from the store: stacks, changes, levels, earlier reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pipeline.analysis.cost_shift.daily_noise import MIN_DAYS
from pipeline.analysis.cost_shift.scan import StackEvidence
from pipeline.analysis.dedup.evidence import (
    EARLY_WINDOWS,
    Cluster,
    DedupConfig,
    DedupEvidence,
    Deployed,
    ReportHistory,
    ScanLevels,
    asked_features,
    find_reach,
)
from pipeline.analysis.dedup.within_scan import find_clusters
from pipeline.analysis.mix import within
from pipeline.analysis.stacks import NO_STACKS, index_stacks
from pipeline.messages.events import regression_id
from pipeline.messages.inputs import change_from_row
from pipeline.model import Candidate, Scan, SeriesKey, StackMatrix
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.domain_plugins import load_plugins, plugged_in
from pipeline.stages.gather.evidence import (
    stacks_around,
    stacks_just_before,
    stacks_near,
    stacks_on_earlier_days,
)
from pipeline.stages.gather.history import MEMBERS, read_history
from pipeline.stages.gather.rises import read_rises
from pipeline.storage.interface import RowQuery, SeriesQuery, SeriesSource, Store


def dedup_config(workload: Workload, without: frozenset[str] = frozenset()) -> DedupConfig:
    """Return a workload's configuration of deduplication, without some steps."""
    return DedupConfig(
        resolution_s=workload.resolution_s,
        analysis_s=workload.analysis_s,
        lookback_s=workload.lookback_s,
        source=workload.series,
        grouping=workload.grouping,
        pairwise=workload.pairwise,
        cost_domains=tuple((domain.name, tuple(domain.subroutines)) for domain in workload.cost_domains),
        without=without,
    )


def gather_dedup(
    store: Store,
    scan: Scan,
    workload: Workload,
    workloads: Mapping[str, Workload],
    config: DedupConfig,
) -> DedupEvidence:
    """Read the evidence for deduplication of one scan, each part once.

    Raises:
        StoreUnavailable: nothing was decided.
    """
    history = _history(store, scan, workloads, config)
    clusters = [
        Cluster(
            candidates,
            _stacks(store, scan, candidates, workload, config),
            inserted_frames=config.runs("inserted_frames"),
        )
        for candidates in find_clusters(scan.candidates, config)
    ]
    known = _in_reach(history, clusters, config)
    return DedupEvidence(
        scan=scan,
        event_of=partial(_event_of, scan),
        clusters=clusters,
        history=history,
        deployed=_deployed(store, scan, known, config),
        levels=_levels(store, scan, known, config),
        label_groups=partial(plugged_in, plugins) if (plugins := load_plugins()) else None,
        watched_s=2 * (scan.end - scan.start),
        rises=read_rises(store, scan, workload) if config.runs(within.KEY) else {},
    )


def _history(
    store: Store, scan: Scan, workloads: Mapping[str, Workload], config: DedupConfig
) -> ReportHistory:
    """Return what earlier scans reported, including times before this scan's windows."""
    if not config.runs("pairwise_dedup"):
        return ReportHistory()
    back_s = scan.end - scan.start
    regressions, members = (
        read_history(store, stage, scan, workloads, same_workload=False, back_s=back_s)
        for stage in ("dedup", MEMBERS)
    )
    return ReportHistory(regressions, members)


def _stacks(
    store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload, config: DedupConfig
) -> StackEvidence:
    if all(not is_gcpu(candidate.metric_kind) for candidate in candidates):
        return StackEvidence(index_stacks(NO_STACKS))
    matrix = stacks_around(store, scan, candidates, workload)
    if not matrix.stacks:
        return StackEvidence(index_stacks(matrix))
    days = stacks_on_earlier_days(store, scan, candidates, workload, known=matrix.stacks)
    if not config.runs("cost_shift"):
        return StackEvidence(index_stacks(matrix), days)
    nearer = stacks_near(store, scan, candidates, workload)
    earlier: Sequence[StackMatrix] = ()
    if len(days) < MIN_DAYS:
        earlier = stacks_just_before(store, scan, candidates, workload)
    return StackEvidence(index_stacks(matrix), days, nearer, earlier)


def _in_reach(history: ReportHistory, clusters: Sequence[Cluster], config: DedupConfig) -> list[Candidate]:
    """Return the reported candidates and group members with which a cluster may be merged."""
    candidates = []
    for cluster in clusters:
        labels = cluster.stacks.index.labels
        reach = find_reach(history.regressions, cluster.candidates, labels, config)
        candidates += [reported.candidate for reported in reach]
        candidates += [
            member.candidate for member in find_reach(history.members, cluster.candidates, {}, config)
        ]
    return candidates


def _deployed(store: Store, scan: Scan, known: Sequence[Candidate], config: DedupConfig) -> Deployed:
    """Return the changes deployed before any of the change points."""
    groups = [member for candidate in scan.candidates for member in candidate.group]
    every = (*scan.candidates, *groups, *known)
    times = [candidate.change_time for candidate in every]
    earliest = min(min(times) - config.lookback_s, *(candidate.change_time_span[0] for candidate in every))
    if "onset" in asked_features(config.pairwise, every):
        earliest = min(earliest, scan.start - (scan.end - scan.start))
    latest = max(times) + EARLY_WINDOWS * config.resolution_s + 1e-3
    rows = store.rows(RowQuery("changes", scan.service, earliest, latest))
    # Diffs and routes are large, and only the ranking of suspects reads them: they are left out.
    return Deployed([change_from_row({**row, "content": "", "routes": ""}) for row in rows])


def _levels(store: Store, scan: Scan, known: Sequence[Candidate], config: DedupConfig) -> ScanLevels:
    """Return levels of the compared series: reported ones, and candidates if a rule needs them."""
    compared = [candidate for candidate in known if is_gcpu(candidate.metric_kind)]
    features = asked_features(config.pairwise, [*scan.candidates, *known])
    if "correlation" in features or config.grouping == "som":
        compared = [*known, *scan.candidates]
    by_source: dict[SeriesSource, set[SeriesKey]] = {}
    for candidate in compared:
        source: SeriesSource = "gcpu" if is_gcpu(candidate.metric_kind) else "service"
        by_source.setdefault(source, set()).add(candidate.series)
    span = (scan.service, scan.start, scan.end, config.resolution_s)
    return ScanLevels(
        [store.series(SeriesQuery(source, *span, sorted(names))) for source, names in by_source.items()]
    )


def _event_of(scan: Scan, candidate: Candidate) -> str:
    return regression_id(scan.service, scan.workload, candidate, scan.end)
