"""The lab: its commits fit the shop, and a verdict is right by what its commit does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loadgen.bench.lab.commits import LabCommit, read_commits, write_code
from loadgen.bench.lab.experiments import CommitVerdicts, judged_points, said
from loadgen.bench.lab.request import LabRequest
from loadgen.bench.lab.sides import targets
from pipeline.experiments.trials import Sides

COMMITS = {commit.name: commit for commit in read_commits()}
LOGIN = "cpu_timing_ms GET /login"


def sides(effect: float, trials: int = 8, points: int = 60) -> Sides:
    rng = np.random.default_rng(1)
    a = rng.lognormal(2.0, 0.1, (trials, points))
    requests = np.tile(np.arange(points), (trials, 1))
    return Sides(a, a * (1 + effect + rng.normal(0, 0.01, a.shape)), (requests, requests))


@pytest.mark.parametrize("name", COMMITS)
def test_commits_fit_the_shop(name: str, tmp_path: Path) -> None:
    base, changed = write_code(tmp_path / "base"), write_code(tmp_path / "changed", COMMITS[name])
    files = [path.relative_to(base) for path in base.rglob("*.py")]
    differ = [str(path) for path in files if (base / path).read_text() != (changed / path).read_text()]
    assert differ == [edit.path for edit in COMMITS[name].edits]
    for path in differ:
        compile((changed / path).read_text(), path, "exec")


def test_one_commit_is_slower_one_harmless_one_calls_more() -> None:
    assert [(one.expected, one.judged) for one in COMMITS.values()] == [
        ("fail", LOGIN),
        ("pass", LOGIN),
        ("fail", "downstream GET /stock/:id"),
    ]


def test_the_same_seed_asks_the_same() -> None:
    assert targets(50, 1) == targets(50, 1) != targets(50, 2)
    assert {target.partition("?")[0].split("/")[1] for target in targets(50, 1)} == {
        "login",
        "search",
        "stock",
    }


@pytest.mark.parametrize(
    ("name", "effects", "right"),
    [
        pytest.param("slower", {LOGIN: 0.012}, True, id="found"),
        pytest.param("slower", {LOGIN: 0.0}, False, id="missed"),
        pytest.param("slower", {LOGIN: 0.012, "cpu_timing_ms": 0.012}, False, id="and elsewhere"),
        pytest.param("harmless", {LOGIN: 0.0}, True, id="passed"),
        pytest.param("harmless", {LOGIN: 0.02}, False, id="false alarm"),
        pytest.param("harmless", {}, False, id="not measured"),
    ],
)
def test_a_verdict_is_right(name: str, effects: dict[str, float], right: bool) -> None:
    points = {metric: sides(effect) for metric, effect in effects.items()}
    judged = CommitVerdicts(COMMITS[name], judged_points(points, LabRequest()))
    assert judged.right is right
    assert said(judged).endswith(("right", "wrong", "was not measured"))


def test_a_commit_needs_a_known_metric() -> None:
    with pytest.raises(ValueError, match="metric"):
        LabCommit(name="a", title="b", endpoint="GET /", metric="latency", expected="fail", edits=())  # type: ignore[arg-type]
