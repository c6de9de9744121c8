"""Scan of simulated fleets with access logs, after deduplication, with and without a step.

``python -m tests.support.served_fleets`` prints the table of docs/maths/request-mix.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import simulate
from pipeline.analysis.mix.request_decision import KEY
from pipeline.backtest.dataset import Dataset
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.stages.ablation import NOTHING, Without
from tests.unit.stages.test_mix_search import WORKLOAD, scan_of

DAYS, AT = 12, 0.885

FLEET: dict[str, Any] = {
    "name": "served",
    "duration": f"{DAYS}d",
    "samples_per_minute": 6,
    "graph": {"subroutines": 100, "endpoints": 8},
    "servers": {"count": 600},
    "changes": {"count": 20},
    "noise": {"mix_drift": 0.04, "dispersion": 0.05},
}
CAMPAIGN = {"requests": 1000, "shifts": [{"at": AT - 0.0015, "share": 0.4, "over": "30m"}]}
STEPS = [{"kind": "step", "count": 4, "delta": [0.0005, 0.004], "between": [AT - 0.001, AT + 0.001]}]
CASES: dict[str, dict[str, Any]] = {
    "a campaign": {"load": CAMPAIGN},
    "steps": {"load": {"requests": 1000}, "inject": STEPS},
    "a campaign and steps": {"load": CAMPAIGN, "inject": STEPS},
}


def counted(dataset: Dataset, without: Without) -> tuple[int, int, int]:
    """Return the numbers of events without a cause, of steps found, and of all steps."""
    end = dataset.start + AT * DAYS * DAY_S + 9.5 * HOUR_S
    scan = scan_of(dataset, end - end % WORKLOAD.rerun_interval_s, without, stage="dedup")
    steps = [row for row in dataset.truth if row["kind"] == "regression"]
    detected: set[str] = set()
    false = 0
    for candidate in scan.candidates:
        names = {candidate.metric, *(member.metric for member in candidate.group)}
        hits = {row["id"] for row in steps if names.intersection(name for _, name, _ in row["series"])}
        detected |= hits
        false += not hits
    return false, len(detected), len(steps)


def main(seeds: int = 8) -> None:
    """Print the table."""
    for case, changes in CASES.items():
        sums = np.zeros((2, 3), dtype=int)
        for seed in range(1, seeds + 1):
            dataset = simulate(Scenario.model_validate({**FLEET, **changes}), seed).dataset
            sums += [counted(dataset, without) for without in (frozenset({KEY}), NOTHING)]
        (false, hits, _), (false_with, hits_with, steps) = sums.tolist()
        print(f"| {case} | {false} | {false_with} | {hits} of {steps} | {hits_with} of {steps} |")


if __name__ == "__main__":
    main()
