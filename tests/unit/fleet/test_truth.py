"""Truth rows against what the data shows, kind by kind; the draws' independence; the root causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from loadgen.fleet.scenario import TYPES, Scenario, load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.backtest.dataset import Dataset
from pipeline.model import BoolArray

EXACT = {
    "name": "exact",
    "duration": "4d",
    "samples_per_minute": 60,
    "servers": {
        "count": 20_000,
        "missing": 0,
        "cost_spread": 0,
        "generations": [
            {"share": 0.5, "cpu": 0.4, "variance": 0, "regression": 0.6},
            {"share": 0.5, "cpu": 0.6, "variance": 0, "regression": 1.4},
        ],
    },
    "graph": {"subroutines": 80, "endpoints": 5},
    "load": {"daily": 0.2, "weekly": 0.0, "mix_daily": 0, "mix_weekly": 0},
    "noise": {"drift": 0, "mix_drift": 0},
    "changes": {"count": 40},
}
"""So many samples, and so little that moves by itself, that levels can be read off."""

LASTING = [
    "step",
    "gradual",
    "scoped",
    "cascade",
    "improvement",
    "spike_then_step",
    "cost_shift",
    "new_feature",
]
CASES = [(kind, chosen) for kind in LASTING for chosen in TYPES.get(kind, ("",))]


def fleet(kind: str, chosen: str = "", **keys: Any) -> Dataset:
    group = {"kind": kind, "between": [0.5, 0.6], **({"types": [chosen]} if chosen else {}), **keys}
    return simulate(Scenario.model_validate({**EXACT, "inject": [group]}, by_alias=True), seed=11).dataset


def level(data: Dataset, kind: str, name: str, where: BoolArray) -> float:
    row = [i for i, key in enumerate(zip(data.kinds, data.names, strict=True)) if key == (kind, name)][0]
    return float(data.samples[row, where].sum() / data.totals[where].sum())


def error(data: Dataset, kind: str, name: str, one: BoolArray, other: BoolArray) -> float:
    """Return the standard error of the difference of two levels, from sampling alone."""
    variances = []
    for where in (one, other):
        p = level(data, kind, name, where)
        variances.append(p * (1 - p) / data.totals[where].sum())
    return float(np.sqrt(sum(variances)))


def starts(data: Dataset) -> Any:
    return data.start + np.arange(len(data.totals)) * data.window_s


@pytest.mark.parametrize(("kind", "chosen"), CASES, ids=lambda part: part)
def test_lasting_changes_are_as_large_as_the_truth_says(kind: str, chosen: str) -> None:
    keys: dict[str, Any] = {"duration": ["6h", "12h"]} if kind == "gradual" else {}
    if kind == "spike_then_step":
        keys = {"duration": ["1h", "2h"], "delta": [0.005, 0.01]}
    data = fleet(kind, chosen, **keys)
    row = next(row for row in data.truth if row["kind"] != "transient")
    windows = starts(data)
    settled = row.get("ramp_end", row["start"] + (1800 if kind == "new_feature" else 0))
    before = windows < data.start + 86_400
    after = windows >= settled + data.window_s
    assert row["start"] >= data.start + 1.9 * 86_400
    assert [row["metric_kind"], row["subroutines"][0], row["delta"]] in row["series"]
    for series_kind, name, delta in row["series"]:
        if series_kind == "service":
            continue
        found = level(data, series_kind, name, after) - level(data, series_kind, name, before)
        noise = 4 * error(data, series_kind, name, before, after)
        assert found == pytest.approx(delta, rel=0.02, abs=noise), name


@pytest.mark.parametrize("chosen", [t for t in TYPES["transient"] if t != "rolling_update"])
def test_transients_rise_as_the_truth_says_and_recover(chosen: str) -> None:
    data = fleet("transient", chosen, duration=["9h", "9h"], delta=[0.01, 0.02])
    (row,) = data.truth
    windows = starts(data)
    length = row["end"] - row["start"]
    during = (windows > row["start"] + 0.25 * length) & (windows < row["start"] + 0.6 * length)
    outside = (windows < row["start"] - 600) | (windows > row["end"] + 600)
    late = windows > row["end"] + 600
    for series_kind, name, delta in row["series"]:
        if series_kind == "service":
            continue
        base = level(data, series_kind, name, outside)
        found = level(data, series_kind, name, during) - base
        noise = 4 * error(data, series_kind, name, outside, during)
        assert found == pytest.approx(delta, rel=0.03, abs=noise), name
        noise = 4 * error(data, series_kind, name, outside, late)
        assert level(data, series_kind, name, late) == pytest.approx(base, abs=noise)


def test_a_rolling_update_comes_in_waves() -> None:
    data = fleet("transient", "rolling_update", duration=["12h", "12h"], delta=[0.02, 0.03])
    (row,) = data.truth
    windows = starts(data)
    inside = (windows > row["start"]) & (windows + 600 < row["end"])
    position = data.names.index(row["subroutines"][0])
    values = (data.samples[position] / data.totals)[inside]
    jumps = np.flatnonzero(np.diff(values) > 0.4 * row["delta"])
    assert len(jumps) == 5  # between six waves
    assert data.totals[inside].mean() < np.roll(data.totals, 144)[inside].mean()  # servers restart


@pytest.mark.parametrize("chosen", TYPES["seasonal"])
def test_seasonality_comes_back_and_rises_at_the_edge(chosen: str) -> None:
    keys = {**EXACT, "duration": "14d", "inject": [{"kind": "seasonal", "types": [chosen]}]}
    data = simulate(Scenario.model_validate(keys, by_alias=True), seed=3).dataset
    (row,) = data.truth
    since = (starts(data) - row["last_rise"]) % row["period_s"]
    high = (since > 1800) & (since < row["length_s"] - 2400)
    low = (since > row["length_s"] + 600) & (since < row["period_s"] - 1200)
    name = row["subroutines"][0]
    rise = level(data, "subroutine", name, high) - level(data, "subroutine", name, low)
    assert rise == pytest.approx(row["delta"], rel=0.03)
    assert (row["start"], row["end"]) == (data.start, data.end)
    assert 1.9 * 3600 < data.end - row["last_rise"] < 5.1 * 3600


@pytest.mark.parametrize("chosen", TYPES["service_metric"])
def test_service_level_metrics_change_as_the_truth_says(chosen: str) -> None:
    data = fleet("service_metric", chosen, delta=[0.2, 0.3])
    (row,) = data.truth
    (points,) = [one for one in data.metrics if one.metric == row["subroutines"][0]]
    after = points.timestamps > row["start"]
    days = points.timestamps < row["start"]
    assert row["metric_kind"] == "service"
    ratio = points.values[after].mean() / points.values[days].mean()
    assert ratio - 1 == pytest.approx(row["delta"], abs=0.08)


def test_a_regression_costs_more_on_one_generation_than_on_the_other() -> None:
    shares: list[float] = []
    for share in (0.001, 0.999):
        servers = {
            **EXACT["servers"],  # type: ignore[dict-item]
            "generations": [
                {"share": share, "cpu": 0.4, "variance": 0, "regression": 0.6},
                {"share": 1 - share, "cpu": 0.6, "variance": 0, "regression": 1.4},
            ],
        }
        group = {"kind": "step", "delta": [0.01, 0.01]}
        made = Scenario.model_validate({**EXACT, "servers": servers, "inject": [group]}, by_alias=True)
        data = simulate(made, seed=11).dataset
        row, windows = data.truth[0], starts(data)
        name = row["subroutines"][0]
        after = level(data, "subroutine", name, windows > row["start"])
        shares.append(after - level(data, "subroutine", name, windows < row["start"] - 600))
    assert shares == pytest.approx([0.01, 0.01], rel=0.05)  # measured on the fleet as it is


def test_service_level_metrics_follow_a_large_regression() -> None:
    data = fleet("step", delta=[0.3, 0.3])
    row = data.truth[0]
    assert {"throughput", "cpu_utilisation"} <= set(row["subroutines"])
    (points,) = [one for one in data.metrics if one.metric == "throughput"]
    after = points.timestamps > row["start"]
    fall = points.values[after].mean() / points.values[~after].mean() - 1
    stated = next(delta for _, name, delta in row["series"] if name == "throughput")
    assert fall == pytest.approx(stated, abs=0.02)


def test_the_nearest_series_comes_first_and_callers_follow() -> None:
    data = fleet("cascade", delta=[0.01, 0.01])
    row = data.truth[0]
    target, *rest = row["subroutines"]
    assert target.startswith("lib.")
    assert len(rest) > 3
    callers = {stack[-2] for stack in data.stacks if stack[-1] == target}
    assert len(callers) > 2
    assert callers & set(rest)


def test_root_causes_are_deployed_when_they_act_and_gates_come_with_what_explains_them() -> None:
    group = {"kind": "step", "count": 40, "no_culprit": 0.2, "config": 0.5, "delta": [0.001, 0.002]}
    data = simulate(Scenario.model_validate({**EXACT, "inject": [group]}, by_alias=True), seed=1).dataset
    changes = {change.id: change for change in data.changes}
    assert len(changes) == len(data.changes)
    setup = {points.metric: points for points in data.metrics if points.setup}
    found = {"none": 0, "code": 0, "config": 0}
    for row in data.truth:
        if row["change"] is None:
            found["none"] += 1
            continue
        change = changes[row["change"]]
        assert change.time == row["start"]
        if row["by"] == "code":
            found["code"] += 1
            assert change.subroutines == (row["subroutines"][0],)
            continue
        found["config"] += 1
        code = changes[row["code_change"]]
        assert (change.subroutines, code.subroutines) == ((), (row["subroutines"][0],))
        assert change.gates == code.gates
        assert code.time < change.time
        gate = setup[f"setup.gate.{change.gates[0]}"]
        assert np.array_equal(gate.values > 0, gate.timestamps + data.window_s > row["start"])
    assert all(found.values())


def test_a_set_up_metric_says_how_many_servers_there_are() -> None:
    made = load_scenario("tiny")
    (servers,) = [one for one in simulate(made, 1).dataset.metrics if one.metric == "servers"]
    assert servers.setup
    assert 0.9 * made.servers.count < servers.values.min() <= servers.values.max() <= made.servers.count


def test_the_same_seed_gives_the_same_fleet_and_another_seed_another() -> None:
    made = load_scenario("tiny")
    one, same, other = (simulate(made, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.counts, same.counts)
    assert (one.dataset.truth, one.dataset.changes) == (same.dataset.truth, same.dataset.changes)
    assert [points.values.tolist() for points in one.dataset.metrics] == [
        points.values.tolist() for points in same.dataset.metrics
    ]
    assert one.dataset.truth != other.dataset.truth


def drawn(row: Mapping[str, Any]) -> dict[str, Any]:
    """A truth row without what is measured on the samples, which any other change moves."""
    return {key: value for key, value in row.items() if key != "standard_error"}


def test_one_more_injection_changes_no_other_draw() -> None:
    groups = [{"kind": "step", "count": 3}, {"kind": "cost_shift", "types": ["move"]}]
    more = [{"kind": "cascade", "name": "first"}, *groups]
    base, larger = (
        simulate(Scenario.model_validate({**EXACT, "inject": inject}, by_alias=True), seed=6)
        for inject in (groups, more)
    )
    added = next(row for row in larger.dataset.truth if row["id"] == "first-001")
    kept = [drawn(row) for row in larger.dataset.truth if row is not added]
    assert kept == [drawn(row) for row in base.dataset.truth]
    before = dict(zip(base.dataset.stacks, base.counts, strict=True))
    changed = 0
    for stack, counts in zip(larger.dataset.stacks, larger.counts, strict=True):
        if added["subroutines"][0] == stack[-1]:
            changed += 1
            continue
        assert np.array_equal(before[stack], counts), stack
    assert changed


def test_cost_follows_the_misses_of_a_cache() -> None:
    data = fleet("hit_ratio", delta=[0.02, 0.02])
    (row,) = data.truth
    (shown,) = [points for points in data.metrics if points.metric == row["explanation"]]
    assert (shown.setup, row["kind"], row["change"]) == (True, "regression", None)
    (series,) = [n for n, key in enumerate(data.series) if key.name == row["subroutines"][0]]
    after = data.start + np.arange(len(data.totals)) * data.window_s >= row["start"]
    share = data.samples[series] / data.totals
    assert shown.values[~after].mean() - shown.values[after].mean() > 0.08
    for part in (after, ~after):  # beside the step, too
        assert np.corrcoef(share[part], shown.values[part])[0, 1] < -0.8
