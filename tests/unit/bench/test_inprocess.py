from __future__ import annotations

import json

import pytest

from loadgen.bench.inprocess import INSIDE, NONE, Run, compare
from pipeline.cli import run


def figures(units: float, sampler_s: float = 0.0) -> dict[str, float]:
    return {"units": units, "p99_s": 0.001, "p999_s": 0.002, "cpu_s": 1.0, "sampler_s": sampler_s}


def test_each_run_is_compared_with_that_of_its_round_without_a_sampler() -> None:
    rounds = [
        [Run(NONE, 0, figures(units)), Run(INSIDE, 20, figures(units * share, 0.01))]
        for units, share in [(100, 0.99), (50, 0.9), (200, 0.98)]
    ]
    [result] = compare(rounds, seconds=1.0)
    assert result.name == "in-process, 20 Hz"
    assert result.figures == {
        "% throughput": pytest.approx(-2.0),
        "% p99": pytest.approx(0.0),
        "% p99.9": pytest.approx(0.0),
        "% of a core": pytest.approx(1.0),
        "ms CPU/sample": pytest.approx(0.5),
    }


def test_the_benchmark_measures_both_samplers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "inprocess", "--seconds", "0.5", "--rounds", "1", "--rate", "50", "--json"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["name"] for result in results] == ["in-process, 50 Hz", "py-spy, 50 Hz"]
    assert all(result["figures"]["% of a core"] > 0 for result in results)
