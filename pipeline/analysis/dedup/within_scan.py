"""Grouping within one scan, in the way that the workload asks for (FBDetect §5.4.7).

By default the candidates of a cluster are merged as regressions of different scans are (``merging``): what
one cause makes rise need not look the same, but it rises through one thing. SOMDedup and exclusive stacks are
the published alternatives (``baselines``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.analysis.dedup.causes import Causes
from pipeline.analysis.dedup.evidence import (
    TOLERANCE_WINDOWS,
    Cluster,
    DedupConfig,
    DedupEvidence,
    Reported,
    cluster_by_time,
)
from pipeline.analysis.dedup.links import Link
from pipeline.analysis.dedup.merging import merge
from pipeline.analysis.dedup.pairs import pair_up
from pipeline.analysis.published.exclusive_stacks import group_by_exclusive_stacks
from pipeline.analysis.published.som_dedup import group_by_som, potential_causes
from pipeline.analysis.stacks import Group, StackIndex, mean_depths
from pipeline.model import Candidate, Decision, Dropped, FloatArray, SeriesKey
from pipeline.model.frames import element
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import DAY_S

STEP = "som_dedup"

_LARGE = 0.7
"""Share of a group's largest rise from which on a member may stand for the group."""


def find_clusters(candidates: Sequence[Candidate], config: DedupConfig) -> list[list[Candidate]]:
    """Put candidates together that may be one: a change point may lie anywhere in the analysis window."""
    slow = [candidate for candidate in candidates if candidate.kind == "long_term"]
    steps = [candidate for candidate in candidates if candidate.kind != "long_term"]
    tolerance_s = TOLERANCE_WINDOWS * config.resolution_s
    return [
        *cluster_by_time(steps, max(config.analysis_s, tolerance_s)),
        *cluster_by_time(slow, max(config.analysis_s, DAY_S)),
    ]


def group_cluster(
    evidence: DedupEvidence, cluster: Cluster, config: DedupConfig
) -> tuple[list[Candidate], list[Dropped]]:
    """Return one candidate a group, with its members inside, and the members as dropped ones."""
    return stand_for_groups(cluster.candidates, find_groups(evidence, cluster, config))


def stand_for_groups(
    candidates: Sequence[Candidate], chosen: Sequence[tuple[Group, Sequence[Link]]]
) -> tuple[list[Candidate], list[Dropped]]:
    """Return what stands for each group, with the members inside, and the members as dropped ones.

    What stands for a group has passed with the group's size, itself counted, against 1.
    """
    groups, dropped = [], []
    for group, links in chosen:
        leader = candidates[group.representative]
        # Their own decisions stand in the ledger; thousands of them would outgrow a message.
        members = tuple(replace(candidates[row], passed=()) for row in group.members)
        stands = Decision(STEP, True, 1.0 + len(members), 1.0, "" if members else "alone")
        groups.append(replace(leader, group=members, passed=(*leader.passed, stands)))
        for row, link in zip(group.members, links, strict=True):
            dropped.append(Dropped(candidates[row], link.joined(STEP, [leader.metric])))
    return groups, dropped


def choose_representative(
    rows: Sequence[int],
    candidates: Sequence[Candidate],
    index: StackIndex,
    causes: Sequence[Causes],
    rises: FloatArray,
) -> int:
    """Return which of a group's candidates stands for it.

    Of service-level metrics it is what moved most, relative to its level. Of gCPU it is the deepest of those
    that rise by most of what the largest does, or through which most of that one's rise comes: the
    nearest to the cause.

    Args:
        rows: The group.
        candidates: (n,) what rows are indexes into.
        index: Of the stacks around them.
        causes: (n,) what may have made each of them rise.
        rises: (n,) by how much each rose, from ``new_rises``.
    """
    if all(not is_gcpu(candidates[row].metric_kind) for row in rows):
        return max(rows, key=lambda row: abs(candidates[row].relative))
    group = np.array(rows)
    sizes = rises[group]
    depths = mean_depths(index, [candidates[row].series for row in rows])
    through = causes[rows[int(sizes.argmax())]].subroutines
    nearer = np.array([element(*candidates[row].series) in through for row in rows])
    large = (sizes >= _LARGE * sizes.max()) | nearer
    order = np.lexsort((group[large], -sizes[large], -depths[large]))
    return int(group[large][order[0]])


def new_rises(
    candidates: Sequence[Candidate], reported: Sequence[Reported], config: DedupConfig
) -> FloatArray:
    """Return by how much each candidate rose beyond what had been reported of its series: (n,), at least 0.

    The level before a step may be of a time before an earlier step too, if that is only hours ago. What is
    taken off are steps clearly before the change, by more than they may be dated early before its interval.
    """
    tolerance_s = TOLERANCE_WINDOWS * config.resolution_s
    known: dict[SeriesKey, list[Candidate]] = {}
    for one in reported:
        if one.candidate.kind != "long_term":
            known.setdefault(one.candidate.series, []).append(one.candidate)
    rises = np.abs([candidate.delta for candidate in candidates])
    for row, candidate in enumerate(candidates):
        for step in known.get(candidate.series, ()):
            same_way = (step.delta > 0) == (candidate.delta > 0)
            if same_way and step.change_time + tolerance_s < candidate.change_time_span[0]:
                beyond = (candidate.after - step.after) * np.sign(candidate.delta)
                rises[row] = min(rises[row], max(beyond, 0.0))
    return np.asarray(rises, dtype=np.float64)


def find_groups(
    evidence: DedupEvidence, cluster: Cluster, config: DedupConfig
) -> list[tuple[Group, Sequence[Link]]]:
    """Return the groups of a cluster as indexes of its candidates, and for each member what made it one."""
    candidates, index = cluster.candidates, cluster.index
    if config.source == "gcpu" and config.grouping == "som":
        names = [candidate.metric for candidate in candidates]
        causes = potential_causes(
            names, evidence.deployed.before(candidates, config, early=TOLERANCE_WINDOWS)
        )
        levels = evidence.levels.of([candidate.series for candidate in candidates])
        times, before, after = np.array([(c.change_time, c.before, c.after) for c in candidates]).T
        return [
            _nearest_links(group, "som")
            for group in group_by_som(levels, names, times, before, after, causes)
        ]
    if config.source == "gcpu" and config.grouping == "kdd2018":
        times = np.array([candidate.change_time for candidate in candidates])
        groups = group_by_exclusive_stacks(index, [candidate.series for candidate in candidates], times)
        return [_nearest_links(group, "stacks") for group in groups]
    deployed = evidence.deployed.before(candidates, config)
    pairs = pair_up(evidence, index, candidates, config, deployed=deployed)
    merged = merge(pairs)
    rises = new_rises(candidates, evidence.history.since(evidence.scan.start).regressions, config)
    found: list[tuple[Group, Sequence[Link]]] = []
    for rows in merged.groups:
        chosen = choose_representative(rows, candidates, index, pairs.causes, rises)
        members = tuple(row for row in rows if row != chosen)
        links = [merged.links.get(row) or merged.links[chosen] for row in members]
        found.append((Group(chosen, members, tuple(link.similarity for link in links)), links))
    return found


def _nearest_links(group: Group, code: str) -> tuple[Group, Sequence[Link]]:
    """Return a group made in a way that has no bound: what is nearest to a member takes it in."""
    return group, [Link(code, min(share, 1.0), 0.0) for share in group.explained]
