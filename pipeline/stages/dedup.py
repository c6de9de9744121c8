"""dedup: scans in, the same scans out with one candidate per cause.

Candidates of one scan that rise in the same stacks become one group; a group whose cost only moved within a
cost domain is dropped; one that belongs to a regression passed on by an earlier scan is dropped as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.codec.scans import decode_scan, encode_scan, split_scan
from pipeline.dedup.across_scans import Nearest, least_bound, merge_alike
from pipeline.dedup.links import Link
from pipeline.dedup.residual import explain_by_known
from pipeline.dedup.within_scan import choose_representative
from pipeline.filters.significance import BY_CHANCE
from pipeline.model import Candidate, Change, Decision, Dropped, Joined, Outgoing, Record, Scan, StackMatrix
from pipeline.model.metric_kind import is_gcpu
from pipeline.stacks import StackIndex, index_stacks, likeness, mean_depths, membership, stands_below
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder, Stage
from pipeline.stages.gather.cost_domains import judge_cost_shifts
from pipeline.stages.gather.evidence import (
    EARLY_WINDOWS,
    TOLERANCE_WINDOWS,
    changes_before_each,
    cluster_by_time,
    stacks_around,
    stacks_since,
)
from pipeline.stages.gather.grouping import group_candidates
from pipeline.stages.gather.history import Memory, recall, remember
from pipeline.stages.gather.reported import Outcome, ToldBefore, largest_members, parts_of
from pipeline.stages.gather.similarity import Part, Told, likeness_of
from pipeline.steps import divide
from pipeline.storage.interface import Store
from pipeline.units import DAY_S
from pipeline.workloads import Workload

log = logging.getLogger(__name__)


_STEP = "pairwise_dedup"

_MEMBERS = "dedup members"
"""Under which the members of groups are remembered, besides the regressions that stand for them."""

_SOME = 0.1
"""Share of a slow rise in a known regression's stacks from which on that one may have contributed."""

_NO_STACKS = StackMatrix((), np.zeros(0), np.zeros(0), 0.0, 0.0)


class DedupStage(Stage):
    """Merges what one cause made rise, within a scan and across scans."""

    name = "dedup"

    def __init__(self, *, store: Store, workloads: Sequence[Workload], without: Without = NOTHING) -> None:
        self._store = store
        self._workloads = {workload.name: workload for workload in workloads}
        self._without = without
        self.inputs: Mapping[str, Decoder] = {"filtered": decode_scan}

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Deduplicate each scan, in order."""
        outgoing = []
        for record in batch:
            scan = self._dedup(record.payload)
            outgoing += [Outgoing("unique", scan.service, encode_scan(part)) for part in split_scan(scan)]
        return outgoing

    def _dedup(self, scan: Scan) -> Scan:
        workload = self._workloads.get(scan.workload)
        if workload is None or not scan.candidates:
            return scan
        known = self._recall(scan)
        outcome = Outcome()
        passed: list[Memory] = []
        parts: list[Memory] = []
        for cluster in _clusters(scan.candidates, workload):
            now = Outcome()
            self._judge(scan, workload, cluster, known.within(scan, cluster), now)
            told = outcome.take(now, scan)
            members = [part for memory in told for part in parts_of(memory)]
            passed, parts = passed + told, parts + members
            if "pairwise_dedup" not in self._without:
                # What a scan tells of one time it knows when it looks at the next, as a later scan would.
                known = ToldBefore([*known.regressions, *told], [*known.members, *members])
        remember(self._store, self.name, scan, passed)
        remember(self._store, _MEMBERS, scan, parts)
        return replace(
            scan,
            candidates=tuple(outcome.unique),
            joined=tuple(outcome.joined),
            dropped=(*scan.dropped, *outcome.dropped),
        )

    def _recall(self, scan: Scan) -> ToldBefore:
        """Return what earlier scans passed on, from before this scan's own windows too."""
        if "pairwise_dedup" in self._without:
            return ToldBefore()
        back_s = scan.end - scan.start
        regressions, members = (
            recall(self._store, stage, scan, self._workloads, same_workload=False, back_s=back_s)
            for stage in (self.name, _MEMBERS)
        )
        return ToldBefore(regressions, members)

    def _judge(
        self,
        scan: Scan,
        workload: Workload,
        cluster: Sequence[Candidate],
        known: ToldBefore,
        outcome: Outcome,
    ) -> None:
        gcpu = any(is_gcpu(candidate.metric_kind) for candidate in cluster)
        matrix = stacks_around(self._store, scan, cluster, workload) if gcpu else _NO_STACKS
        frames = index_stacks(matrix)
        groups: Sequence[Candidate] = cluster
        if "som_dedup" not in self._without:
            groups, merged = group_candidates(self._store, scan, cluster, frames, workload)
            outcome.dropped += merged
        real: Sequence[Candidate] = groups
        if "cost_shift" not in self._without:
            judged = judge_cost_shifts(self._store, scan, cluster, groups, frames, workload)
            real, shifted = divide(judged)
            outcome.dropped += shifted
        # What passes is judged against each of them by itself, which is the decision that it carries along.
        since = stacks_since(scan, cluster, workload)
        grown = [
            m
            for m in known.regressions
            if m.candidate.kind == "long_term" or m.candidate.change_time >= since
        ]
        slow = [(c, self._judge_slow(frames, c, grown, workload)) for c in real]
        outcome.dropped += divide(slow)[1]
        passed = [(candidate, verdict) for candidate, verdict in slow if verdict.passed]
        self._join(scan, workload, passed, known, frames, outcome)

    def _join(
        self,
        scan: Scan,
        workload: Workload,
        passed: Sequence[tuple[Candidate, Decision]],
        known: ToldBefore,
        frames: StackIndex,
        outcome: Outcome,
    ) -> None:
        """Let new groups join those that earlier scans passed on, or each other; the others are told."""
        real = [candidate for candidate, _ in passed]
        if "pairwise_dedup" in self._without or not real:
            outcome.unique += real
            return
        near = _in_reach(known.regressions, real, frames, workload)
        if len(near) + len(real) < 2:
            alone = _judge_apart(*passed[0], None, real, workload)
            _tell(real, 0, [0], {}, alone, outcome)
            return
        told: dict[str, list[int]] = {}
        for place, memory in enumerate(near):
            told.setdefault(memory.regression or f"of its own: {place}", []).append(place)
        everything = [*(memory.candidate for memory in near), *real]
        changes = changes_before_each(self._store, scan, everything, workload, tolerance=EARLY_WINDOWS)
        found = likeness_of(
            self._store,
            scan,
            everything,
            frames,
            changes,
            workload,
            workload.pairwise,
            told=[Told(m.regression, m.seen_until, m.leads) for m in near],
            parts=self._parts_near(scan, known.members, real, told, workload),
        )
        merged = merge_alike(found, list(told.values()), workload.pairwise)
        for places, group in zip(told.values(), merged.groups, strict=False):
            leader = next((near[place] for place in places if near[place].leads), near[places[0]])
            for place in group[len(places) :]:
                _join_earlier(everything[place], merged.links[place], leader, outcome)
        modified = np.array([_is_modified(c, own) for c, own in zip(everything, changes, strict=True)])
        depths = mean_depths(frames, [(c.metric_kind, c.metric) for c in everything])
        sizes = np.abs([c.delta for c in everything])
        for group in merged.groups[len(told) :]:
            # A workload that asks for another way to group a scan's candidates does not get this one.
            for one in [group] if workload.grouping == "cause" else [(place,) for place in group]:
                chosen = choose_representative(one, modified, sizes, depths)
                if explained := _explained(scan, everything[chosen], known, frames, workload):
                    memory, link = explained
                    for place in one:
                        _join_earlier(everything[place], link, memory, outcome)
                else:
                    slow = passed[chosen - len(near)]
                    apart = _judge_apart(*slow, merged.nearest.get(chosen), everything, workload)
                    _tell(everything, chosen, one, merged.links, apart, outcome)

    def _parts_near(
        self,
        scan: Scan,
        members: Sequence[Memory],
        real: Sequence[Candidate],
        told: Mapping[str, Sequence[int]],
        workload: Workload,
    ) -> list[Part]:
        """Return the members of new groups, and of known ones near them, with the changes before each."""
        found = [
            (told[memory.regression][0], memory.candidate)
            for memory in members
            if memory.regression in told
            and any(_may_be_one(memory.candidate, candidate, workload) for candidate in real)
        ]
        for place, candidate in enumerate(real, start=sum(len(places) for places in told.values())):
            found += [(place, member) for member in largest_members(candidate)]
        changes = changes_before_each(
            self._store, scan, [member for _, member in found], workload, tolerance=EARLY_WINDOWS
        )
        return [Part(place, member, own) for (place, member), own in zip(found, changes, strict=True)]

    def _judge_slow(
        self, frames: StackIndex, candidate: Candidate, known: Sequence[Memory], workload: Workload
    ) -> Decision:
        """Drop a slow rise that comes from the stacks of all known regressions in sight together.

        They must also have been large enough for it: what holds all the stacks explains any rise below it.
        """
        bound = workload.pairwise.most
        near = [memory.candidate for memory in known if _may_be_one(memory.candidate, candidate, workload)]
        if candidate.kind != "long_term" or not is_gcpu(candidate.metric_kind) or not near:
            return Decision(_STEP, True, 0.0, bound)
        series = [(c.metric_kind, c.metric) for c in (candidate, *near)]
        matrix, change = frames.matrix, frames.rise
        holds = membership(frames, series)
        common = holds[0] & holds[1:]
        size = float(change[holds[0]].sum())
        rise = common @ change
        # A caller raises what it calls by being called more often, and then all of it alike.
        shares = matrix.before / max(matrix.total_before, 1.0)
        level, grown = holds[1:] @ shares, holds[1:] @ change
        alike = likeness(np.divide((common @ shares) * grown, level, out=0 * rise, where=level > 0), rise)
        counts = ~stands_below(frames, series[0], series[1:]) | (alike >= bound)
        share = float(change[common[counts].any(axis=0)].sum()) / size if size else 0.0
        part = counts & (rise * np.sign(size) >= _SOME * abs(size)) & (size != 0)
        behind = [known for known, is_part in zip(near, part.tolist(), strict=True) if is_part]
        told = sum(abs(known.delta) for known in behind)
        largest = max(behind or near, key=lambda known: abs(known.delta))
        link, explained = Link("reported", share, bound), share >= bound
        if explained and (not behind or abs(candidate.delta) - told >= abs(candidate.delta) / 2):
            link, explained = Link("size", told / (abs(candidate.delta) or 1.0), 0.5), False
        return link.joined(_STEP, [largest.metric]) if explained else link.apart(_STEP, largest.metric)


def _in_reach(
    known: Sequence[Memory], real: Sequence[Candidate], frames: StackIndex, workload: Workload
) -> list[Memory]:
    """Return the known regressions that new ones may be part of: by time, or as they rise through them."""
    labels = set(frames.names)
    return [
        memory
        for memory in known
        if any(_may_be_one(memory.candidate, candidate, workload) for candidate in real)
        or (memory.candidate.metric_kind == "subroutine" and memory.candidate.metric in labels)
    ]


def _explained(
    scan: Scan, candidate: Candidate, known: ToldBefore, frames: StackIndex, workload: Workload
) -> tuple[Memory, Link] | None:
    """Return the known regression without which a step is no change point, and how they are linked."""
    if candidate.kind == "long_term" or not is_gcpu(candidate.metric_kind):
        return None
    below = [
        memory
        for memory in (*known.regressions, *known.members)
        if memory.regression
        and memory.candidate.metric_kind == "subroutine"
        and (memory.candidate.delta > 0) == (candidate.delta > 0)
    ]
    found = explain_by_known(
        frames,
        (candidate.metric_kind, candidate.metric),
        [(memory.candidate.metric_kind, memory.candidate.metric) for memory in below],
        p_value=candidate.p_value,
        chance=BY_CHANCE / max(scan.series, 1),
        most=workload.pairwise.most,
    )
    return None if found is None else (below[found.known], Link("residual", found.share, found.bound))


def _clusters(candidates: Sequence[Candidate], workload: Workload) -> list[list[Candidate]]:
    """Put candidates together that may be one: a change point may lie anywhere in the analysis window."""
    slow = [candidate for candidate in candidates if candidate.kind == "long_term"]
    steps = [candidate for candidate in candidates if candidate.kind != "long_term"]
    tolerance_s = TOLERANCE_WINDOWS * workload.resolution_s
    return [
        *cluster_by_time(steps, max(workload.analysis_s, tolerance_s)),
        *cluster_by_time(slow, max(workload.analysis_s, DAY_S)),
    ]


def _tell(
    candidates: Sequence[Candidate],
    chosen: int,
    group: Sequence[int],
    links: Mapping[int, Link],
    decision: Decision,
    outcome: Outcome,
) -> None:
    """Add one regression that stands for all of a group, and what let it pass."""
    leader = candidates[chosen]
    members = [*leader.group]
    for place in group:
        if place == chosen:
            continue
        other = candidates[place]
        members += [replace(other, group=(), passed=()), *other.group]
        link = links.get(place) or links[chosen]
        outcome.dropped.append(Dropped(other, link.joined(_STEP, [leader.metric])))
    outcome.unique.append(replace(leader, group=tuple(members), passed=(*leader.passed, decision)))


def _judge_apart(
    candidate: Candidate,
    slow: Decision,
    nearest: Nearest | None,
    candidates: Sequence[Candidate],
    workload: Workload,
) -> Decision:
    """Return what came nearest to making a candidate part of another regression.

    Args:
        candidate: What is told by itself.
        slow: What lets it pass as a slow rise; without a reason it was held against nothing.
        nearest: What it is most like, by the rules of the workload; None if nothing could be compared.
        candidates: What that is an index into.
        workload: Of the scan.
    """
    found = []
    if slow.code:
        found.append(slow)
    if nearest:
        found.append(nearest.link.apart(_STEP, candidates[nearest.other].metric))
    if not found:
        bound = least_bound(workload.pairwise, gcpu=is_gcpu(candidate.metric_kind))
        found.append(Decision(_STEP, True, 0.0, bound, "nothing"))
    return max(found, key=lambda one: one.statistic - one.bound)


def _join_earlier(candidate: Candidate, link: Link, memory: Memory, outcome: Outcome) -> None:
    """Let a candidate join what an earlier scan passed on."""
    known = memory.candidate.metric, memory.regression
    outcome.dropped.append(Dropped(candidate, link.joined(_STEP, known)))
    if memory.regression:
        outcome.joined.append(Joined(memory.regression, candidate))


def _is_modified(candidate: Candidate, changes: Sequence[Change]) -> bool:
    return any(candidate.metric in change.subroutines for change in changes)


def _may_be_one(known: Candidate, candidate: Candidate, workload: Workload) -> bool:
    """Tell whether two changes are near enough in time to be one.

    A slow candidate is the rise over all that the scan sees; when a slow one began is known to a day.
    """
    same = is_gcpu(known.metric_kind) == is_gcpu(candidate.metric_kind)
    if same and (known.delta > 0) != (candidate.delta > 0):
        return False
    if candidate.kind == "long_term":
        return True
    apart_s = workload.analysis_s if known.kind != "long_term" else max(workload.analysis_s, DAY_S)
    return abs(known.change_time - candidate.change_time) <= apart_s
