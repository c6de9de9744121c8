"""Regressions over hand-made stacks, for tests of deduplication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.analysis.cost_shift.scan import StackEvidence
from pipeline.analysis.dedup.causes import Causes
from pipeline.analysis.dedup.evidence import Cluster, DedupConfig, DedupEvidence, Deployed, Reported
from pipeline.analysis.dedup.links import Link
from pipeline.analysis.dedup.pairs import Pairs, pair_up
from pipeline.analysis.dedup.rules import Feature, PairwiseConfig
from pipeline.analysis.dedup.within_scan import find_groups
from pipeline.analysis.stacks import Group, index_stacks, membership
from pipeline.model import BoolArray, Candidate, Change, FloatArray, Scan, SeriesKey, StackMatrix
from tests.support.builders import build_candidate

START = 1_700_000_000.0
CONFIG = DedupConfig(resolution_s=60.0, analysis_s=3600.0, lookback_s=7200.0)
SCAN = Scan("shop", "live", START - 86_400, START - 3600, START + 3600, START + 7200, 100)


def build_candidates(
    matrix: StackMatrix, names: Sequence[str], *, times: Sequence[float] | None = None
) -> list[Candidate]:
    """Return candidates with the stacks' levels; change points are 100 s after the start."""
    holds = membership(index_stacks(matrix), [SeriesKey("subroutine", name) for name in names])
    before, after = holds @ matrix.before / matrix.total_before, holds @ matrix.after / matrix.total_after
    moments = times or [START + 100.0] * len(names)
    return [
        build_candidate(name, before=float(b), after=float(a), change_time=time)
        for name, b, a, time in zip(names, before, after, moments, strict=True)
    ]


def build_evidence(
    matrix: StackMatrix, candidates: Sequence[Candidate], changes: Sequence[Change] = ()
) -> DedupEvidence:
    """Return the evidence of one cluster."""
    cluster = Cluster(candidates, StackEvidence(index_stacks(matrix)))
    return DedupEvidence(SCAN, lambda candidate: candidate.metric, [cluster], deployed=Deployed(changes))


def group(
    matrix: StackMatrix, candidates: Sequence[Candidate], changes: Sequence[Change] = ()
) -> list[tuple[Group, Sequence[Link]]]:
    """Return the groups of one scan's candidates."""
    evidence = build_evidence(matrix, candidates, changes)
    return find_groups(evidence, evidence.clusters[0], CONFIG)


def build_pairs(
    matrix: StackMatrix,
    names: Sequence[str],
    *,
    changes: Sequence[Change] = (),
    events: Sequence[str] = (),
    times: Sequence[float] | None = None,
    config: DedupConfig = CONFIG,
) -> Pairs:
    """Return pairs of subroutines; the first of them were reported as parts of these events."""
    every = build_candidates(matrix, names, times=times)
    evidence = build_evidence(matrix, every, changes)
    earlier = [Reported(c, event) for c, event in zip(every, events, strict=False)]
    return pair_up(
        evidence,
        evidence.clusters[0].stacks.index,
        every[len(earlier) :],
        config,
        reported=earlier,
        deployed=evidence.deployed.before(every, config),
    )


def pairs_of(
    features: Mapping[Feature, FloatArray],
    gcpu: Sequence[bool],
    *,
    holds: BoolArray | None = None,
    rise: FloatArray | None = None,
    rules: PairwiseConfig | None = None,
) -> Pairs:
    """Return pairs of one moment with these features."""
    count = len(gcpu)
    candidates = [build_candidate(f"series{row}") for row in range(count)]
    return Pairs(
        candidates=candidates,
        reported=(),
        members=(),
        series=[c.series for c in candidates],
        causes=[Causes({}, {})] * count,
        levels=np.zeros((count, 0)),
        starts=np.zeros(0),
        times=np.zeros(count),
        deltas=np.ones(count),
        slow=np.zeros(count, dtype=np.bool_),
        gcpu=np.array(gcpu),
        holds=np.zeros((count, 0), dtype=np.bool_) if holds is None else holds,
        rise=np.zeros(0) if rise is None else rise,
        features=features,
        config=DedupConfig(60.0, 3600.0, 7200.0, pairwise=rules or PairwiseConfig()),
    )
