"""Source of the weights of pipeline.analysis.rootcause.ranking: simulated fleets of known root causes.

``python -m loadgen.evaluation.relevance --seeds 101-104`` simulates presets, backtests them, gathers the
evidence on every reported regression as the stage does, and prints the weights under which the truth is
likeliest: of the root cause where there is one, of "none" where there is none. Reported cost shifts are
left out: they are neither.

The simulator knows the subroutines of every change, and life does not. So every regression is learnt from
twice, once as if no change's subroutines were known.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from loadgen.evaluation.matching import Tolerances, match, tolerance_s
from loadgen.evaluation.model import Outcome
from loadgen.evaluation.reading import events_from_json, truth_from_json
from loadgen.fleet.scenario import load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.analysis.rootcause import (
    FEATURES,
    Evidence,
    RankingConfig,
    confidences,
    features,
    leave_out,
    weigh_changes,
    weights_of,
)
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.run import run_backtest
from pipeline.messages.events import regression_id
from pipeline.model import BoolArray, FloatArray
from pipeline.settings.workloads import Workload, load_workloads
from pipeline.stages.gather.changes import recent_changes
from pipeline.stages.gather.suspects import CauseEvidence, cause_config
from pipeline.storage.arrays import ArrayStore

SCENARIOS = ("small", "steps", "cascade", "low-sampling", "gradual", "transients", "medium", "cost-shift")
WORKLOADS = ("frontfaas-small", "ct-demand", "ct-supply-short")

_FREE = ("base", "rank", "noise")

INDEPENDENT = np.array([0.0 if name in _FREE else 1.0 for name in FEATURES])
"""Weights of evidence that is independent and exact."""


@dataclass(frozen=True, slots=True)
class RegressionCase:
    """One reported regression: its candidates' features, and which of them caused it, if any did."""

    name: str
    outcome: Outcome
    caused: bool  # whether some change caused it, among the candidates or not
    table: FloatArray  # (changes, FEATURES)
    unattributed: FloatArray  # the same as if no change's subroutines were known
    causing: BoolArray  # (changes,)


def gather(dataset: Dataset, workloads: Sequence[Workload], name: str) -> list[RegressionCase]:
    """Backtest a simulated service and return a case for each reported regression except cost shifts."""
    backtest = run_backtest(dataset, workloads)
    store = ArrayStore(dataset)
    gathering = CauseEvidence(store)
    by_name = {workload.name: workload for workload in workloads}
    evidence: dict[str, Evidence | None] = {}
    for scan in backtest.scans:
        if not scan.candidates:
            continue
        workload = by_name[scan.workload]
        for cluster in gathering.gather(scan, workload, recent_changes(store, scan)):
            weighed = weigh_changes(cluster, cause_config(workload))
            for candidate, changes_evidence in zip(cluster.candidates, weighed, strict=True):
                evidence[regression_id(scan.service, scan.workload, candidate, scan.end)] = changes_evidence
    tolerances = Tolerances({workload.name: tolerance_s(workload) for workload in workloads})
    cases = []
    for judged in match(truth_from_json(dataset.truth), events_from_json(backtest.events), tolerances).judged:
        truth, weighed_changes = judged.truth, evidence[judged.event.id]
        real = judged.outcome != "false_positive"
        if weighed_changes is None or (truth and truth.kind == "cost_shift"):
            continue
        causes = {truth.change, *truth.changes} - {None} if truth and real else set()
        causing = np.array([change.id in causes for change in weighed_changes.changes], dtype=np.bool_)
        cases.append(
            RegressionCase(
                name,
                judged.outcome,
                bool(causes),
                features(weighed_changes),
                features(leave_out(weighed_changes, frozenset({"factor_attribution"}))),
                causing,
            )
        )
    return cases


def fit(cases: Sequence[RegressionCase], *, ridge: float = 1.0) -> FloatArray:
    """Return the weights of the highest likelihood: (FEATURES,).

    Args:
        cases: From ``gather``.
        ridge: Strength of the pull towards INDEPENDENT: the inverse variance of a normal prior.
    """
    tables = [(table, case.causing) for case in cases for table in (case.table, case.unattributed)]

    def loss(weights: FloatArray) -> float:
        surprise = -sum(_log_likelihood(table, causing, weights) for table, causing in tables)
        return float(surprise + 0.5 * ridge * ((weights - INDEPENDENT) ** 2).sum())

    return np.asarray(minimize(loss, INDEPENDENT, method="L-BFGS-B").x, dtype=np.float64)


def _log_likelihood(table: FloatArray, causing: BoolArray, weights: FloatArray) -> float:
    confidence = confidences(table, weights)
    likelihood = float(confidence[causing].sum()) if causing.any() else 1.0 - float(confidence.sum())
    return float(np.log(max(likelihood, 1e-12)))


def describe(cases: Sequence[RegressionCase], weights: FloatArray, config: RankingConfig) -> list[str]:
    """Return lines on the share of right suggestions under some weights, and on their calibration."""
    first = three = suggested = caused = false = uncaused = 0
    sums, hits = [], []
    for case in cases:
        confidence = confidences(case.table, weights)
        best = np.argsort(-confidence)[: config.most]
        hit, sure = bool(case.causing[best].any()), float(confidence[best].sum())
        sums.append(sure)
        hits.append(hit)
        if case.outcome != "true_positive":
            continue
        named = sure >= config.min_confidence
        caused, uncaused = caused + case.caused, uncaused + (not case.caused)
        suggested += named and case.caused
        first += named and bool(case.causing[best[:1]].any())
        three += named and hit
        false += named and not case.caused
    lines = [
        f"root cause first {first} of {caused}, in the first three {three}; suggested {suggested}",
        f"without a root cause: suggested {false} of {uncaused}",
    ]
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        inside = [i for i, sure in enumerate(sums) if low <= sure < high]
        if inside:
            mean, right = np.mean([sums[i] for i in inside]), np.mean([hits[i] for i in inside])
            span = f"confidence {low:.2f} to {min(high, 1):.2f}"
            lines.append(f"{span}: {len(inside)} cases, {mean:.2f} on average, {right:.2f} right")
    return lines


def main(arguments: Sequence[str]) -> None:
    """Print weights learnt from some seeds, and the results of the present weights on them."""
    parser = argparse.ArgumentParser(prog="python -m loadgen.evaluation.relevance", description=__doc__)
    parser.add_argument("--seeds", default="101-104", help="FIRST-LAST")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    workloads = load_workloads(WORKLOADS)
    cases: list[RegressionCase] = []
    for seed in range(int(first), int(last or first) + 1):
        for name in options.scenarios.split(","):
            cases += gather(simulate(load_scenario(name), seed).dataset, workloads, f"{name} {seed}")
    print(f"{len(cases)} regressions")
    for title, weights in (("present", weights_of(RankingConfig())), ("learnt", fit(cases))):
        print(f"{title}: " + ", ".join(f"{k} {w:.2f}" for k, w in zip(FEATURES, weights, strict=True)))
        print("\n".join(f"  {line}" for line in describe(cases, weights, RankingConfig())))


if __name__ == "__main__":
    main(sys.argv[1:])
