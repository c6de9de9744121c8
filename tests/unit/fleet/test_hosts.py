"""Fleets whose hosts are kept apart: strata add up, rollouts reach hosts in stages, mixes move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.evaluation.reading import truth_from_json
from loadgen.evaluation.suite.presets import HOSTS
from loadgen.fleet.publish import messages
from loadgen.fleet.scenario import Scenario, load_scenario
from loadgen.fleet.simulate import Fleet, simulate
from pipeline.backtest.dataset import Dataset, read_dataset, write_dataset
from pipeline.messages.measurements import decode_profile
from pipeline.model import FloatArray, Profile
from pipeline.model.strata import Stratum

DAY = 144  # windows
REGIONS = {"east": 0.5, "west": 0.3, "north": 0.2}
SMALL: dict[str, Any] = {
    "name": "t",
    "duration": "4d",
    "samples_per_minute": 6,
    "graph": {"subroutines": 60, "endpoints": 5},
    "servers": {"count": 200},
    "changes": {"count": 20, "release_every": "1d"},
    "noise": {"drift": 0, "mix_drift": 0},
}
STEP = {"kind": "step", "delta": [0.02, 0.02], "between": [0.4, 0.9], "config": 0, "no_culprit": 0}


def drawn(seed: int = 3, hosts: dict[str, Any] | None = None, **keys: Any) -> Fleet:
    spec = {"count": 10, "regions": REGIONS, **(hosts or {})}
    scenario = Scenario.model_validate({**SMALL, "hosts": spec, **keys}, by_alias=True)
    return simulate(scenario, seed)


def rolled(rollout: dict[str, Any], **keys: Any) -> Dataset:
    return drawn(inject=[{**STEP, "rollout": rollout, **keys}]).dataset


def shares(data: Dataset, *names: str) -> FloatArray:
    """Return the share of a window's samples that strata with a release, host or label have: (windows,)."""
    chosen = [
        row
        for row, one in enumerate(data.strata)
        if {one.host, one.release, *(value for _, value in one.labels)} & set(names)
    ]
    found: FloatArray = data.stratum_totals[chosen].sum(axis=0) / data.totals
    return found


def window(data: Dataset, at: float) -> int:
    return round((at - data.start) / data.window_s)


def level(data: Dataset, name: str, span: slice) -> float:
    row = data.names.index(name)
    return float(data.samples[row, span].sum() / data.totals[span].sum())


def check_sums(data: Dataset) -> None:
    np.testing.assert_array_equal(data.stratum_totals.sum(axis=0), data.totals)
    counts = data.stratum_samples
    assert counts is not None
    assert (counts.samples > 0).all()
    windows = data.stack_samples.shape[1]
    wanted = data.samples.reshape(len(data.names), windows, -1).sum(axis=2)
    found = np.zeros(wanted.shape)
    np.add.at(found, (counts.series, counts.window), counts.samples)
    np.testing.assert_array_equal(found, wanted)
    most = data.stratum_totals.reshape(len(data.strata), windows, -1).sum(axis=2)
    assert (counts.samples <= most[counts.stratum, counts.window]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param({}, id="regions"),
        pytest.param({"named": False, "machines": {"a": 0.5, "b": 0.5}}, id="nameless"),
        pytest.param({"pods": True, "churn": 4, "least_hosts": 0.3}, id="pods"),
        pytest.param({"rates": [{"share": 0.1, "factor": 10, "at": 0.5}]}, id="rates"),
        pytest.param(
            {"clocks": [{"share": 0.2, "offset": 3600}, {"share": 0.2, "offset": -7200}]}, id="clocks"
        ),
        pytest.param({"late": {"share": 0.5, "delay": "30m"}}, id="late"),
        pytest.param({"arrivals": [{"machine": "n", "share": 0.5, "at": 0.4, "over": "1d"}]}, id="arrivals"),
        pytest.param(
            {"drains": [{"region": "east", "at": 0.5, "length": "1d", "taken": False}]}, id="drains"
        ),
    ],
)
def test_strata_add_up_to_the_whole(hosts: dict[str, Any]) -> None:
    check_sums(drawn(hosts=hosts).dataset)


def test_the_same_seed_gives_the_same_strata() -> None:
    one, other = drawn().dataset, drawn().dataset
    assert one.strata == other.strata
    np.testing.assert_array_equal(one.stratum_totals, other.stratum_totals)
    assert (drawn(seed=4).dataset.stratum_totals != one.stratum_totals).any()


def test_hosts_change_no_draw_of_what_is_injected() -> None:
    plain = simulate(Scenario.model_validate({**SMALL, "inject": [STEP]}, by_alias=True), 3).dataset
    hosted = drawn(inject=[STEP]).dataset
    assert plain.strata == ()
    assert [row["subroutines"] for row in plain.truth] == [row["subroutines"] for row in hosted.truth]
    assert hosted.totals.sum() == pytest.approx(plain.totals.sum(), rel=0.05)


def test_a_folder_keeps_strata(tmp_path: Path) -> None:
    data = drawn(inject=[STEP]).dataset
    write_dataset(data, tmp_path)
    found = read_dataset(tmp_path)
    assert set(found.strata) == set(data.strata)
    order = [data.strata.index(stratum) for stratum in found.strata]
    np.testing.assert_array_equal(found.stratum_totals, data.stratum_totals[order])
    check_sums(found)


def test_labels_of_hosts() -> None:
    data = drawn(hosts={"machines": {"a": 0.7, "b": 0.3}}).dataset
    assert {one.host for one in data.strata} == {f"host-{number:03d}" for number in range(10)}
    assert {one.release for one in data.strata} == {f"r26010{day}.0000" for day in (5, 6, 7, 8)}
    for label, wanted in (("region", {"east": 5, "west": 3, "north": 2}), ("machine", {"a": 7, "b": 3})):
        of = {one.host: dict(one.labels)[label] for one in data.strata}
        assert {value: list(of.values()).count(value) for value in of.values()} == wanted


@pytest.mark.parametrize(
    ("rollout", "first"),
    [
        pytest.param({"style": "staged"}, 0.1, id="staged by host"),
        pytest.param({"style": "staged", "by": "percent"}, 0.05, id="staged by percent"),
        pytest.param({"style": "staged", "by": "region"}, 0.2, id="staged by region"),
        pytest.param({"style": "canary", "length": ["5h", "5h"]}, 0.1, id="canary"),
        pytest.param({"style": "rolling", "length": ["10h", "10h"]}, 0.1, id="rolling"),
        pytest.param({"style": "blue_green", "length": ["1h", "1h"]}, 0.5, id="blue-green"),
    ],
)
def test_a_rollout_reaches_hosts_in_stages(rollout: dict[str, Any], first: float) -> None:
    data = rolled(rollout)
    check_sums(data)
    (row,) = data.truth
    assert (row["kind"], row["end"], row["strata"]) == ("regression", None, {})
    assert row["stages"][0] == [row["start"], pytest.approx(first)]
    assert row["stages"][-1][1] == 1
    share = shares(data, row["release"])
    begin, end = (window(data, row["stages"][which][0]) for which in (0, -1))
    assert not share[:begin].any()
    assert share[end] == pytest.approx(1, abs=0.001)
    assert (np.diff(share[begin : end + 1]) > -0.1).all()
    if rollout["style"] != "blue_green":
        for (at, reached), (until, _) in zip(row["stages"][:-1], row["stages"][1:], strict=True):
            inside = share[window(data, at) : window(data, until)]
            assert inside.mean() == pytest.approx(reached, abs=0.08)
    name = row["subroutines"][0]
    risen = level(data, name, slice(end + 1, end + 30)) - level(data, name, slice(begin - 30, begin))
    assert risen == pytest.approx(row["delta"], rel=0.3)
    assert [change.time for change in data.changes if change.id == row["change"]] == [row["start"]]


def test_a_step_acts_where_its_release_runs() -> None:
    data = rolled({"style": "staged", "stages": [0.5, 1.0], "length": ["10h", "10h"]}, delta=[0.1, 0.1])
    (row,) = data.truth
    counts, series = data.stratum_samples, data.names.index(row["subroutines"][0])
    assert counts is not None
    first, last = (int((at - data.start) // data.stack_window_s) for at, _ in row["stages"])
    inside = (counts.series == series) & (counts.window > first) & (counts.window < last)
    new = np.array([one.release == row["release"] for one in data.strata])
    samples = [counts.samples[inside & (new[counts.stratum] == which)].sum() for which in (False, True)]
    by_window = data.stratum_totals.reshape(len(data.strata), -1, 6).sum(axis=2)[:, first + 1 : last]
    old_level, new_level = (samples[which] / by_window[new == which].sum() for which in (False, True))
    assert new_level - old_level == pytest.approx(row["delta"], rel=0.2)


@pytest.mark.parametrize(("after", "peak"), [(2, 0.25), (4, 1.0)], ids=["aborted", "rolled back"])
def test_an_aborted_rollout_goes_back(after: int, peak: float) -> None:
    data = rolled({"by": "percent", "aborted": 1, "abort_after": after, "length": ["9h", "9h"]})
    check_sums(data)
    (row,) = data.truth
    assert row["kind"] == "aborted_rollout"
    assert row["stages"][-1][1] == peak
    share, end = shares(data, row["release"]), window(data, row["end"])
    assert share[end - 1] == pytest.approx(peak, abs=0.03)
    assert not share[end:].any()
    assert row["delta"] == pytest.approx(0.02 * peak, rel=0.1)
    name = row["subroutines"][0]
    before, after_it = (level(data, name, span) for span in (slice(0, 200), slice(end, end + 100)))
    assert after_it == pytest.approx(before, rel=0.15)


def test_every_other_rollout_is_aborted() -> None:
    data = rolled({"aborted": 0.5, "abort_after": 1, "length": ["2h", "2h"]}, count=4)
    kinds = sorted(row["kind"] for row in data.truth)
    assert kinds == ["aborted_rollout", "aborted_rollout", "regression", "regression"]
    stays = [row for row in data.truth if row["kind"] == "regression"]
    spans = sorted((row["start"], row["stages"][-1][0], row["release"]) for row in data.truth)
    assert all(one[1] < other[0] for one, other in zip(spans, spans[1:], strict=False))
    assert len({release for _, _, release in spans}) == 4
    assert shares(data, *(row["release"] for row in stays))[-1] <= 1


def test_a_second_set_of_hosts_takes_over() -> None:
    data = rolled({"style": "blue_green", "length": ["1h", "1h"]}, count=2)
    green = shares(data, *(f"host-{number:03d}-green" for number in range(10)))
    first, second = (window(data, row["stages"][-1][0]) for row in data.truth)
    assert green[0] == green[-1] == 0
    assert green[first + 1 : second - 7] == pytest.approx(1)


def test_a_regression_on_some_hosts_only() -> None:
    data = drawn(inject=[{**STEP, "only": {"region": "west"}}]).dataset
    (row,) = data.truth
    assert (row["strata"], row["subkind"]) == ({"region": "west"}, "some_hosts")
    counts, at = data.stratum_samples, int((row["start"] - data.start) // data.stack_window_s)
    assert counts is not None
    series = data.names.index(row["subroutines"][0])
    totals = data.stratum_totals.reshape(len(data.strata), -1, 6).sum(axis=2)
    rises = {}
    for region in REGIONS:
        here = np.array([dict(one.labels)["region"] == region for one in data.strata])
        mine = (counts.series == series) & here[counts.stratum]
        parts = [
            counts.samples[mine & chosen].sum() / totals[here][:, span].sum()
            for chosen, span in (
                (counts.window < at, slice(0, at)),
                (counts.window > at, slice(at + 1, None)),
            )
        ]
        rises[region] = parts[1] - parts[0]
    assert rises["west"] == pytest.approx(row["delta"] / 0.3, rel=0.2)
    assert max(abs(rises["east"]), abs(rises["north"])) < rises["west"] / 5
    name = row["subroutines"][0]
    whole = level(data, name, slice(6 * at + 6, None)) - level(data, name, slice(0, 6 * at))
    assert whole == pytest.approx(row["delta"], rel=0.2)


def test_what_is_deployed_while_its_hosts_are_drained_begins_when_they_return() -> None:
    drain = {"region": "west", "at": 0.4, "length": "2d", "ramp": "10m"}
    step = {**STEP, "only": {"region": "west"}, "between": [0.5, 0.6]}
    data = drawn(hosts={"drains": [drain]}, inject=[step]).dataset
    (row,) = [row for row in data.truth if row["kind"] == "regression"]
    back = data.start + 0.4 * (data.end - data.start) + 2 * 86_400
    deployed = {change.id: change.time for change in data.changes}[row["change"]]
    assert deployed < back - 86_400 / 2
    assert row["start"] == pytest.approx(back, abs=1800)


@pytest.mark.parametrize("chosen", ["hosts", "requests"])
def test_an_experiment_has_a_label_of_its_own(chosen: str) -> None:
    group = {"kind": "experiment", "types": [chosen], "between": [0.3, 0.8], "delta": [0.05, 0.05]}
    data = drawn(inject=[group]).dataset
    check_sums(data)
    (row,) = data.truth
    assert (row["kind"], row["subkind"]) == ("experiment", chosen)
    share = shares(data, row["strata"]["variant"])
    inside = slice(window(data, row["start"]), window(data, row["end"]))
    assert share[inside].mean() == pytest.approx(row["stages"][0][1], abs=0.05)
    assert share.sum() == pytest.approx(share[inside].sum())
    assert row["delta"] == pytest.approx(0.05 * row["stages"][0][1], rel=0.1)


@pytest.mark.parametrize("taken", [True, False])
def test_a_region_is_drained(taken: bool) -> None:
    drain = {"region": "east", "at": 0.5, "length": "1d", "ramp": "10m", "taken": taken}
    data, plain = drawn(hosts={"drains": [drain]}).dataset, drawn().dataset
    inside = slice(2 * DAY + 3, 3 * DAY - 3)
    assert not shares(data, "east")[inside].any()
    assert shares(data, "east")[: 2 * DAY - 1].mean() == pytest.approx(0.5, abs=0.06)
    left = data.totals[inside].sum() / plain.totals[inside].sum()
    assert left == pytest.approx(1 if taken else 0.5, abs=0.1)
    (row,) = data.truth
    assert (row["kind"], row["subkind"], row["strata"]) == ("mix_shift", "drain", {"region": "east"})
    (judged,) = truth_from_json(data.truth)
    assert (judged.expected, judged.series, judged.until) == (False, (), row["end"])


def test_regions_run_endpoints_in_another_mix() -> None:
    data = drawn(hosts={"region_mix": 0.8}, servers={"count": 1000}).dataset
    counts = data.stratum_samples
    assert counts is not None
    endpoints = [row for row, kind in enumerate(data.kinds) if kind == "endpoint"]
    levels = np.zeros((len(REGIONS), len(endpoints)))
    for number, region in enumerate(REGIONS):
        here = np.array([dict(one.labels)["region"] == region for one in data.strata])
        for column, endpoint in enumerate(endpoints):
            mine = (counts.series == endpoint) & here[counts.stratum]
            levels[number, column] = counts.samples[mine].sum() / data.stratum_totals[here].sum()
    assert (levels.max(axis=0) / levels.min(axis=0)).max() > 1.5


def test_a_host_with_ten_times_the_rate() -> None:
    rates = {"rates": [{"share": 0.1, "factor": 10, "at": 0.5}], "rate_hz": 10}
    data = drawn(hosts=rates).dataset
    assert shares(data, "100")[: 2 * DAY].sum() == 0
    assert shares(data, "100")[2 * DAY :].mean() == pytest.approx(10 / 19, abs=0.02)
    assert {dict(one.labels)["rate_hz"] for one in data.strata} == {"10", "100"}


def test_traffic_moves_between_endpoints() -> None:
    load = {"shifts": [{"at": 0.5, "share": 0.6, "over": "1h"}], "mix_daily": 0, "mix_weekly": 0}
    data = drawn(load=load).dataset
    rows = [row for row, kind in enumerate(data.kinds) if kind == "endpoint"]
    parts = (slice(0, 2 * DAY), slice(2 * DAY + 12, None))
    before, after = (data.samples[rows, part].sum(axis=1) / data.totals[part].sum() for part in parts)
    moved = after - before
    assert moved.min() / before[moved.argmin()] == pytest.approx(-0.6, abs=0.05)
    assert moved.max() == pytest.approx(-moved.min(), rel=0.2)
    assert np.sort(np.abs(moved))[:-2] == pytest.approx(0, abs=0.01)
    (row,) = data.truth
    assert (row["subkind"], row["ramp_end"] - row["start"]) == ("traffic", 3600)


def test_a_machine_type_comes_in_host_by_host() -> None:
    arrivals = {
        "arrivals": [{"machine": "new", "share": 0.5, "at": 0.4, "over": "1d"}],
        "machines": {"old": 1},
    }
    share = shares(drawn(hosts=arrivals).dataset, "new")
    begin = round(0.4 * 4 * DAY)
    assert not share[: begin - 1].any()
    assert share[begin + DAY :] == pytest.approx(0.5, abs=0.06)
    assert (np.diff(share.reshape(-1, 24).mean(axis=1)) > 0.05).sum() == 5


def test_pods_follow_the_load() -> None:
    data = drawn(hosts={"pods": True, "least_hosts": 0.2, "regions": {}}, load={"daily": 0.8}).dataset
    running = (data.stratum_totals > 0).sum(axis=0)
    load = data.totals / data.totals.max()
    assert running.min() <= 5 < 9 <= running.max()
    assert np.corrcoef(running, load)[0, 1] > 0.9
    assert len({one.host for one in data.strata}) > 40
    assert all(one.host.startswith("shop-r2601") for one in data.strata)


def test_clocks_are_off() -> None:
    quiet: dict[str, Any] = {"load": {"daily": 0.9, "weekly": 0}, "servers": {"count": 2000}}
    spec = {"clocks": [{"share": 0.1, "offset": 7200}], "region_mix": 0}
    data = drawn(hosts=spec, **quiet).dataset
    by_host: dict[str, FloatArray] = {}
    for row, one in enumerate(data.strata):
        by_host[one.host] = by_host.get(one.host, np.zeros(len(data.totals))) + data.stratum_totals[row]
    (off,) = [host for host, totals in by_host.items() if not totals[:12].any()]
    right = sum((totals for host, totals in by_host.items() if host != off), np.zeros(len(data.totals))) / 9
    np.testing.assert_allclose(by_host[off][12:].sum(), right[:-12].sum(), rtol=0.02)
    assert np.corrcoef(by_host[off][12:], right[:-12])[0, 1] > np.corrcoef(by_host[off], right)[0, 1]


def test_late_hosts_lack_the_end() -> None:
    data = drawn(hosts={"late": {"share": 0.5, "delay": "30m"}}).dataset
    recent = data.stratum_totals[:, -3:].sum(axis=1)
    running = data.stratum_totals[:, -6:-3].sum(axis=1) > 0
    assert (recent[running] == 0).sum() == 5
    assert data.totals[-3:].sum() == pytest.approx(data.totals[-6:-3].sum() / 2, rel=0.1)


def sent(fleet: Fleet, hosts: dict[str, Any]) -> list[list[Profile]]:
    scenario = Scenario.model_validate({**SMALL, "hosts": {"count": 10, **hosts}}, by_alias=True)
    return [
        [decode_profile(one.value) for one in batch if one.topic == "profiles"]
        for batch in messages(fleet, scenario, 3)
    ]


@pytest.mark.parametrize(
    "hosts",
    [
        {"rates": [{"share": 0.1, "factor": 3, "at": 0.5}], "rate_hz": 10},
        {"clocks": [{"share": 0.2, "offset": 3600}], "late": {"share": 0.5, "delay": "30m"}},
    ],
    ids=["rates", "clocks and late"],
)
def test_published_profiles_are_those_of_the_data_set(hosts: dict[str, Any]) -> None:
    fleet = drawn(hosts=hosts, duration="1d", changes={"count": 0, "release_every": "6h"})
    data, totals = fleet.dataset, {}
    for batch in sent(fleet, hosts):
        for profile in batch:
            key = profile.sender, window(data, profile.start)
            assert key not in totals
            totals[key] = int(profile.counts.sum())
    wanted = {
        (data.strata[row], at): int(data.stratum_totals[row, at])
        for row, at in np.argwhere(data.stratum_totals > 0).tolist()
    }
    assert totals == wanted


def test_late_hosts_publish_late() -> None:
    hosts = {"late": {"share": 0.5, "delay": "30m"}}
    fleet = drawn(hosts=hosts, duration="1d")
    batches = sent(fleet, hosts)
    late = {batch: {round(p.start - fleet.dataset.start) // 600 for p in batches[batch]} for batch in (2, 9)}
    assert late == {2: {2}, 9: {9, 6}}


BAD = {
    "no hosts": ({"hosts": None, "inject": [{**STEP, "rollout": {}}]}, "hosts: rollouts, experiments and"),
    "unknown region": ({"inject": [{**STEP, "only": {"region": "x"}}]}, "no host has region 'x'"),
    "two groups": (
        {"inject": [{**STEP, "rollout": {}}, {"kind": "experiment"}]},
        "only one group can have a rollout or be an experiment",
    ),
    "another kind": ({"inject": [{"kind": "gradual", "rollout": {}}]}, "rollout: means nothing for kind"),
    "shares": ({"hosts": {"regions": {"a": 0.5}}}, "regions: shares should be above 0 and add up to 1"),
    "drain": (
        {"hosts": {"drains": [{"region": "x", "at": 0.5, "length": "1d"}]}},
        "drains: 'x' is none of the regions",
    ),
    "a drain of all": (
        {"hosts": {"regions": {"a": 1}, "drains": [{"region": "a", "at": 0.5, "length": "1d"}]}},
        "no other region takes the load of 'a'",
    ),
    "part of a window": (
        {"hosts": {"clocks": [{"share": 0.2, "offset": 7}]}},
        "clocks: offset should be whole windows of 600 s",
    ),
    "nowhere": (
        {"hosts": {"regions": {}}, "inject": [{**STEP, "rollout": {"by": "region"}}]},
        "by region needs hosts.regions",
    ),
    "churn": ({"hosts": {"churn": 1}}, "pods: hosts that come and go should be pods"),
    "stages": ({"inject": [{**STEP, "rollout": {"stages": [0.5, 0.2, 1]}}]}, "stages: shares should rise"),
    "last stage": ({"inject": [{**STEP, "rollout": {"stages": [0.5]}}]}, "the last share should be 1"),
    "too many hosts": ({"hosts": {"count": 65}}, "less than or equal to 64"),
    "late share": ({"late": {"share": 0.1}}, "give hosts.late"),
}


@pytest.mark.parametrize(("keys", "message"), BAD.values(), ids=BAD.keys())
def test_a_mistake_is_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scenario.model_validate({**SMALL, "hosts": {"regions": REGIONS}, **keys}, by_alias=True)


@pytest.mark.parametrize("name", HOSTS)
def test_presets_have_their_eight_steps(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.hosts
    assert scenario.hosts.count == 20
    steps = sum(group.count for group in scenario.inject if group.kind == "step")
    assert steps == 8
    truth_from_json(())


@pytest.mark.slow
def test_a_preset_as_a_whole() -> None:
    data = simulate(load_scenario("rollout-aborted"), 5).dataset
    check_sums(data)
    assert [row.expected for row in truth_from_json(data.truth)].count(True) == 4
    assert Stratum() not in data.strata
