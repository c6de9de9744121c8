"""``smidgen release requests --forest``: the paper's method beside costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from pipeline.analysis.published.liao2021 import forest
from tests.unit.commands.test_release_requests import BEGAN, requests, write


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred trees for each of a hundred draws take half a minute."""
    monkeypatch.setattr(forest, "TREES", 10)


def releases(folder: Path, rise: float, periods: int = 80) -> None:
    """Requests of three types, of which the second comes with the first; one more never varies."""
    rng = np.random.default_rng(5)
    for name, more in (("old", 0.0), ("new", rise)):
        counts = rng.poisson(rng.lognormal(3.0, 0.5, (periods, 2)))
        every = np.column_stack([counts[:, 0], counts[:, 0] // 2, counts[:, 1], np.full(periods, 3)])
        cpu = (0.5 + 0.01 * counts.sum(axis=1) + more * counts[:, 0]) * (
            1.0 + 0.02 * rng.standard_normal(periods)
        )
        rows = np.column_stack([BEGAN + 30 * np.arange(periods), every, cpu]).tolist()
        write(
            folder / f"{name}.csv",
            ("time", "GET /a", "GET /with-a", "GET /b", "GET /c", "cpu"),
            [*map(tuple, rows)],
        )


@pytest.mark.slow
def test_forests_of_both_releases_are_fitted(tmp_path: Path) -> None:
    releases(tmp_path, 0.02)
    result = requests(tmp_path, "--metric", "cpu", "--forest", "--json")
    assert result.return_value == 1, result.output  # as costs have it
    found = orjson.loads(result.output)["metrics"]["cpu"]["forests"]
    assert found["compared"]
    assert 0.0 <= found["r_squared"] <= 1.0
    assert 0.0 < found["p"] <= 1.0
    assert found["left_out"] == {"GET /with-a": ["GET /a"], "GET /c": []}


@pytest.mark.parametrize(("p", "verdict"), [(0.01, "differ"), (0.2, "no change")])
def test_what_forests_say_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, p: float, verdict: str
) -> None:
    effects = (forest.Effect("GET /a", 0.07, 0.001),)
    said = forest.ForestComparison(0.42, p, effects, np.zeros(80))
    monkeypatch.setattr(forest, "compare_forests", lambda *_: said)
    releases(tmp_path, 0.0)
    result = requests(tmp_path, "--metric", "cpu", "--forest")
    assert result.return_value == 0
    assert f"cpu, forests: {verdict}, p {p}; requests explain 42% of deviance" in result.stdout
    (row,) = [line.split() for line in result.stdout.splitlines() if line.rstrip().endswith("GET /with-a")]
    assert row == ["GET", "/a", "+7.0%", "0.001", "GET", "/with-a"]
    assert "cpu, forests: too rare to vary: GET /c" in result.stderr


def test_forests_that_cannot_be_compared_decide_nothing(tmp_path: Path) -> None:
    releases(tmp_path, 0.02, periods=12)
    result = requests(tmp_path, "--metric", "cpu", "--forest", "--json")
    assert result.return_value == 3
    assert orjson.loads(result.output)["metrics"]["cpu"]["forests"]["compared"] is False
