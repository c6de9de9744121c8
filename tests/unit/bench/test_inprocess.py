from __future__ import annotations

import json

import pytest

from loadgen.bench.inprocess import inside_result
from pipeline.cli import run


def test_losses_are_medians_over_phases() -> None:
    figures = {"losses": [0.01, 0.5, -0.3, 0.02, 0.03], "p99": 0.1, "p999": 0.2, "sampler_s": 0.005}
    result = inside_result(20, figures)
    assert result.name == "in-process, 20 Hz"
    error = result.figures.pop("± (standard error)")
    assert 10 < error < 20
    assert result.figures == {
        "% units lost": pytest.approx(2.0),
        "% p99": pytest.approx(10.0),
        "% p99.9": pytest.approx(20.0),
        "% of a core": pytest.approx(0.5),
        "ms CPU/sample": pytest.approx(0.25),
    }


def test_the_benchmark_measures_both_samplers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "inprocess", "--seconds", "0.5", "--rate", "50", "--json"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["name"] for result in results] == ["in-process, 50 Hz", "py-spy, 50 Hz"]
    assert all(result["figures"]["% of a core"] > 0 for result in results)
