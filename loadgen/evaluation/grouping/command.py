"""``smidgen bench grouping``: how well each way of deduplication within a scan puts causes together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.evaluation.encode import rate_to_json
from loadgen.evaluation.grouping.cases import Case, collect_fleet
from loadgen.evaluation.grouping.score import GroupingScore, score_grouping
from loadgen.evaluation.matching import tolerance_s
from loadgen.evaluation.words import share
from loadgen.fleet.scenario import load_scenario
from loadgen.harness import Experiment, bench, terminal_table
from pipeline.analysis.cost_shift.scan import StackEvidence
from pipeline.analysis.dedup.evidence import Cluster, DedupConfig, DedupEvidence, Deployed
from pipeline.analysis.dedup.within_scan import find_groups
from pipeline.analysis.published.exclusive_stacks import ExclusiveConfig, group_by_exclusive_stacks
from pipeline.analysis.published.som_dedup import group_by_som, potential_causes
from pipeline.analysis.stacks import Group, index_stacks
from pipeline.commands.request import option
from pipeline.commands.tables import Column
from pipeline.model import BoolArray, FloatArray
from pipeline.settings.workloads import load_workloads

PRESETS = ("small", "cascade", "cost-shift", "medium", "steps")
WORKLOAD = "frontfaas-small"

_BUCKET_S = 1200.0
"""Ten minutes are one window here, and an estimate may be off by one either way."""

Grouping = Callable[[Case], Sequence[Group]]


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of one grouping on one preset, over all seeds."""

    preset: str
    grouping: str
    score: GroupingScore
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        score = self.score
        return {
            "preset": self.preset,
            "grouping": self.grouping,
            "precision": rate_to_json(score.right),
            "recall": rate_to_json(score.together),
            "unexplained_pairs": score.unexplained,
            "groups": score.groups,
            "groups_per_cause": score.groups_per_cause,
            "nearest": rate_to_json(score.nearest),
            "split": dict(score.split.most_common()),
            "merged": dict(score.merged.most_common()),
            "seconds": self.seconds,
        }


def by_som(case: Case) -> Sequence[Group]:
    """Group as SOMDedup does (FBDetect §5.4.7)."""
    names = [f"{candidate.metric_kind}.{candidate.metric}" for candidate in case.candidates]
    return group_by_som(case.values, names, _times(case), *_levels(case), _causes(case))


def by_exclusive_stacks(case: Case) -> Sequence[Group]:
    """Group as KDD 2018 §2.3 does."""
    config = ExclusiveConfig(bucket_s=_BUCKET_S)
    series = [candidate.series for candidate in case.candidates]
    return group_by_exclusive_stacks(index_stacks(case.stacks), series, _times(case), config=config)


def by_cause(case: Case) -> Sequence[Group]:
    """Group by possible causes of the rises."""
    (workload,) = load_workloads([WORKLOAD])
    deployed = Deployed([*{change.id: change for some in case.changes for change in some}.values()])
    cluster = Cluster(case.candidates, StackEvidence(index_stacks(case.stacks)))
    evidence = DedupEvidence(case.scan, lambda _: "", [cluster], deployed=deployed)
    config = DedupConfig(workload.resolution_s, workload.analysis_s, workload.lookback_s)
    return [group for group, _ in find_groups(evidence, cluster, config)]


GROUPINGS: Mapping[str, Grouping] = {
    "som": by_som,
    "kdd2018": by_exclusive_stacks,
    "causes": by_cause,
}


def measure_grouping(
    presets: Sequence[str], seeds: Sequence[int], *, advance: Callable[[], None] | None = None
) -> list[Measured]:
    """Measure every grouping on every preset; the last results of each preset set pool all presets."""
    (workload,) = load_workloads([WORKLOAD])
    scores = {(preset, name): GroupingScore() for preset in presets for name in GROUPINGS}
    seconds = dict.fromkeys(scores, 0.0)
    for preset in presets:
        for seed in seeds:
            fleet = collect_fleet(preset, seed, workload)
            for name, group in GROUPINGS.items():
                began = time.perf_counter()
                groups = [group(case) for case in fleet.cases]
                seconds[preset, name] += time.perf_counter() - began
                scores[preset, name] += score_grouping(fleet, groups, tolerance_s=tolerance_s(workload))
            if advance:
                advance()
    results = [Measured(*key, scores[key], seconds[key]) for key in scores]
    for name in GROUPINGS:
        own = [result for result in results if result.grouping == name and result.preset in presets]
        total = sum((result.score for result in own), GroupingScore())
        results.append(Measured("all", name, total, sum(result.seconds for result in own)))
    return results


COLUMNS: tuple[Column[Measured], ...] = (
    Column("preset"),
    Column("grouping"),
    Column("precision", lambda row: row.score.right.value, share),
    Column("recall", lambda row: row.score.together.value, share),
    Column("groups a cause", lambda row: row.score.groups_per_cause, ".2f"),
    Column("nearest first", lambda row: row.score.nearest.value, share),
    Column("unexplained", lambda row: row.score.unexplained, ",d"),
    Column("seconds", form=".1f"),
)


_PRESETS = ",".join(PRESETS)


@bench(json="one JSON object a line of the table")
def grouping(
    seeds: int = option(3, least=1, help="Fleets of each preset."),
    first_seed: int = option(1, help="Seed of the first fleet."),
    presets: str = option(_PRESETS, metavar="NAME,FILE,..."),
) -> Experiment[Measured]:
    """Measure how well candidates of a scan are grouped by cause, on simulated fleets.

    Detection and filters run as in a backtest; what they pass on is grouped by each of som (FBDetect's
    SOMDedup), kdd2018 (exclusive stacks) and causes (what can have caused it).
    Precision: of pairs in one group, how many one row of the truth explains. Recall: of pairs with the same
    row behind them in one scan, how many are in one group. A pair with a candidate that no row explains
    counts for neither.
    """
    names = [name for name in presets.split(",") if name]
    for name in names:
        load_scenario(name)  # report mistakes before the work
    drawn = range(first_seed, first_seed + seeds)
    return Experiment(
        lambda advance: measure_grouping(names, drawn, advance=advance),
        len(names) * len(drawn),
        terminal_table(COLUMNS),
    )


def _times(case: Case) -> FloatArray:
    return np.array([candidate.change_time for candidate in case.candidates])


def _levels(case: Case) -> tuple[FloatArray, FloatArray]:
    return (
        np.array([candidate.before for candidate in case.candidates]),
        np.array([candidate.after for candidate in case.candidates]),
    )


def _causes(case: Case) -> BoolArray:
    return potential_causes([candidate.metric for candidate in case.candidates], case.changes)
