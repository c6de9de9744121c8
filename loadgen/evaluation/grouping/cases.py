"""Cases of dedup in simulated fleets: each scan's candidates with their stacks, changes and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.evaluation.matching import in_reach
from loadgen.evaluation.model import TruthRow
from loadgen.evaluation.reading import truth_from_json
from loadgen.fleet.scenario import load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.analysis.dedup.evidence import cluster_by_time
from pipeline.analysis.rootcause import candidate_changes
from pipeline.analysis.stacks import index_stacks, membership
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.backtest.run import detect_scans
from pipeline.model import BoolArray, Candidate, Change, FloatArray, Scan, StackMatrix
from pipeline.model.units import DAY_S
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.evidence import stacks_around
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import SeriesQuery, Store

EARLY_S = 3600.0
"""By how much a change point may be estimated before the deployment that caused it: that of a small step lies
within an hour of the truth in most cases."""


@dataclass(frozen=True, slots=True)
class GroupingCase:
    """Candidates of one scan that are near enough in time to have one cause."""

    scan: Scan
    candidates: tuple[Candidate, ...]
    stacks: StackMatrix  # around the change points; stacks without any candidate are left out
    changes: tuple[tuple[Change, ...], ...]  # (candidates,) deployed about when each series began to rise
    values: FloatArray  # (candidates, windows) gCPU, NaN without samples


@dataclass(frozen=True, slots=True)
class GroupedFleet:
    """Every case of one simulated fleet, with its truth."""

    preset: str
    seed: int
    truth: tuple[TruthRow, ...]
    scans: int
    cases: tuple[GroupingCase, ...]


def collect_fleet(preset: str, seed: int, workload: Workload) -> GroupedFleet:
    """Simulate a fleet and run detect and filter over it; the candidates that pass form the cases.

    Neither stage depends on dedup, so the cases are those of a whole run.
    """
    dataset = simulate(load_scenario(preset), seed).dataset
    store = ArrayStore(dataset)
    scans = [scan for scan in _filtered(dataset, store, workload) if scan.candidates]
    cases = [case for scan in scans for case in _cases(store, scan, workload, dataset.changes)]
    truth = in_reach(truth_from_json(dataset.truth), [workload])
    return GroupedFleet(preset, seed, truth, len(scans), tuple(cases))


def _filtered(dataset: Dataset, store: Store, workload: Workload) -> list[Scan]:
    settings = Settings()
    flow = Flow(store, [workload], settings=settings, clock=lambda: dataset.end, stages=("filter",))
    scans: list[Scan] = []
    for batch in detect_scans(dataset, [workload], settings=settings):
        flow.send("change-points", batch)
        scans += flow.scans("filtered")
        flow.topics.clear()
    return scans


def _cases(store: Store, scan: Scan, workload: Workload, changes: Sequence[Change]) -> list[GroupingCase]:
    """Return the cases of a scan: clusters of sudden changes, and of slow ones within about a day.

    Estimates of one change point lie up to hours apart, so that time alone must not separate candidates.
    """
    sudden = [candidate for candidate in scan.candidates if candidate.kind == "short_term"]
    slow = [candidate for candidate in scan.candidates if candidate.kind != "short_term"]
    clusters = cluster_by_time(sudden, workload.analysis_s) + cluster_by_time(slow, DAY_S)
    return [
        GroupingCase(
            scan,
            tuple(cluster),
            _only_held(stacks_around(store, scan, cluster, workload), cluster),
            tuple(
                candidate_changes(changes, c.change_time, lookback_s=workload.lookback_s, tolerance_s=EARLY_S)
                for c in cluster
            ),
            _values(store, scan, cluster, workload),
        )
        for cluster in clusters
    ]


def _only_held(matrix: StackMatrix, candidates: Sequence[Candidate]) -> StackMatrix:
    held: BoolArray = np.any(membership(index_stacks(matrix), [c.series for c in candidates]), axis=0)
    return StackMatrix(
        tuple(stack for stack, holds in zip(matrix.stacks, held.tolist(), strict=True) if holds),
        matrix.before[held],
        matrix.after[held],
        matrix.total_before,
        matrix.total_after,
    )


def _values(store: Store, scan: Scan, candidates: Sequence[Candidate], workload: Workload) -> FloatArray:
    wanted = [c.series for c in candidates]
    matrix = store.series(
        SeriesQuery("gcpu", scan.service, scan.start, scan.end, workload.resolution_s, wanted)
    )
    row = {key: index for index, key in enumerate(matrix.series)}
    totals = np.where(matrix.totals > 0, matrix.totals, np.nan)
    return np.asarray(matrix.samples[[row[key] for key in wanted]] / totals)
