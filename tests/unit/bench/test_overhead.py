"""``smidgen bench overhead``: ratios of blocks, shares by stacks, services, and a short run."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from agents.profiles.formats.collapsed import parse_collapsed
from loadgen.bench.overhead import services
from loadgen.bench.overhead.blocks import Cost, ask_for, count_functions
from loadgen.bench.overhead.command import line_of
from loadgen.bench.overhead.services import PROGRAMS, NotHere, Program, started
from loadgen.bench.usage import process_cpu_s
from loadgen.harness import Ratio, paired_ratio
from pipeline.cli import smidgen


def test_a_ratio_is_that_of_pairs_whatever_drifts() -> None:
    rng = np.random.default_rng(1)
    level = np.exp(rng.normal(0, 1, 200))
    ratio = paired_ratio(level, 0.9 * level * np.exp(rng.normal(0, 0.02, 200)))
    assert ratio.mean == pytest.approx(0.9, rel=0.01)
    assert ratio.low < 0.9 < ratio.high
    assert ratio.high - ratio.low < 0.01


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    drawn = [paired_ratio(np.ones(6), np.exp(rng.normal(0, 0.1, 6))) for _ in range(500)]
    assert 0.92 < np.mean([ratio.low <= 1 <= ratio.high for ratio in drawn]) < 0.98


def test_one_pair_bounds_nothing() -> None:
    assert paired_ratio([1.0], [0.5]) == Ratio(0.5, 0.0, math.inf)


@pytest.mark.parametrize(
    "line",
    [
        "<module> (a.py);handle (a.py);total (a.py);total.<locals>.<genexpr> (a.py) 3",
        "service;main;handle;total 3",
        "service;main.main;main.handle;main.total 3",
        "Service.main;Service.handle;Service.total 3",
        "a;total;taxes_of_all;subtotal 3",
    ],
)
def test_functions_are_found_in_frames_of_any_language(line: str) -> None:
    stacks = parse_collapsed(f"{line}\nmain;subtotal 7\n".encode()).stacks
    assert dict(count_functions(stacks)) == {"total": 3}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_services_measure_what_they_do(tmp_path: Path, name: str) -> None:
    try:
        with started(name, tmp_path) as service:
            spent = np.array([service.ask(more=number > 300) for number in range(501)])
    except NotHere as error:
        if "is not installed" not in str(error):
            raise
        pytest.skip(f"{name}: {error}")
    assert (np.diff(spent, axis=0, prepend=0) > 0).all()
    usual, more = spent[300] - spent[100], spent[500] - spent[300]  # when what is compiled is compiled
    assert more[0] / more[1] > 2 * usual[0] / usual[1]


def test_what_cannot_be_built_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {
        "gone": Program("service.cpp", ("{out}/service",), ("no-such-compiler",)),
        "wrong": Program("service.cpp", ("{out}/service",), ("false",)),
        "ends": Program("service.py", ("true",), listens=True),
    }
    monkeypatch.setattr(services, "PROGRAMS", broken)
    for name, reason in {
        "gone": "no-such-compiler is not installed",
        "wrong": "false failed",
        "ends": "ended",
    }.items():
        with pytest.raises(NotHere, match=reason), started(name, tmp_path):
            pass


def test_who_asks_does_not_take_the_cpu_from_the_service_that_answers() -> None:
    policies: list[int] = []
    asked: list[bool] = []

    class Asked:
        pid = os.getpid()

        def ask(self, *, more: bool) -> tuple[int, ...]:
            policies.append(os.sched_getscheduler(0))
            asked.append(more)
            return (len(asked), 0)

    before = os.sched_getscheduler(0)
    began = time.time()
    found = ask_for(Asked(), 0.001, 0.0005)  # type: ignore[arg-type]
    assert set(policies) == {os.SCHED_BATCH}
    assert os.sched_getscheduler(0) == before
    assert set(found.figures) == {"throughput", "p99", "p99.9", "cpu"}
    assert asked == sorted(asked)  # first those that call less
    assert asked[0] is False
    assert found.spent_ns[:, 0].tolist() == [*range(1, len(asked) + 1)]
    assert began <= found.times[0] <= found.times[-1]


def test_the_cpu_clock_of_a_process_is_its_own() -> None:
    before, counted, after = time.process_time(), process_cpu_s(os.getpid()), time.process_time()
    assert before <= counted <= after


def test_a_short_run() -> None:
    words = ["bench", "overhead", "--program", "python", "--hz", "101", "--duration", "200ms"]
    words += ["--kernel", "py-spy", "--groups", "2", "--json"]
    done = CliRunner().invoke(smidgen, words)
    assert done.exit_code == 0
    (cost,) = map(orjson.loads, done.stdout.splitlines())
    if "reason" in cost:
        pytest.skip(cost["reason"])
    assert (cost["program"], cost["kernel"], cost["hz"]) == ("python", "py-spy", 101)
    assert set(cost["ratios"]) == {"throughput", "p99", "p99.9", "cpu"}
    assert 0 < cost["truth"] < 1


@pytest.mark.parametrize(
    ("share", "error", "said"),
    [(0.26, 0.02, "error +1.00 ± 2.00 points of 25.0 % in 7 samples"), (None, None, "no sample")],
)
def test_a_line_says_what_was_measured(share: float | None, error: float | None, said: str) -> None:
    cost = Cost("go", "perf", 11, {"throughput": Ratio(0.99, 0.98, 1.01)}, 0.005, 7, share, 0.25, error)
    line = "go     perf             11 Hz  throughput 0.990 (0.980 to 1.010)  kernel 0.5 %  "
    assert line_of(cost) == line + said


def test_what_is_not_installed_is_left_out_with_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(services, "PROGRAMS", {"cpp": Program("service.cpp", ("x",), ("no-such-compiler",))})
    done = CliRunner().invoke(smidgen, ["bench", "overhead", "--program", "cpp"])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "cpp: left out: no-such-compiler is not installed" in done.stderr
