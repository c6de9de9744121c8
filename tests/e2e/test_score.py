"""From a scenario to a scored page by commands alone, as a user tries a setting."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pipeline.cli import run
from tests.unit.evaluation.test_suite import SCENARIO, WORKLOAD


@pytest.mark.e2e
def test_simulate_backtest_score_and_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("brief.yaml").write_text(SCENARIO)
    Path("workload.yaml").write_text(WORKLOAD)
    Path("deaf.yaml").write_text(WORKLOAD.replace("absolute: 0.001", "absolute: 0.5"))
    assert run(["loadgen", "fleet", "--scenario", "brief.yaml", "--seed", "3", "--out", "data"]) == 0
    for name in ("workload", "deaf"):
        Path(name).mkdir()
        results = ["--events", f"{name}/events.jsonl", "--funnel", f"{name}/funnel.json"]
        ledger = ["--ledger", f"{name}/ledger.jsonl"]
        assert run(["backtest", "data", "--workload", f"{name}.yaml", *results, *ledger]) == 0
    capfd.readouterr()
    score = ["score", "--truth", "data/truth.jsonl", "--events", "workload/events.jsonl"]
    files = ["--funnel", "workload/funnel.json", "--ledger", "workload/ledger.jsonl", "--html", "out.html"]
    assert run([*score, *files, "--sweep", "data", "--workload", "workload.yaml", "--json"]) == 0
    found = orjson.loads(capfd.readouterr().out)
    assert found["recall"] == 1.0
    assert found["root_cause"]["top_3"]["of"] == 1
    assert found["funnel"]["steps"][-1]["remaining"] == found["events"]
    curve = next(curve for curve in found["curves"] if curve["setting"] == "threshold")
    recalls = {point["bound"]: point["recall"]["value"] for point in curve["points"]}
    assert recalls[0.001] == 1.0
    assert recalls[0.064] == 0.0  # the largest threshold is above the injected step
    assert "figure-roc" in Path("out.html").read_text()
    assert run(["compare", "workload", "deaf", "--data", "data", "--html", "c.html", "--json"]) == 1
    compared = orjson.loads(capfd.readouterr().out)
    assert len(compared["only_a"]) == found["events"]
    assert {lone["lost"]["step"] for lone in compared["only_a"]} == {"threshold"}
    assert "figure-event-0" in Path("c.html").read_text()
