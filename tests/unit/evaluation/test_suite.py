"""The accuracy suite: its sums and means, comparing two results, and one real run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.evaluation.encode import score_to_json
from loadgen.evaluation.model import Funnel, FunnelStep
from loadgen.evaluation.rates import Rate
from loadgen.evaluation.scoring import score
from loadgen.evaluation.suite.against import compare_suites
from loadgen.evaluation.suite.command import _scenarios
from loadgen.evaluation.suite.goals import ALL, Goal, goals_json, goals_table
from loadgen.evaluation.suite.kept_runs import KeptRuns
from loadgen.evaluation.suite.presets import HOSTS, WORLD
from loadgen.evaluation.suite.runs import FIGURES, Job, Run, figure_of, pooled, run_fleet, scenario_means
from loadgen.fleet.scenario import load_scenario, preset_names
from loadgen.harness import mean_of
from pipeline.cli import run
from tests.unit.evaluation.test_scoring import HOUR, START, event, row

PRECISION = FIGURES[0]


def suite_run(scenario: str, seed: int, *, reported: int, of: int = 4, false: int = 0) -> dict[str, Any]:
    """A run in which ``reported`` of ``of`` regressions and ``false`` other events were reported."""
    truth = [row(f"r{i}", series=(f"s{i}",)) for i in range(of)]
    events = [event(f"e{i}", f"s{i}") for i in range(reported)]
    events += [event(f"f{i}", f"noise{i}") for i in range(false)]
    funnel = Funnel(2, 100, (FunnelStep("detected", 10), FunnelStep("threshold", reported + false)))
    found = score(truth, events, funnel=funnel)
    return {"scenario": scenario, "seed": seed, "seconds": {}, "score": score_to_json(found)}


def test_pooled_counts_are_sums_over_runs() -> None:
    found = pooled(
        [suite_run("a", 1, reported=1), suite_run("a", 2, reported=3, false=1), suite_run("b", 1, reported=0)]
    )
    assert (found["recall"]["hits"], found["recall"]["of"]) == (4, 12)
    assert (found["precision"]["hits"], found["precision"]["of"]) == (4, 5)
    assert found["false_positive_rate"]["value"] == pytest.approx(1 / 300)
    assert found["false_positive_kinds"] == {"nothing happened": 1}
    assert [(kind["kind"], kind["reported"]["of"]) for kind in found["kinds"]] == [("regression", 12)]
    assert found["funnel"]["steps"] == [
        {"step": "detected", "remaining": 30},
        {"step": "threshold", "remaining": 5},
    ]
    assert found["recall_by_size"][0]["of"] == 12


@pytest.mark.parametrize(
    ("hits", "of", "at_least", "met"),
    [
        (99, 100, True, True),
        (98, 100, True, False),
        (1, 100, False, True),
        (2, 100, False, False),
        (0, 0, True, None),
    ],
)
def test_a_goal_is_met_at_its_bound(hits: int, of: int, at_least: bool, met: bool | None) -> None:
    goal = Goal("g", ("rates", "recall"), 0.99 if at_least else 0.01, at_least)
    assert goal.met(Rate(hits, of)) is met


def test_goals_add_up_the_seeds_of_a_scenario() -> None:
    runs = [
        suite_run("a", 1, reported=4),
        suite_run("a", 2, reported=3, false=1),
        suite_run("b", 1, reported=4),
    ]
    found = goals_json(runs)
    assert list(found) == ["a", "b", ALL]
    assert found["a"]["false"] == {"hits": 1, "of": 200, "bound": 1e-5, "met": False}
    assert found["b"]["false"]["met"] is True
    assert found[ALL]["false"]["of"] == 300
    assert found["a"]["slow rises"] == {"hits": 0, "of": 0, "bound": 0.9, "met": None}
    table = goals_table(runs)
    assert table.names[:3] == ("scenario", "detectable\n≥ 99%", "slow rises\n≥ 90%")
    assert "1/200 ✗" in [row[4] for row in table.rows]


def test_goals_of_rollouts_are_there_where_rollouts_are() -> None:
    one = row("r1", series=("s1",), until=START + HOUR)
    staged = replace(one, stages=(START, START + HOUR), standard_error=one.delta / 20)
    found = score([staged], [event("e1", "s1")], funnel=Funnel(2, 100, ()))
    runs = [{"scenario": "a", "seed": 1, "seconds": {}, "score": score_to_json(found)}]
    assert goals_json(runs)["a"]["first stage"] == {"hits": 1, "of": 1, "bound": 0.9, "met": True}
    both = goals_json([*runs, suite_run("b", 1, reported=4)])
    assert both["b"]["rollouts"]["met"] is None
    assert "rollouts" not in goals_json([suite_run("b", 1, reported=4)])["b"]


def test_the_presets_of_the_world_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(WORLD) < set(preset_names())
    assert not set(WORLD) & set(_scenarios(None, long_run=True, world=False))
    assert _scenarios(None, long_run=False, world=True) == WORLD
    assert run(["bench", "accuracy", "--world", "--scenarios", "small"]) == 2
    assert "--world and --scenarios" in capsys.readouterr().err


def test_the_presets_of_hosts_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(HOSTS) == {name for name in preset_names() if load_scenario(name).hosts}
    assert not set(HOSTS) & set(_scenarios(None, long_run=True, world=False))
    assert _scenarios(None, long_run=False, world=False, hosts=True) == HOSTS
    assert run(["bench", "accuracy", "--world", "--hosts"]) == 2
    assert "give one of --hosts, --world" in capsys.readouterr().err


def test_means_are_over_seeds_with_students_interval() -> None:
    means = scenario_means(
        [suite_run("a", seed, reported=reported) for seed, reported in enumerate((1, 2, 3))]
    )
    recall = means["a"]["recall"]
    assert recall is not None
    assert (recall.value, recall.seeds) == (0.5, 3)
    # t(0.975, 2) = 4.3027, s = 0.25: half a width of 0.621, cut at 0 and 1.
    assert (recall.low, recall.high) == (0.0, 1.0)
    wide = mean_of([0.25, 0.5, 0.75])
    assert wide is not None
    assert wide.low == pytest.approx(0.5 - 4.3027 * 0.25 / 3**0.5, abs=1e-4)
    assert means["a"]["top 1"] is not None


def test_a_mean_of_one_seed_has_no_interval_and_of_none_no_value() -> None:
    one = mean_of([None, 0.5])
    assert one is not None
    assert (one.value, one.low, one.seeds) == (0.5, None, 1)
    assert mean_of([None]) is None
    assert figure_of(suite_run("a", 1, reported=0), PRECISION) is None


def test_runs_are_compared_in_pairs() -> None:
    old = [suite_run("a", seed, reported=2) for seed in range(3)] + [suite_run("gone", 1, reported=4)]
    new = [suite_run("a", seed, reported=3) for seed in range(3)] + [suite_run("b", 1, reported=0)]
    found = compare_suites(old, new)
    assert found.common == 3
    recall = next(one for one in found.moved if one.figure.name == "recall")
    assert (recall.scenario, recall.old, recall.new, recall.better, recall.sure) == (
        "a",
        0.5,
        0.75,
        True,
        True,
    )
    assert not found.worse
    assert compare_suites(new, old).worse
    assert compare_suites(old, deepcopy(old)).moved == ()


def test_more_false_positives_are_worse() -> None:
    old, new = [suite_run("a", 1, reported=2)], [suite_run("a", 1, reported=2, false=2)]
    found = compare_suites(old, new)
    assert found.worse
    by_name = {one.figure.name: one for one in found.moved}
    assert not by_name["false per series"].better
    assert not by_name["precision"].better
    assert not by_name["precision"].sure  # one pair has no interval


SCENARIO = """
name: brief
duration: 4d
samples_per_minute: 60
graph: {subroutines: 40, endpoints: 4}
servers: {count: 50, missing: 0.0}
changes: {count: 20}
inject:
  - {kind: step, count: 1, delta: [0.03, 0.04], between: [0.7, 0.8], no_culprit: 0.0}
"""

WORKLOAD = """
name: brief
resolution: 10m
rerun_interval: 2h
historical: 1d
analysis: 4h
extended: 2h
threshold: {absolute: 0.001}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brief.yaml").write_text(SCENARIO)
    (tmp_path / "workload.yaml").write_text(WORKLOAD)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_run_finds_what_is_plain_to_see_and_repeats_itself() -> None:
    job = Job("brief.yaml", 3, ("workload.yaml",))
    found = run_fleet([job])[0]
    assert found["score"]["recall"] == 1.0
    assert found["score"]["rates"]["recall"]["of"] == 1
    assert run_fleet([job])[0]["score"] == found["score"]


@pytest.mark.slow
def test_several_services_are_scored_together(folder: Path) -> None:
    (folder / "two.yaml").write_text(f"{SCENARIO}siblings: [search]\n")
    one, two = (run_fleet([Job(name, 3, ("workload.yaml",))])[0] for name in ("brief.yaml", "two.yaml"))
    assert two["score"]["rates"]["recall"]["of"] == 2 * one["score"]["rates"]["recall"]["of"]
    assert two["score"]["recall"] == 1.0
    assert two["score"]["funnel"]["scans"] == 2 * one["score"]["funnel"]["scans"]


@pytest.mark.slow
def test_the_command_stores_and_compares(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    base = [
        "bench",
        "accuracy",
        "--scenarios",
        "brief.yaml",
        "--workload",
        "workload.yaml",
        "--processes",
        "1",
    ]
    assert run([*base, "--seeds", "1", "--out", "old.json", "--json"]) == 0
    printed = orjson.loads(capfd.readouterr().out)
    old = orjson.loads((folder / "old.json").read_bytes())
    assert printed == old
    assert list(old["scenarios"]) == ["brief.yaml"]
    assert run([*base, "--seeds", "1", "--against", "old.json"]) == 0
    assert "No figure moved." in capfd.readouterr().out

    assert not (folder / "old.json.runs").exists()
    kept = KeptRuns(folder / "new.json")
    kept.start({Job("brief.yaml", 1, ("workload.yaml",)): {**old["runs"][0], "seconds": {"simulate": 7.0}}})
    with (folder / "new.json.runs").open("ab") as file:
        file.write(b'{"job": {"scenario": "brief.yaml", "seed": 2')  # where it was interrupted
    assert run([*base, "--seeds", "2", "--out", "new.json", "--resume"]) == 0
    new = orjson.loads((folder / "new.json").read_bytes())
    assert [(one["seed"], one["seconds"]["simulate"] == 7.0) for one in new["runs"]] == [
        (1, True),
        (2, False),
    ]
    assert not (folder / "new.json.runs").exists()


BRIEFLY = ("--workload", "workload.yaml")


def test_a_run_that_is_interrupted_keeps_what_is_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_suite(jobs: Sequence[Job], *, advance: Callable[[Job, Run], None], **_: object) -> list[Run]:
        advance(jobs[0], suite_run("brief.yaml", 1, reported=3))
        raise KeyboardInterrupt

    monkeypatch.setattr("loadgen.evaluation.suite.command.run_suite", run_suite)
    assert run(["bench", "accuracy", "--scenarios", "brief.yaml", *BRIEFLY, "--out", "new.json"]) == 130
    found = KeptRuns(folder / "new.json").read()
    assert found == {Job("brief.yaml", 1, ("workload.yaml",)): suite_run("brief.yaml", 1, reported=3)}


@pytest.mark.parametrize(("reported_before", "code"), [(2, 0), (3, 0), (4, 1)])
def test_a_fall_of_recall_is_a_finding(
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    reported_before: int,
    code: int,
) -> None:
    runs = [suite_run("brief.yaml", 1, reported=3)]
    monkeypatch.setattr("loadgen.evaluation.suite.command.run_suite", lambda *_, **__: runs)
    old = {"version": 1, "runs": [suite_run("brief.yaml", 1, reported=reported_before)]}
    (folder / "old.json").write_bytes(orjson.dumps(old))
    assert run(["bench", "accuracy", "--scenarios", "brief.yaml", *BRIEFLY, "--against", "old.json"]) == code
    assert "1 common runs" in capfd.readouterr().out


BAD = {
    "unknown scenario": (["--scenarios", "nowhere"], "no scenario 'nowhere'"),
    "a scenario too short for any workload": (
        ["--scenarios", "tiny", "--workload", "ct-supply-long"],
        "tiny: lasts 8d, which is too short to find anything; workload ct-supply-long needs 13d",
    ),
    "no scenario": (["--scenarios", ","], "--scenarios names nothing"),
    "unknown workload": (["--workload", "fast"], "no workload file or preset 'fast'"),
    "no such result": (["--against", "gone.json"], "gone.json: No such file"),
    "no result": (["--against", "workload.yaml"], "workload.yaml: not JSON"),
    "result of another version": (["--against", "other.json"], "other.json: version: should be 1"),
    "score without figures": (["--against", "hollow.json"], "hollow.json: runs: a score lacks"),
    "nothing to go on with": (["--resume", "--out", "gone.json"], "gone.json.runs: No such file"),
    "no kept runs": (["--resume", "--out", "other.json"], "other.json.runs: each line should be an object"),
    "nowhere to go on": (["--resume"], "--resume needs --out"),
    "run without score": (["--against", "empty.json"], "empty.json: runs[0]: should be an object with"),
    "nothing to show": (["--from", "gone.json"], "gone.json: No such file"),
    "half an ablation": (["--from", "half.json"], "half.json: ablation: it lacks"),
    "show and run": (["--from", "half.json", "--seeds", "3"], "--from runs nothing; it goes with --page"),
    "show and go on": (["--from", "half.json", "--resume"], "--from runs nothing; it goes with --page"),
}


@pytest.mark.parametrize(
    ("arguments", "message"), [pytest.param(*case, id=name) for name, case in BAD.items()]
)
def test_mistakes_are_found_before_the_work(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "other.json").write_text('{"version": 2, "runs": []}')
    (folder / "other.json.runs").write_text('{"version": 2}\n')
    (folder / "empty.json").write_text('{"version": 1, "runs": [{}]}')
    hollow = {"version": 1, "runs": [{"scenario": "tiny", "seed": 1, "score": {}}]}
    (folder / "hollow.json").write_bytes(orjson.dumps(hollow))
    (folder / "half.json").write_text('{"version": 1, "runs": [], "all": {}, "ablation": []}')
    assert run(["bench", "accuracy", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
