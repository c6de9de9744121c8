"""The explanation in a backtest: it stands once with every candidate that has stacks, and can be left out."""

from __future__ import annotations

import pytest

from loadgen.fleet.simulate import simulate
from pipeline.backtest.run import run_backtest
from pipeline.messages.ledger import dropped_entries, entry_to_json, reported_entries
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.config import Settings
from tests.support.fleet_choice import FLEETS


@pytest.mark.parametrize("grouping", ["explained", "cause"])
def test_the_explanation_stands_with_every_candidate_that_it_judged(grouping: str) -> None:
    (fleet,) = (fleet for fleet in FLEETS if fleet.name == "tiny")
    (scenario,) = fleet.scenarios()
    data = simulate(scenario, fleet.seed).dataset
    workloads = [w.model_copy(update={"grouping": grouping}) for w in fleet.chosen_workloads()]
    explained = run_backtest(data, workloads, settings=Settings())
    assert explained.events
    sentences = 0
    for scan in explained.scans:
        for candidate in scan.candidates:
            decisions = [decision for decision in candidate.passed if decision.step == "explanation"]
            assert len(decisions) == (is_gcpu(candidate.metric_kind) and grouping == "explained")
        for entry in map(entry_to_json, (*dropped_entries(scan), *reported_entries(scan))):
            sentences += sum(" points" in said["reason"] for said in entry["passed"])
    assert (sentences >= len(explained.events)) is (grouping == "explained")
