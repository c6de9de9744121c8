"""Grouping by the explanation beside grouping by rules, on the recorded fleets.

``python -m tests.support.explained_fleets`` prints a table of what either reports; ``--only NAME`` of one
fleet, ``--seed N`` with other draws than the recorded ones, ``--verbose`` with the events that differ.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from loadgen.evaluation.matching import MatchedEvent
from loadgen.evaluation.model import Outcome
from loadgen.evaluation.reading import truth_from_json
from loadgen.evaluation.runs import score_backtest
from loadgen.fleet.simulate import simulate
from pipeline.backtest.run import run_backtest
from pipeline.settings.config import Settings
from tests.support.fleet_choice import FLEETS, RecordedFleet

Grouping = Literal["cause", "explained"]
GROUPINGS: tuple[Grouping, ...] = ("cause", "explained")
OUTCOMES: tuple[Outcome, ...] = ("true_positive", "repeated", "false_positive")


def judge_fleet(fleet: RecordedFleet, seed: int, grouping: Grouping) -> list[MatchedEvent]:
    """Return the events of a fleet, each with what the truth says of it."""
    workloads = [
        workload.model_copy(update={"grouping": grouping, "steps": ()})
        for workload in fleet.chosen_workloads()
    ]
    judged: list[MatchedEvent] = []
    for scenario in fleet.scenarios():
        data = simulate(scenario, seed).dataset
        run = run_backtest(data, workloads, settings=Settings())
        judged += score_backtest(truth_from_json(data.truth), run, workloads).matching.judged
    return judged


def _cells(judged: list[MatchedEvent]) -> str:
    outcomes = Counter(item.outcome for item in judged)
    return " | ".join(str(outcomes[outcome]) for outcome in OUTCOMES)


def _differences(judged: dict[Grouping, list[MatchedEvent]]) -> Iterator[str]:
    """Yield the events that one grouping reports, or reports otherwise."""
    events = [{(item.event.metric, item.outcome) for item in judged[grouping]} for grouping in GROUPINGS]
    for sign, some in (("-", events[0] - events[1]), ("+", events[1] - events[0])):
        yield from (f"    {sign} {metric}: {outcome}" for metric, outcome in sorted(some))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[fleet.name for fleet in FLEETS], action="append")
    parser.add_argument("--seed", type=int, help="another seed than that of the record")
    parser.add_argument("--verbose", action="store_true", help="name the events that differ")
    arguments = parser.parse_args()
    print("| fleet | rules: true | repeated | false | explanation: true | repeated | false |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    every: dict[Grouping, list[MatchedEvent]] = {grouping: [] for grouping in GROUPINGS}
    taken_s = dict.fromkeys(GROUPINGS, 0.0)
    for fleet in FLEETS:
        if arguments.only and fleet.name not in arguments.only:
            continue
        judged: dict[Grouping, list[MatchedEvent]] = {}
        for grouping in GROUPINGS:
            began = time.process_time()
            judged[grouping] = judge_fleet(fleet, arguments.seed or fleet.seed, grouping)
            taken_s[grouping] += time.process_time() - began
            every[grouping] += judged[grouping]
        print(f"| {fleet.name} | {' | '.join(map(_cells, judged.values()))} |", flush=True)
        if arguments.verbose:
            print("\n".join(_differences(judged)))
    print(f"| all | {' | '.join(map(_cells, every.values()))} |")
    print(f"{', '.join(f'{grouping} {taken_s[grouping]:.0f} s' for grouping in GROUPINGS)} of a processor")


if __name__ == "__main__":
    main()
