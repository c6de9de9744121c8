"""Leaving steps out: every step has a switch that works, and runs are paired with those of all steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.bench.scan import WORKLOAD as SCAN_WORKLOAD
from loadgen.bench.scan import draw_service
from loadgen.evaluation.encode import score_to_json
from loadgen.evaluation.reading import truth_from_json
from loadgen.evaluation.runs import score_backtest
from loadgen.evaluation.suite.ablation import SHOWN, ablation_jobs, parse_steps, worth_of_steps
from loadgen.evaluation.suite.runs import Job, Run, run_fleet
from loadgen.fleet.scenario import load_scenario
from loadgen.fleet.simulate import simulate
from pipeline.analysis.detect.short_term import ScanConfig
from pipeline.backtest.dataset import Dataset
from pipeline.backtest.flow import Flow
from pipeline.backtest.run import run_backtest
from pipeline.cli import run
from pipeline.messages.scans import encode_progress
from pipeline.model import Candidate, Progress
from pipeline.model.errors import ConfigError
from pipeline.model.steps import ABLATABLE as STEPS
from pipeline.model.steps import FUNNEL as FUNNEL_STEPS
from pipeline.settings.config import Settings
from pipeline.settings.workloads import load_workloads
from pipeline.stages.ablation import NOTHING, Without, scan_config
from pipeline.stages.scanner import search_config
from pipeline.storage.arrays import ArrayStore
from tests.support.detector_parts import QUESTIONS, draw, reported
from tests.unit.evaluation.test_suite import SCENARIO, WORKLOAD, suite_run

JOBS = [Job("a", 1, ()), Job("a", 2, ())]


def lacking(run: Run, *steps: str) -> Run:
    """The run, as one without these steps."""
    return {**run, "without": list(steps)}


def test_without_nothing_the_detector_has_its_own_settings() -> None:
    assert scan_config(NOTHING) == ScanConfig()


OF_THE_SERVICE = ("composition", "common_noise")
"""Parts that look at all series of a service; the stage adds them to the matrix."""


@pytest.mark.parametrize("part", QUESTIONS)
def test_a_part_of_the_detector_is_worth_something_where_its_question_arises(part: str) -> None:
    service = draw(part, 2)
    (false, right), (false_without, right_without) = (
        reported(service, without) for without in (NOTHING, frozenset({part}))
    )
    assert (-false, right) > (-false_without, right_without)


@pytest.mark.parametrize("part", ["count_likelihood", "renames"])
def test_a_part_of_the_detector_has_a_switch(part: str) -> None:
    whole, lacks = (search_config(SCAN_WORKLOAD, 0.0, without) for without in (NOTHING, frozenset({part})))
    on, off = (getattr(config if part == "renames" else config.short_term, part) for config in (whole, lacks))
    assert (on, off) == (True, False)


def candidates_of_the_stage(dataset: Dataset, without: Without) -> tuple[Candidate, ...]:
    """Return what ``detect`` finds in the one scan that the dataset has data for."""
    settings = Settings()
    flow = Flow(
        ArrayStore(dataset),
        (SCAN_WORKLOAD,),
        settings=settings,
        clock=lambda: dataset.end,
        stages=("detect",),
        without=without,
    )
    progress = Progress(
        dataset.service,
        "profiles",
        0,
        dataset.end + SCAN_WORKLOAD.wait_s,
        dataset.end - SCAN_WORKLOAD.rerun_interval_s,
    )
    flow.send("windows", [encode_progress(progress)])
    (scan,) = flow.scans("change-points")
    return scan.candidates


def test_what_a_service_has_in_common_has_a_switch() -> None:
    dataset, _ = draw_service(1, 3000)
    whole, *lacking_one = (
        candidates_of_the_stage(dataset, frozenset(without)) for without in ((), *zip(OF_THE_SERVICE))
    )
    assert whole
    assert all(lacks != whole for lacks in lacking_one)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("without", "dropped"),
    [((), True), (FUNNEL_STEPS, False), (("composition", *FUNNEL_STEPS), False)],
    ids=["nothing", "no step of the funnel", "nor composition"],
)
def test_a_run_without_a_step_drops_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...], dropped: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brief.yaml").write_text(SCENARIO)
    (tmp_path / "workload.yaml").write_text(WORKLOAD)
    found = run_fleet([Job("brief.yaml", 3, ("workload.yaml",), without)])[0]
    assert found["without"] == list(without)
    steps = [step["remaining"] for step in found["score"]["funnel"]["steps"]]
    assert (steps[-1] < steps[0]) == dropped


@pytest.mark.slow
def test_runs_of_one_fleet_share_what_was_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brief.yaml").write_text(SCENARIO)
    (tmp_path / "workload.yaml").write_text(WORKLOAD)
    jobs = ablation_jobs(
        [Job("brief.yaml", 3, ("workload.yaml",))], ("threshold", "composition", "som_dedup")
    )
    together = [found["score"] for found in run_fleet(jobs)]
    assert together == [run_fleet([job])[0]["score"] for job in jobs]
    dataset = simulate(load_scenario("brief.yaml"), 3).dataset
    workloads = load_workloads(["workload.yaml"])
    truth = truth_from_json(dataset.truth)
    for job, found in zip(jobs, together, strict=True):
        alone = run_backtest(dataset, workloads, without=frozenset(job.without))
        wanted = score_to_json(score_backtest(truth, alone, workloads))
        assert found["funnel"] == wanted["funnel"]


def test_every_job_runs_whole_and_without_each_step() -> None:
    jobs = ablation_jobs(JOBS, ("threshold", "week_before"))
    assert [(job.seed, job.without) for job in jobs] == [
        (1, ()),
        (2, ()),
        (1, ("threshold",)),
        (2, ("threshold",)),
        (1, ("week_before",)),
        (2, ("week_before",)),
    ]
    assert len(ablation_jobs(JOBS)) == 2 * (1 + len(STEPS))


def test_worth_is_the_mean_of_paired_differences() -> None:
    whole = [lacking(suite_run("a", seed, reported=reported)) for seed, reported in ((1, 2), (2, 4))]
    without = [
        lacking(suite_run("a", seed, reported=reported, false=4), "threshold")
        for seed, reported in ((1, 3), (2, 4))
    ]
    (found,) = worth_of_steps([*whole, *without])
    by_name = dict(zip((figure.name for figure in SHOWN), found.differences, strict=True))
    recall, precision = by_name["recall"], by_name["precision"]
    assert recall is not None
    assert precision is not None
    assert recall.value == pytest.approx(0.125)
    assert recall.seeds == 2
    assert precision.value == pytest.approx((3 / 7 + 4 / 8) / 2 - 1)
    assert (found.step, found.without["recall"]["hits"]) == ("threshold", 7)
    assert found.to_json()["difference"]["recall"]["value"] == pytest.approx(0.125)


@pytest.mark.parametrize("given", ["", " , ", "went_away,magic"])
def test_unknown_steps_are_refused(given: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="steps are exchanged_names, mix_shift, request_mix, went_away, "):
        parse_steps(given)
    assert run(["bench", "accuracy", "--without", given]) == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_steps_are_read_in_order_and_once() -> None:
    assert parse_steps("threshold, went_away,threshold") == ("threshold", "went_away")
