"""dedup: scans in, the same scans out with one candidate per cause.

Candidates of one scan that rise in the same stacks become one group; a group whose cost only moved within a
cost domain is dropped; one that belongs to a regression passed on by an earlier scan is dropped as well.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.codec.scans import decode_scan, encode_scan, split_scan
from pipeline.dedup.explained import ExplainedConfig, explained_shares, group_by_stacks
from pipeline.detect.cycle import DAY_S
from pipeline.filters.cost_shift import (
    caller_domain,
    class_domain,
    judge_cost_shift,
    own_shares,
    rest_shares,
)
from pipeline.filters.verdict import Verdict, divide
from pipeline.gcpu.stacks import membership, share_changes
from pipeline.model import Candidate, Dropped, Outgoing, Record, Scan, StackMatrix
from pipeline.stages.ablation import NOTHING, Without
from pipeline.stages.base import Decoder
from pipeline.stages.evidence import (
    TOLERANCE_WINDOWS,
    changes_before,
    cluster_by_time,
    stacks_around,
    stacks_on_earlier_days,
)
from pipeline.stages.memory import recall, remember
from pipeline.storage.interface import Store
from pipeline.workloads import Workload

log = logging.getLogger(__name__)


_SOME = 0.1
"""Share of a slow rise in a known regression's stacks from which on that one may have contributed."""


class DedupStage:
    """Merges what one cause made rise, within a scan and across scans."""

    name = "dedup"

    def __init__(
        self,
        *,
        store: Store,
        workloads: Sequence[Workload],
        config: ExplainedConfig | None = None,
        without: Without = NOTHING,
    ) -> None:
        self._store = store
        self._workloads = {workload.name: workload for workload in workloads}
        self._config = config or ExplainedConfig()
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
        if workload is None or not scan.candidates or workload.series == "service":
            return scan
        unique: list[Candidate] = []
        dropped: list[Dropped] = []
        known: Sequence[Candidate] = ()
        if "pairwise_dedup" not in self._without:
            known = recall(self._store, self.name, scan, self._workloads, same_workload=False)
        for cluster in cluster_by_time(scan.candidates, TOLERANCE_WINDOWS * workload.resolution_s):
            matrix = stacks_around(self._store, scan, cluster, workload)
            groups, merged = self._group(scan, cluster, matrix, workload)
            real: Sequence[Candidate] = groups
            shifted: Sequence[Dropped] = ()
            if "cost_shift" not in self._without:
                days = stacks_on_earlier_days(self._store, scan, cluster, workload)
                real, shifted = divide(
                    "cost_shift", ((group, _judge_shift(matrix, days, group)) for group in groups)
                )
            fresh, repeated = divide(
                "pairwise_dedup",
                ((group, self._judge_known(matrix, group, known, workload)) for group in real),
            )
            unique += fresh
            dropped += [*merged, *shifted, *repeated]
        remember(self._store, self.name, [(scan, unique)])
        return replace(scan, candidates=tuple(unique), dropped=(*scan.dropped, *dropped))

    def _group(
        self, scan: Scan, cluster: Sequence[Candidate], matrix: StackMatrix, workload: Workload
    ) -> tuple[list[Candidate], list[Dropped]]:
        """Return one candidate a group, with its members inside, and the ledger's lines for the members."""
        modified = {
            subroutine
            for candidate in cluster
            for change in changes_before(self._store, scan, candidate, workload)
            for subroutine in change.subroutines
        }
        groups = group_by_stacks(
            matrix,
            [(candidate.metric_kind, candidate.metric) for candidate in cluster],
            np.array([candidate.delta for candidate in cluster]),
            preferred=np.array([candidate.metric in modified for candidate in cluster], dtype=np.bool_),
            config=replace(self._config, bound=math.inf) if "som_dedup" in self._without else self._config,
        )
        merged, dropped = [], []
        for group in groups:
            representative = cluster[group.representative]
            members = [cluster[i] for i in group.members]
            # Their own decisions stand in the ledger's lines; thousands of them would outgrow a message.
            merged.append(replace(representative, group=tuple(replace(m, passed=()) for m in members)))
            reason = f"explained by the stacks of {representative.metric}"
            dropped += [
                Dropped(member, "som_dedup", share, self._config.bound, reason)
                for member, share in zip(members, group.explained, strict=True)
            ]
        return merged, dropped

    def _judge_known(
        self, matrix: StackMatrix, candidate: Candidate, known: Sequence[Candidate], workload: Workload
    ) -> Verdict:
        """Drop a candidate whose rise comes from the stacks of a regression that was passed on before."""
        near = [k for k in known if _may_be_one(k, candidate, workload)]
        if not near:
            return Verdict(True, 0.0, self._config.bound)
        if candidate.kind == "long_term":
            return self._judge_slow(matrix, candidate, near)
        series = [(c.metric_kind, c.metric) for c in (candidate, *near)]
        explained = explained_shares(membership(matrix.stacks, series), share_changes(matrix))
        shares = np.maximum(explained[0, 1:], explained[1:, 0])
        best = int(shares.argmax())
        share = float(shares[best])
        reason = f"same stacks as {near[best].metric}, passed on by an earlier scan"
        return Verdict(share < self._config.bound, share, self._config.bound, reason)

    def _judge_slow(self, matrix: StackMatrix, candidate: Candidate, near: Sequence[Candidate]) -> Verdict:
        """Drop a slow rise that comes from the stacks of all known regressions in sight together.

        They must also have been large enough for it: what holds all the stacks explains any rise below it.
        """
        holds = membership(matrix.stacks, [(c.metric_kind, c.metric) for c in (candidate, *near)])
        change = share_changes(matrix)
        both = np.stack([holds[0], holds[1:].any(axis=0)])
        share = float(explained_shares(both, change)[0, 1])
        part = explained_shares(holds, change)[0, 1:] >= _SOME
        told = sum(abs(k.delta) for k, counts in zip(near, part.tolist(), strict=True) if counts)
        if abs(candidate.delta) - told >= abs(candidate.delta) / 2:
            return Verdict(True, share, self._config.bound)
        reason = f"same stacks as regressions passed on by earlier scans, {near[0].metric} among them"
        return Verdict(share < self._config.bound, share, self._config.bound, reason)


def _may_be_one(known: Candidate, candidate: Candidate, workload: Workload) -> bool:
    """Tell whether two changes are near enough in time to be one.

    A slow candidate is the rise over all that the scan sees; when a slow one began is known to a day.
    """
    if (known.delta > 0) != (candidate.delta > 0):
        return False
    if candidate.kind == "long_term":
        return True
    apart_s = workload.analysis_s if known.kind == "short_term" else max(workload.analysis_s, DAY_S)
    return abs(known.change_time - candidate.change_time) <= apart_s


def _judge_shift(matrix: StackMatrix, days: Sequence[StackMatrix], candidate: Candidate) -> Verdict:
    """Return the first domain's verdict that finds a cost shift, else the last one's."""
    series = (candidate.metric_kind, candidate.metric)
    own = own_shares(matrix, series)
    verdict = Verdict(True, 0.0, 0.0)
    for domain in (caller_domain(matrix, series), class_domain(matrix, series)):
        if domain is not None and verdict.passed:
            rest = rest_shares(matrix, series, domain)
            earlier = [rest_shares(day, series, domain) for day in days]
            verdict = judge_cost_shift(own, rest, domain, earlier=earlier)
    return verdict
