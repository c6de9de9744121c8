"""The explanation beside the rules: it is said of every candidate with stacks, and changes no event."""

from __future__ import annotations

from loadgen.fleet.simulate import simulate
from pipeline.backtest.run import run_backtest
from pipeline.messages.ledger import dropped_entries, entry_to_json, reported_entries
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.config import Settings
from tests.support.fleet_choice import FLEETS


def test_the_explanation_stands_beside_decisions_and_changes_none() -> None:
    (fleet,) = (fleet for fleet in FLEETS if fleet.name == "tiny")
    (scenario,) = fleet.scenarios()
    data = simulate(scenario, fleet.seed).dataset
    workloads = fleet.chosen_workloads()
    asked = [workload.model_copy(update={"steps": ("explanation",)}) for workload in workloads]
    plain, explained = (run_backtest(data, chosen, settings=Settings()) for chosen in (workloads, asked))
    assert [event["id"] for event in explained.events] == [event["id"] for event in plain.events]
    assert explained.events
    sentences = 0
    for before, scan in zip(plain.scans, explained.scans, strict=True):
        assert [d.decision for d in scan.dropped] == [d.decision for d in before.dropped]
        for candidate in scan.candidates:
            decisions = [decision for decision in candidate.passed if decision.step == "explanation"]
            assert len(decisions) == is_gcpu(candidate.metric_kind)
        for entry in map(entry_to_json, (*dropped_entries(scan), *reported_entries(scan))):
            sentences += sum(" points" in said["reason"] for said in entry["passed"])
    assert sentences >= len(explained.events)
