"""Deduplication across scans: what is part of a reported regression, or of each other (FBDetect §5.4.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipeline.analysis.dedup.evidence import (
    Cluster,
    DedupConfig,
    DedupEvidence,
    Reported,
    ReportHistory,
    find_reach,
)
from pipeline.analysis.dedup.links import Link
from pipeline.analysis.dedup.merging import Nearest, merge
from pipeline.analysis.dedup.pairs import members_near, pair_up
from pipeline.analysis.dedup.residual import explain_by_known
from pipeline.analysis.dedup.within_scan import choose_representative, new_rises
from pipeline.analysis.filters.significance import BY_CHANCE
from pipeline.model import Candidate, Decision, Dropped, Joined
from pipeline.model.frames import element
from pipeline.model.metric_kind import is_gcpu

STEP = "pairwise_dedup"


@dataclass(slots=True)
class ScanOutcome:
    """What becomes of candidates of a scan."""

    unique: list[Candidate] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    def report(
        self, rows: Sequence[int], leader: int, every: Sequence[Candidate], decisions: Decisions
    ) -> None:
        """Add one regression that stands for a group, with the group's members inside."""
        chosen = every[leader]
        members = [*chosen.group]
        for row in rows:
            if row != leader:
                member = every[row]
                members += [replace(member, group=(), passed=()), *member.group]
                self.dropped.append(Dropped(member, decisions.joined(row, leader)))
        self.unique.append(
            replace(chosen, group=tuple(members), passed=(*chosen.passed, decisions.apart(leader)))
        )

    def join(self, candidate: Candidate, known: Reported, link: Link) -> None:
        """Let a candidate join what was reported before."""
        self.dropped.append(Dropped(candidate, link.joined(STEP, (known.candidate.metric, known.event))))
        if known.event:
            self.joined.append(Joined(known.event, candidate))


@dataclass(frozen=True, slots=True)
class Decisions:
    """The links of merged candidates as decisions on each of them."""

    every: Sequence[Candidate]
    links: dict[int, Link]
    nearest: dict[int, Nearest]
    config: DedupConfig

    def joined(self, row: int, leader: int) -> Decision:
        """Return the decision that a candidate is part of its group."""
        link = self.links.get(row) or self.links[leader]
        return link.joined(STEP, [self.every[leader].metric])

    def apart(self, row: int) -> Decision:
        """Return what came nearest to making a candidate part of another regression."""
        found = self.nearest.get(row)
        if found:
            return found.link.apart(STEP, self.every[found.other].metric)
        bound = self.config.pairwise.least_bound(gcpu=is_gcpu(self.every[row].metric_kind))
        return Decision(STEP, True, 0.0, bound, "nothing")


def join_reported(
    evidence: DedupEvidence,
    cluster: Cluster,
    candidates: Sequence[Candidate],
    history: ReportHistory,
    config: DedupConfig,
) -> ScanOutcome:
    """Let groups of one cluster join reported regressions, or each other; the others are reported.

    Args:
        evidence: Of the scan.
        cluster: That the groups are of.
        candidates: The groups' representatives.
        history: What was reported before, by earlier scans and of earlier clusters.
        config: Rules and windows.
    """
    outcome, index = ScanOutcome(), cluster.index
    reported = find_reach(history.regressions, candidates, index.labels, config)
    every = [*(known.candidate for known in reported), *candidates]
    deployed = evidence.deployed.before(every, config)
    members = members_near(evidence, history, reported, candidates, config)
    pairs = pair_up(
        evidence, index, candidates, config, reported=reported, members=members, deployed=deployed
    )
    merged = merge(pairs)
    rises = new_rises(every, history.regressions, config)
    decisions = Decisions(every, dict(merged.links), dict(merged.nearest), config)
    for group in merged.groups:
        known = [row for row in group if row < len(reported)]
        new = [row for row in group if row >= len(reported)]
        if known:
            leads = next((row for row in known if reported[row].leads), known[0])
            for row in new:
                outcome.join(every[row], reported[leads], merged.links[row])
            continue
        # A workload that asks for another way to group a scan's candidates does not get this one.
        for rows in [new] if config.grouping in ("cause", "explained") else [[row] for row in new]:
            leader = choose_representative(rows, every, index, pairs.causes, rises)
            explained = _residual(evidence, cluster, every[leader], history, config)
            if explained is None:
                outcome.report(rows, leader, every, decisions)
                continue
            for row in rows:
                outcome.join(every[row], *explained)
    return outcome


def _residual(
    evidence: DedupEvidence,
    cluster: Cluster,
    candidate: Candidate,
    history: ReportHistory,
    config: DedupConfig,
) -> tuple[Reported, Link] | None:
    """Return the reported one without which a candidate is no change point, and how they are linked."""
    if not is_gcpu(candidate.metric_kind) or not config.runs("residual"):
        return None
    # A change of its own is a cause of its own, however little is left to see of it.
    (deployed,) = evidence.deployed.before([candidate], config)
    if any(element(*candidate.series) in change.subroutines for change in deployed):
        return None
    descendants = [
        known
        for known in (*history.regressions, *history.members)
        if known.event
        and known.candidate.metric_kind == "subroutine"
        and (known.candidate.delta > 0) == (candidate.delta > 0)
    ]
    found = explain_by_known(
        cluster.index,
        candidate.series,
        [known.candidate.series for known in descendants],
        p_value=candidate.p_value,
        chance=BY_CHANCE / max(evidence.scan.series, 1),
        most=config.pairwise.most,
    )
    return None if found is None else (descendants[found.known], Link("residual", found.share, found.bound))
