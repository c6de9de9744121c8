"""A service that runs some hours a day: what begins late in the day is judged by the next."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.fleet.scenario import Scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.run import run_backtest
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.settings.workloads import load_workloads

SCENARIO = {
    "name": "office-hours",
    "duration": "8d",
    "samples_per_minute": 60,
    "graph": {"subroutines": 20, "endpoints": 2},
    "servers": {"count": 400},
    "load": {"hours": [8, 18]},
    "changes": {"count": 5},
    "inject": [{"kind": "step", "count": 1, "delta": [0.03, 0.04], "between": [0.8425, 0.8426], "config": 1}],
}


@pytest.mark.slow
def test_a_regression_just_before_closing_is_reported_the_next_day() -> None:
    dataset = simulate(Scenario.model_validate(SCENARIO, by_alias=True), 4).dataset
    (row,) = dataset.truth
    assert 17 * HOUR_S < row["start"] % DAY_S < 18 * HOUR_S
    found = run_backtest(dataset, load_workloads(("frontfaas-small",)))
    start = row["start"]
    event, *_ = found.events
    reported = next(scan for scan in found.scans if scan.candidates)
    assert abs(reported.candidates[0].change_time - start) <= 1200
    assert event["type"] == "smidgen.regression.detected"
    assert event["data"]["metric"] == row["subroutines"][0]
    assert reported.end <= (start // DAY_S + 1) * DAY_S + 16 * HOUR_S
    # The analysis and the extended window hold four and six hours with data each.
    window = dataset.start + np.arange(len(dataset.totals)) * dataset.window_s
    known = dataset.totals > 0
    for begin, end, hours in (
        (reported.analysis_start, reported.analysis_end, 4),
        (reported.analysis_end, reported.end, 6),
    ):
        assert known[(window >= begin) & (window < end)].sum() * dataset.window_s == hours * HOUR_S
