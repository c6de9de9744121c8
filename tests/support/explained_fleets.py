"""The explanation beside today's rules, on the recorded fleets: what each says of true and false candidates.

``python -m tests.support.explained_fleets`` prints a table; ``--only NAME`` of one fleet, ``--seed N`` with
other draws than the recorded ones.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadgen.evaluation.model import UNEXPECTED_KINDS
from loadgen.fleet.simulate import simulate
from pipeline.analysis.explain.verdict import STEP
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.run import run_backtest
from pipeline.model import Candidate, Decision, Scan
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.config import Settings
from tests.support.fleet_choice import FLEETS, RecordedFleet

CODES = ("own", "through", "moved", "entry", "unclear", "gone")
NEAR_S = 6 * 3600.0
"""How far from its onset a candidate may be dated and be the regression that was put in."""


@dataclass(slots=True)
class Verdicts:
    """What the explanation says of a fleet's candidates, by what the rules made of them and the truth."""

    events: dict[bool, Counter[str]] = field(default_factory=lambda: {True: Counter(), False: Counter()})
    others: dict[bool, Counter[str]] = field(default_factory=lambda: {True: Counter(), False: Counter()})
    seconds: float = 0.0


def explain_fleet(fleet: RecordedFleet, seed: int) -> Verdicts:
    """Return what the explanation says of the candidates of one fleet that reach deduplication."""
    verdicts = Verdicts()
    workloads = [
        workload.model_copy(update={"steps": (*workload.steps, STEP)})
        for workload in fleet.chosen_workloads()
    ]
    began = time.process_time()
    for scenario in fleet.scenarios():
        data = simulate(scenario, seed).dataset
        for scan in run_backtest(data, workloads, settings=Settings()).scans:
            for is_event, candidate, decision in _explained(scan):
                counter = (verdicts.events if is_event else verdicts.others)[_is_true(data, candidate)]
                counter[decision.code] += 1
    verdicts.seconds = time.process_time() - began
    return verdicts


def _explained(scan: Scan) -> Iterator[tuple[bool, Candidate, Decision]]:
    """Yield the candidates with stacks, whether they were reported by themselves, and the explanation."""
    reported = [(True, candidate) for candidate in scan.candidates]
    members = [(False, member) for candidate in scan.candidates for member in candidate.group]
    dropped = [(False, dropped.candidate) for dropped in scan.dropped]
    joined = [(False, joined.candidate) for joined in scan.joined]
    for is_event, candidate in (*reported, *members, *dropped, *joined):
        for decision in candidate.passed:
            if decision.step == STEP and decision.code and is_gcpu(candidate.metric_kind):
                yield is_event, candidate, decision


def _is_true(data: Dataset, candidate: Candidate) -> bool:
    """Return whether a candidate is the cause that was put in, about when it was."""
    return any(
        row["kind"] not in UNEXPECTED_KINDS
        and _leads(row, candidate)
        and row["start"] - NEAR_S < candidate.change_time < (row.get("end") or row["start"]) + NEAR_S
        for row in data.truth
    )


def _leads(row: Mapping[str, Any], candidate: Candidate) -> bool:
    return bool(row["series"]) and tuple(row["series"][0][:2]) == tuple(candidate.series)


def table(rows: Sequence[tuple[str, Verdicts]]) -> Iterator[str]:
    """Yield the lines of the table: of each group how many there are, and how many of each code."""
    yield "| fleet | true events | other events | true, not reported | s |"
    yield "| --- | --- | --- | --- | --- |"
    total = Verdicts()
    for name, verdicts in rows:
        yield _line(name, verdicts)
        for truth in (True, False):
            total.events[truth] += verdicts.events[truth]
            total.others[truth] += verdicts.others[truth]
        total.seconds += verdicts.seconds
    yield _line("all", total)


def _line(name: str, verdicts: Verdicts) -> str:
    groups = (verdicts.events[True], verdicts.events[False], verdicts.others[True])
    return f"| {name} | {' | '.join(map(_counts, groups))} | {verdicts.seconds:.0f} |"


def _counts(counter: Counter[str]) -> str:
    named = ", ".join(f"{counter[code]} {code}" for code in CODES if counter[code])
    return f"{counter.total()}: {named}" if named else "0"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[fleet.name for fleet in FLEETS], action="append")
    parser.add_argument("--seed", type=int, help="another seed than that of the record")
    arguments = parser.parse_args()
    rows = []
    for fleet in FLEETS:
        if not arguments.only or fleet.name in arguments.only:
            rows.append((fleet.name, explain_fleet(fleet, arguments.seed or fleet.seed)))
            print(_line(*rows[-1]), flush=True)
    print()
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
