"""Groups the candidates of one scan, in the way that their workload asks for (FBDetect §5.4.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.dedup.across_scans import merge_alike
from pipeline.dedup.baselines.exclusive_stacks import group_by_exclusive_stacks
from pipeline.dedup.baselines.som_dedup import group_by_som, potential_causes
from pipeline.dedup.links import Link
from pipeline.dedup.within_scan import group_by_cause
from pipeline.detect.expected import values_and_weights
from pipeline.model import Candidate, Change, Decision, Dropped, FloatArray, Scan
from pipeline.stacks import Group, Series, StackIndex
from pipeline.stages.gather.evidence import EARLY_WINDOWS, changes_before_each, rows_of_series
from pipeline.stages.gather.similarity import likeness_of
from pipeline.storage.interface import Store
from pipeline.workloads import Workload


@dataclass(frozen=True, slots=True)
class _Linked:
    """A group, and for each of its members what made it one."""

    group: Group
    links: tuple[Link, ...]


def group_candidates(
    store: Store, scan: Scan, cluster: Sequence[Candidate], frames: StackIndex, workload: Workload
) -> tuple[list[Candidate], list[Dropped]]:
    """Return one candidate a group, with its members inside, and the ledger's lines for the members.

    What stands for a group has passed with the group's size, itself counted, against 1.

    Args:
        store: Where series and changes are.
        scan: The present scan.
        cluster: Candidates whose change points are near each other.
        frames: Stacks around them, from ``index_stacks``; without any for service-level metrics.
        workload: Of the scan.
    """
    if workload.series == "service":
        found = _by_correlation(store, scan, cluster, frames, workload)
    elif workload.grouping == "som":
        found = _by_map(store, scan, cluster, workload)
    elif workload.grouping == "kdd2018":
        times = np.array([candidate.change_time for candidate in cluster])
        exclusive = group_by_exclusive_stacks(frames, _series(cluster), times)
        found = [_linked(group, "stacks") for group in exclusive]
    else:
        found = _by_cause(store, scan, cluster, frames, workload)
    groups, dropped = [], []
    for one in found:
        chosen = cluster[one.group.representative]
        # Their own decisions stand in the ledger's lines; thousands of them would outgrow a message.
        members = tuple(replace(cluster[i], passed=()) for i in one.group.members)
        code = "" if members else "alone"
        stands = Decision("som_dedup", True, 1.0 + len(members), 1.0, code)
        groups.append(replace(chosen, group=members, passed=(*chosen.passed, stands)))
        for member, link in zip(one.group.members, one.links, strict=True):
            dropped.append(Dropped(cluster[member], link.joined("som_dedup", [chosen.metric])))
    return groups, dropped


def _by_cause(
    store: Store, scan: Scan, cluster: Sequence[Candidate], frames: StackIndex, workload: Workload
) -> list[_Linked]:
    changes = changes_before_each(store, scan, cluster, workload, tolerance=EARLY_WINDOWS)
    before, after = _levels(cluster)
    groups = group_by_cause(frames, _series(cluster), before, after, changes)
    return [_Linked(group, group.links) for group in groups]


def _by_map(store: Store, scan: Scan, cluster: Sequence[Candidate], workload: Workload) -> list[_Linked]:
    names = [candidate.metric for candidate in cluster]
    series = _series(cluster)
    matrix = store.series(
        workload.series, scan.service, scan.start, scan.end, workload.resolution_s, sorted(set(series))
    )
    rows = rows_of_series(matrix)
    known = np.vstack([values_and_weights(matrix)[0], np.full(len(matrix.totals), np.nan)])
    values = known[[rows.get(one, -1) for one in series]]
    changes = changes_before_each(store, scan, cluster, workload)
    times = np.array([candidate.change_time for candidate in cluster])
    groups = group_by_som(values, names, times, *_levels(cluster), potential_causes(names, changes))
    return [_linked(group, "som") for group in groups]


def _by_correlation(
    store: Store, scan: Scan, cluster: Sequence[Candidate], frames: StackIndex, workload: Workload
) -> list[_Linked]:
    """Group service-level metrics by how they move together; what moved most stands for a group."""
    changes: list[tuple[Change, ...]] = [()] * len(cluster)
    found = likeness_of(store, scan, cluster, frames, changes, workload, workload.pairwise)
    merged = merge_alike(found, config=workload.pairwise)
    groups = []
    for members in merged.groups:
        chosen = max(members, key=lambda i: abs(cluster[i].relative))
        others = tuple(i for i in members if i != chosen)
        links = tuple(merged.links[i] for i in others)
        groups.append(_Linked(Group(chosen, others, tuple(link.similarity for link in links)), links))
    return groups


def _linked(group: Group, feature: str) -> _Linked:
    """Return a group made by a way of grouping that has no bound: what is nearest to a member takes it in."""
    return _Linked(group, tuple(Link(feature, min(share, 1.0), 0.0) for share in group.explained))


def _series(cluster: Sequence[Candidate]) -> list[Series]:
    return [(candidate.metric_kind, candidate.metric) for candidate in cluster]


def _levels(cluster: Sequence[Candidate]) -> tuple[FloatArray, FloatArray]:
    return (
        np.array([candidate.before for candidate in cluster]),
        np.array([candidate.after for candidate in cluster]),
    )
