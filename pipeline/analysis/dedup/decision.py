"""Deduplication of a scan: one candidate per cause, and none whose cost only moved.

Candidates of one scan that one cause makes rise become one group; a group whose cost only moved within a
cost domain is dropped; one that belongs to a regression reported before joins it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pipeline.analysis.cost_shift.scan import judge_cost_shifts
from pipeline.analysis.dedup.across_scans import ScanOutcome, join_reported
from pipeline.analysis.dedup.evidence import (
    TOLERANCE_WINDOWS,
    Cluster,
    DedupConfig,
    DedupEvidence,
    Reported,
    ReportHistory,
    members_of,
)
from pipeline.analysis.dedup.explained import group_explained
from pipeline.analysis.dedup.within_scan import group_cluster, stand_for_groups
from pipeline.analysis.mix import within
from pipeline.analysis.mix.traffic import judge_traffic_shifts
from pipeline.model import Candidate, Dropped, Joined, divide
from pipeline.model.frames import element


@dataclass(slots=True)
class DedupDecision:
    """What becomes of a scan's candidates, and what is to be kept of it for later scans."""

    unique: list[Candidate] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    reported: list[Reported] = field(default_factory=list)
    members: list[Reported] = field(default_factory=list)

    def take(self, outcome: ScanOutcome, event_of: Callable[[Candidate], str]) -> None:
        """Take in what becomes of a cluster; what joins a regression of this very scan is a member of it."""
        rows = {event_of(candidate): row for row, candidate in enumerate(self.unique)}
        passed = [Reported(candidate, event_of(candidate)) for candidate in outcome.unique]
        self.unique += outcome.unique
        self.dropped += outcome.dropped
        for joined in outcome.joined:
            passed.append(Reported(joined.candidate, joined.regression, leads=False))
            row = rows.get(joined.regression)
            if row is None:
                self.joined.append(joined)
            else:
                self.unique[row] = _with_member(self.unique[row], joined.candidate)
        self.reported += passed
        self.members += [member for reported in passed for member in members_of(reported)]


def decide(evidence: DedupEvidence, config: DedupConfig) -> DedupDecision:
    """Decide on every candidate of a scan, cluster by cluster in the order of time."""
    decision = DedupDecision()
    for whole in evidence.clusters:
        cluster, mixed = _without_mix(evidence, whole)
        decision.dropped += mixed
        if not cluster.candidates:
            continue
        cluster, frames = _without_frames(evidence, cluster, config)
        decision.dropped += frames
        named, members, left = _explained(cluster, config)
        left, moved = _without_traffic(left, config)
        groups, merged = _group(evidence, left, config)
        asked = groups
        if config.cost_domains or evidence.label_groups is not None:
            # What users say of their own domains is asked of every candidate.
            named, asked = [], [*named, *groups]
        rest, shifted = _without_shifts(evidence, cluster, asked, config)
        rest = [*named, *rest]
        decision.dropped += [*moved, *members, *merged, *shifted]
        if not config.runs("pairwise_dedup"):
            decision.take(ScanOutcome(unique=list(rest)), evidence.event_of)
        elif rest:
            history = _history(evidence, cluster, decision)
            decision.take(join_reported(evidence, cluster, rest, history, config), evidence.event_of)
    return decision


def _without_mix(evidence: DedupEvidence, cluster: Cluster) -> tuple[Cluster, Sequence[Dropped]]:
    """Return a cluster without what did not rise within those who send its samples."""
    asked = [candidate for candidate in cluster.candidates if candidate in evidence.rises]
    if not asked:
        return cluster, ()
    kept, dropped = divide((c, within.decide(c.delta, evidence.rises[c])) for c in asked)
    decided = {candidate.series: candidate for candidate in kept}
    gone = {each.candidate.series for each in dropped}
    left = [decided.get(c.series, c) for c in cluster.candidates if c.series not in gone]
    return cluster.having(left), dropped


def _without_frames(
    evidence: DedupEvidence, cluster: Cluster, config: DedupConfig
) -> tuple[Cluster, Sequence[Dropped]]:
    """Leave out the frames that were put into stacks and have no cost of their own.

    Whatever rises below one would be taken for a part of it, and be dropped with it.
    """
    frames = [c for c in cluster.candidates if element(*c.series) in cluster.carried.frames]
    if not frames:
        return cluster, ()
    _, dropped = _without_shifts(evidence, cluster, frames, config)
    moved = {each.candidate.series for each in dropped}
    return cluster.having([c for c in cluster.candidates if c.series not in moved]), dropped


def _explained(
    cluster: Cluster, config: DedupConfig
) -> tuple[Sequence[Candidate], Sequence[Dropped], Cluster]:
    """Return what stands for each cause that explains some, the others of these, and what is left."""
    if not (config.explains and config.runs("som_dedup")):
        return (), (), cluster
    explained = group_explained(cluster)
    named, members = stand_for_groups(explained.candidates, explained.groups)
    return named, members, cluster.having(explained.left)


def _without_traffic(cluster: Cluster, config: DedupConfig) -> tuple[Cluster, Sequence[Dropped]]:
    """Return a cluster without what rose as its callers have more traffic: it has no cause to share."""
    history = cluster.history
    if history is None or not config.runs("traffic_shift"):
        return cluster, ()
    kept, dropped = divide(judge_traffic_shifts(history, cluster.candidates))
    return cluster.having(kept), dropped


def _group(
    evidence: DedupEvidence, cluster: Cluster, config: DedupConfig
) -> tuple[Sequence[Candidate], Sequence[Dropped]]:
    if not config.runs("som_dedup"):
        return cluster.candidates, ()
    return group_cluster(evidence, cluster, config)


def _without_shifts(
    evidence: DedupEvidence, cluster: Cluster, groups: Sequence[Candidate], config: DedupConfig
) -> tuple[Sequence[Candidate], Sequence[Dropped]]:
    if not config.runs("cost_shift"):
        return groups, ()
    deployed = evidence.deployed.before(groups, config, early=TOLERANCE_WINDOWS)
    return divide(
        judge_cost_shifts(
            cluster.stacks,
            groups,
            deployed,
            defined=config.cost_domains,
            label_groups=evidence.label_groups,
            carried=cluster.carried,
            history=cluster.history,
        )
    )


def _history(evidence: DedupEvidence, cluster: Cluster, decision: DedupDecision) -> ReportHistory:
    """Return what was reported before, of which what this scan has reported so far is part.

    A slow rise may have begun long before the scan's windows, and been reported then; what stepped before
    them has nothing to do with what steps now.
    """
    earlier = evidence.history
    if not any(candidate.kind == "long_term" for candidate in cluster.candidates):
        earlier = earlier.since(evidence.scan.start)
    return ReportHistory([*earlier.regressions, *decision.reported], [*earlier.members, *decision.members])


def _with_member(leader: Candidate, member: Candidate) -> Candidate:
    """Return a regression with one more member, and those of that one."""
    return replace(leader, group=(*leader.group, replace(member, group=(), passed=()), *member.group))
