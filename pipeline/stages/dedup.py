"""dedup: scans in, the same scans out with one candidate per cause.

Candidates of one scan that rise in the same stacks become one group; a group whose cost only moved within a
cost domain is dropped; one that belongs to a regression passed on by an earlier scan is dropped as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.codec.events import regression_id
from pipeline.codec.scans import decode_scan, encode_scan, split_scan
from pipeline.dedup.explained import explained_shares
from pipeline.dedup.pairwise import Link, merge_alike
from pipeline.detect.cycle import DAY_S
from pipeline.filters.verdict import Verdict, divide
from pipeline.gcpu.stacks import membership, share_changes
from pipeline.model import Candidate, Dropped, Joined, Judgement, Outgoing, Record, Scan, StackMatrix
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder
from pipeline.stages.cost_shifts import judge_cost_shifts
from pipeline.stages.evidence import (
    TOLERANCE_WINDOWS,
    changes_before_each,
    cluster_by_time,
    stacks_around,
)
from pipeline.stages.grouping import WORDS, group_candidates
from pipeline.stages.likeness import likeness_of
from pipeline.stages.memory import Memory, recall, remember
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)


_SOME = 0.1
"""Share of a slow rise in a known regression's stacks from which on that one may have contributed."""

_NO_STACKS = StackMatrix((), np.zeros(0), np.zeros(0), 0.0, 0.0)


@dataclass(slots=True)
class _Outcome:
    """What becomes of a scan's candidates."""

    unique: list[Candidate] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)


class DedupStage:
    """Merges what one cause made rise, within a scan and across scans."""

    name = "dedup"

    def __init__(self, *, store: Store, workloads: Sequence[Workload], without: Without = NOTHING) -> None:
        self._store = store
        self._workloads = {workload.name: workload for workload in workloads}
        self._without = without
        self.inputs: Mapping[str, Decoder] = {"filtered": decode_scan}

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        """Nothing to forget: what matters across scans is in the store."""

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        """Deduplicate each scan, in order."""
        outgoing = []
        for record in batch:
            scan = self._dedup(record.payload)
            outgoing += [Outgoing("unique", scan.service, encode_scan(part)) for part in split_scan(scan)]
        return outgoing

    def settled(self) -> None:
        """Nothing to do: memory was written before publishing."""

    def _dedup(self, scan: Scan) -> Scan:
        workload = self._workloads.get(scan.workload)
        if workload is None or not scan.candidates:
            return scan
        known: Sequence[Memory] = ()
        if "pairwise_dedup" not in self._without:
            known = recall(self._store, self.name, scan, self._workloads, same_workload=False)
        outcome = _Outcome()
        for cluster in _clusters(scan.candidates, workload):
            self._judge(scan, workload, cluster, known, outcome)
        fresh = [Memory(c, regression_id(scan.service, scan.workload, c, scan.end)) for c in outcome.unique]
        more = [Memory(joined.candidate, joined.regression) for joined in outcome.joined]
        remember(self._store, self.name, scan, [*fresh, *more])
        return replace(
            scan,
            candidates=tuple(outcome.unique),
            joined=tuple(outcome.joined),
            dropped=(*scan.dropped, *outcome.dropped),
        )

    def _judge(
        self,
        scan: Scan,
        workload: Workload,
        cluster: Sequence[Candidate],
        known: Sequence[Memory],
        outcome: _Outcome,
    ) -> None:
        gcpu = any(candidate.metric_kind != "service" for candidate in cluster)
        matrix = stacks_around(self._store, scan, cluster, workload) if gcpu else _NO_STACKS
        groups: Sequence[Candidate] = cluster
        if "som_dedup" not in self._without:
            groups, merged = group_candidates(self._store, scan, cluster, matrix, workload)
            outcome.dropped += merged
        real: Sequence[Candidate] = groups
        if "cost_shift" not in self._without:
            judged = judge_cost_shifts(self._store, scan, cluster, groups, matrix, workload)
            real, shifted = divide("cost_shift", judged)
            outcome.dropped += shifted
        # What passes is judged against each of them by itself, which is the decision that it carries along.
        slow = [(c, self._judge_slow(matrix, c, known, workload)) for c in real]
        outcome.dropped += divide("pairwise_dedup", slow)[1]
        real = [candidate for candidate, verdict in slow if verdict.passed]
        self._join(scan, workload, real, known, matrix, outcome)

    def _join(
        self,
        scan: Scan,
        workload: Workload,
        real: Sequence[Candidate],
        known: Sequence[Memory],
        matrix: StackMatrix,
        outcome: _Outcome,
    ) -> None:
        """Let new groups join those that earlier scans passed on; the others are regressions of their own."""
        near = _in_reach(known, real, matrix, workload)
        if not near or not real:
            outcome.unique += real
            return
        config = workload.pairwise
        told: dict[str, list[int]] = {}
        for place, memory in enumerate(near):
            told.setdefault(memory.regression or f"of its own: {place}", []).append(place)
        everything = [*(memory.candidate for memory in near), *real]
        changes = changes_before_each(self._store, scan, everything, workload)
        told_before = len(near)
        found = likeness_of(
            self._store, scan, everything, matrix, changes, workload, config, told=told_before
        )
        merged = merge_alike(found, list(told.values()), config)
        place_of = {
            member: number for number, group in enumerate(merged.groups[: len(told)]) for member in group
        }
        names = list(told)
        for place, candidate in enumerate(real, start=len(near)):
            if place not in place_of:
                judgement = Judgement("pairwise_dedup", 0.0, config.stacks)
                outcome.unique.append(replace(candidate, passed=(*candidate.passed, judgement)))
                continue
            regression = names[place_of[place]]
            leader = near[told[regression][0]].candidate.metric
            outcome.dropped.append(_joined(candidate, merged.links[place], leader))
            if near[told[regression][0]].regression:
                outcome.joined.append(Joined(regression, candidate))

    def _judge_slow(
        self, matrix: StackMatrix, candidate: Candidate, known: Sequence[Memory], workload: Workload
    ) -> Verdict:
        """Drop a slow rise that comes from the stacks of all known regressions in sight together.

        They must also have been large enough for it: what holds all the stacks explains any rise below it.
        """
        bound = workload.pairwise.stacks
        near = [memory.candidate for memory in known if _may_be_one(memory.candidate, candidate, workload)]
        if candidate.kind != "long_term" or candidate.metric_kind == "service" or not near:
            return Verdict(True, 0.0, bound)
        holds = membership(matrix.stacks, [(c.metric_kind, c.metric) for c in (candidate, *near)])
        change = share_changes(matrix)
        both = np.stack([holds[0], holds[1:].any(axis=0)])
        share = float(explained_shares(both, change)[0, 1])
        part = explained_shares(holds, change)[0, 1:] >= _SOME
        told = sum(abs(k.delta) for k, counts in zip(near, part.tolist(), strict=True) if counts)
        if abs(candidate.delta) - told >= abs(candidate.delta) / 2:
            return Verdict(True, share, bound)
        reason = f"same stacks as regressions passed on by earlier scans, {near[0].metric} among them"
        return Verdict(share < bound, share, bound, reason)


def _in_reach(
    known: Sequence[Memory], real: Sequence[Candidate], matrix: StackMatrix, workload: Workload
) -> list[Memory]:
    """Return the known regressions that new ones may be part of: by time, or as they rise through them."""
    labels = {label for stack in matrix.stacks for label in stack}
    return [
        memory
        for memory in known
        if any(_may_be_one(memory.candidate, candidate, workload) for candidate in real)
        or (memory.candidate.metric_kind == "subroutine" and memory.candidate.metric in labels)
    ]


def _clusters(candidates: Sequence[Candidate], workload: Workload) -> list[list[Candidate]]:
    """Put candidates together that may be one: a change point may lie anywhere in the analysis window."""
    slow = [candidate for candidate in candidates if candidate.kind == "long_term"]
    steps = [candidate for candidate in candidates if candidate.kind != "long_term"]
    tolerance_s = TOLERANCE_WINDOWS * workload.resolution_s
    return [
        *cluster_by_time(steps, max(workload.analysis_s, tolerance_s)),
        *cluster_by_time(slow, max(workload.analysis_s, DAY_S)),
    ]


def _joined(candidate: Candidate, link: Link, leader: str) -> Dropped:
    """Return the ledger's line for a candidate that joined a group of an earlier scan."""
    reason = f"{WORDS[link.feature]} {leader}, of an earlier scan"
    return Dropped(candidate, "pairwise_dedup", link.similarity, link.bound, reason)


def _may_be_one(known: Candidate, candidate: Candidate, workload: Workload) -> bool:
    """Tell whether two changes are near enough in time to be one.

    A slow candidate is the rise over all that the scan sees; when a slow one began is known to a day.
    """
    same = (known.metric_kind == "service") == (candidate.metric_kind == "service")
    if same and (known.delta > 0) != (candidate.delta > 0):
        return False
    if candidate.kind == "long_term":
        return True
    apart_s = workload.analysis_s if known.kind != "long_term" else max(workload.analysis_s, DAY_S)
    return abs(known.change_time - candidate.change_time) <= apart_s
