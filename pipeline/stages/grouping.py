"""Groups the candidates of one scan, in the way that their workload asks for (FBDetect §5.4.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.dedup.below import Frames
from pipeline.dedup.causes import CauseConfig, group_by_cause
from pipeline.dedup.explained import Group
from pipeline.dedup.kdd2018 import group_by_exclusive_stacks
from pipeline.dedup.pairwise import merge_alike
from pipeline.dedup.som_dedup import group_by_som, potential_causes
from pipeline.detect.normalise import values_and_weights
from pipeline.gcpu.stacks import Series
from pipeline.model import Candidate, Change, Dropped, FloatArray, Scan
from pipeline.stages.evidence import EARLY_WINDOWS, changes_before_each, rows_of_series
from pipeline.stages.likeness import likeness_of
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

WORDS = {
    "below": "rises through the same subroutine as",
    "cause": "rises through the same subroutine or change as",
    "caller": "rises in a caller shared with",
    "change": "modified by the same change as",
    "deployment": "modified in the same release as",
    "release": "modified in the same release as",
    "sum": "explained by the stacks of",
    "stacks": "explained by the stacks of",
    "remainder": "hardly more than what rises below it:",
    "som": "on one part of the map with",
    "correlation": "moves together with",
    "metric_id": "named like",
}
"""What makes a candidate part of another's group, for the ledger."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A group, and for each of its members the word for what made it one."""

    group: Group
    links: tuple[str, ...]


def group_candidates(
    store: Store, scan: Scan, cluster: Sequence[Candidate], frames: Frames, workload: Workload
) -> tuple[list[Candidate], list[Dropped]]:
    """Return one candidate a group, with its members inside, and the ledger's lines for the members.

    Args:
        store: Where series and changes are.
        scan: The present scan.
        cluster: Candidates whose change points are near each other.
        frames: Stacks around them, from ``lay_out``; without any for service-level metrics.
        workload: Of the scan.
    """
    if workload.series == "service":
        found = _by_correlation(store, scan, cluster, frames, workload)
    elif workload.grouping == "som":
        found = _by_map(store, scan, cluster, workload)
    elif workload.grouping == "kdd2018":
        times = np.array([candidate.change_time for candidate in cluster])
        exclusive = group_by_exclusive_stacks(frames.matrix, _series(cluster), times)
        found = [_named(group, "stacks") for group in exclusive]
    else:
        found = _by_cause(store, scan, cluster, frames, workload)
    groups, dropped = [], []
    for one in found:
        chosen = cluster[one.group.representative]
        # Their own decisions stand in the ledger's lines; thousands of them would outgrow a message.
        members = tuple(replace(cluster[i], passed=()) for i in one.group.members)
        groups.append(replace(chosen, group=members))
        for member, share, link in zip(one.group.members, one.group.explained, one.links, strict=True):
            reason = f"{WORDS[link]} {chosen.metric}"
            dropped.append(Dropped(cluster[member], "som_dedup", share, CauseConfig().explained, reason))
    return groups, dropped


def _by_cause(
    store: Store, scan: Scan, cluster: Sequence[Candidate], frames: Frames, workload: Workload
) -> list[_Named]:
    changes = changes_before_each(store, scan, cluster, workload, tolerance=EARLY_WINDOWS)
    before, after = _levels(cluster)
    groups = group_by_cause(frames, _series(cluster), before, after, changes)
    return [_Named(group, group.steps) for group in groups]


def _by_map(store: Store, scan: Scan, cluster: Sequence[Candidate], workload: Workload) -> list[_Named]:
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
    return [_named(group, "som") for group in groups]


def _by_correlation(
    store: Store, scan: Scan, cluster: Sequence[Candidate], frames: Frames, workload: Workload
) -> list[_Named]:
    """Group service-level metrics by how they move together; what moved most stands for a group."""
    changes: list[tuple[Change, ...]] = [()] * len(cluster)
    found = likeness_of(store, scan, cluster, frames, changes, workload, workload.pairwise)
    merged = merge_alike(found, config=workload.pairwise)
    groups = []
    for members in merged.groups:
        chosen = max(members, key=lambda i: abs(cluster[i].relative))
        others = tuple(i for i in members if i != chosen)
        links = [merged.links[i] for i in others]
        group = Group(chosen, others, tuple(link.similarity for link in links))
        groups.append(_Named(group, tuple(link.feature for link in links)))
    return groups


def _named(group: Group, link: str) -> _Named:
    return _Named(group, (link,) * len(group.members))


def _series(cluster: Sequence[Candidate]) -> list[Series]:
    return [(candidate.metric_kind, candidate.metric) for candidate in cluster]


def _levels(cluster: Sequence[Candidate]) -> tuple[FloatArray, FloatArray]:
    return (
        np.array([candidate.before for candidate in cluster]),
        np.array([candidate.after for candidate in cluster]),
    )
