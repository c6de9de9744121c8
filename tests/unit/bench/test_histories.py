"""``smidgen bench histories``: its counts by hand, its watchers on clear series, and foreign programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from loadgen.bench.histories.simulate import APART, COMMITS, NOISES, SimulatedHistory, draw_history
from loadgen.bench.histories.table import MARGIN, HistoryCase, injected, measure, totals
from loadgen.bench.histories.watchers import (
    WINDOW,
    Watch,
    WatcherAnswer,
    benchstat,
    by_neighbours,
    by_otava,
    by_smidgen,
    mann_whitney,
)
from loadgen.harness import offsets_of
from pipeline.cli import smidgen
from pipeline.model.errors import ConfigError

STEP = SimulatedHistory(
    np.where(np.arange(40) < 25, 1.0, 2.0)[:, None] + 0.01 * np.arange(40 * 6).reshape(40, 6) % 0.05, (25,)
)


def answering(*changes: int) -> Watch:
    return lambda histories: [WatcherAnswer(changes, 0.5) for _ in histories]


@pytest.mark.parametrize(
    ("changes", "reported", "offsets"),
    [
        ([20], [20], [0]),
        ([20], [17, 21], [1]),
        ([20, 22], [21], [1]),
        ([20], [26], []),
        ([], [5], []),
    ],
)
def test_one_report_answers_one_change(changes: list[int], reported: list[int], offsets: list[int]) -> None:
    assert offsets_of(changes, reported, MARGIN) == offsets


def test_counts_of_a_case_and_of_all_cases() -> None:
    rows = measure(
        [HistoryCase("a", [STEP, STEP]), HistoryCase("b", [STEP], known=False)], {"w": answering(26, 33)}
    )
    known, open_ = rows
    assert (known.changes, known.reported, known.found, known.exact, known.near) == (2, 4, 2, 0, 2)
    assert (known.precision, known.recall, known.seconds) == (0.5, 1.0, 1.0)
    assert np.isnan(open_.precision)  # not all of its changes are known
    (total,) = totals(rows)
    assert (total.histories, total.changes, total.reported) == (2, 2, 4)


@pytest.mark.parametrize("kind", NOISES)
def test_a_simulated_history_has_its_steps_apart(kind: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        history = draw_history(kind, 0.0, 0.1, rng)
        levels = np.median(history.values, axis=1)
        assert tuple(np.flatnonzero(np.diff(levels)) + 1) == history.changes
        assert all(np.diff([0, *history.changes, COMMITS]) >= APART)
    assert draw_history(kind, 0.01, 0.0, rng).changes == ()


@pytest.mark.parametrize("watch", [by_smidgen, by_neighbours(mann_whitney)], ids=["smidgen", "Mann-Whitney"])
def test_a_clear_step_is_found_at_its_commit(watch: Watch) -> None:
    (answer,) = watch([STEP.values])
    assert list(answer.changes) == [25]


def test_windows_of_commits_are_compared_where_there_is_one_run_of_each() -> None:
    single = STEP.values[:, :1]
    short = single[: 2 * WINDOW - 1]
    found, none = by_neighbours(mann_whitney)([single, short])
    assert list(found.changes) == [25]
    assert list(none.changes) == []


def test_steps_are_put_into_real_histories_up_and_down() -> None:
    case = injected({"one": np.full(100, 10.0)}, 0.1)
    assert [history.changes for history in case.histories[:2]] == [(25,), (25,)]
    assert [float(history.values[-1, 0]) for history in case.histories[:2]] == pytest.approx([11, 10 / 1.1])
    assert not case.known


def program(folder: Path, text: str) -> str:
    file = folder / "program"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_p_values_of_benchstat_are_those_of_its_rows(tmp_path: Path) -> None:
    rows = ",sec/op,CI,sec/op,CI,vs base,P\nH1,1,2%,2,1%,~,p=0.631 n=10\nH0,1,2%,2,1%,+1%,p=0.000 n=10"
    printed = f"cat <<'END'\n{rows}\nEND"
    one = np.ones(10)
    assert benchstat(program(tmp_path, printed))([one, one], [one, one]).tolist() == [0.0, 0.631]


@pytest.mark.parametrize(
    "text", ["printf nothing", "printf broken >&2; exit 3"], ids=["no p-values", "exit code"]
)
def test_a_benchstat_that_is_none_is_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="program"):
        benchstat(program(tmp_path, text))([np.ones(10)], [np.ones(10)])


def test_otava_runs_in_a_python_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "otava").mkdir()
    (tmp_path / "otava" / "__init__.py").touch()
    (tmp_path / "otava" / "analysis.py").write_text(
        "import types\n"
        "def compute_change_points(values):\n"
        "    return [types.SimpleNamespace(index=len(values) - 1)], []\n"
    )
    python = program(tmp_path, f'PYTHONPATH="{tmp_path}" exec "{sys.executable}" -S "$@"')
    (answer,) = by_otava(python)([STEP.values])
    assert list(answer.changes) == [39]


@pytest.mark.slow
def test_the_command_on_real_histories_without_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    results = [
        {"timestamp": commit, "metrics": [{"name": "cpu", "value": float(value)}]}
        for commit, value in enumerate(STEP.values[:, 0])
    ]
    file = tmp_path / "history.json"
    file.write_text(json.dumps(results))
    arguments = ["--histories", "1", "--labelled", str(file), "cpu", "25", "--injected", str(file), "cpu"]
    shown = CliRunner().invoke(smidgen, ["bench", "histories", *arguments, "--json"], standalone_mode=False)
    rows = [orjson.loads(line) for line in shown.stdout.splitlines()]
    assert {row["watcher"] for row in rows} == {"smidgen", "Mann-Whitney"}
    labelled = {row["watcher"]: row for row in rows if row["case"].startswith("real, labelled")}
    assert labelled["smidgen"]["exact"] == 1
    assert "Otava is left out" in shown.stderr
    assert "is done here" in shown.stderr


@pytest.mark.parametrize("commits", ["x", "-3", "400"])
def test_a_bad_list_of_commits_is_one_line(tmp_path: Path, commits: str) -> None:
    file = tmp_path / "history.json"
    file.write_text('[{"timestamp": 1, "metrics": [{"name": "cpu", "value": 1}]}]')
    arguments = ["--histories", "1", "--labelled", str(file), "cpu", commits]
    shown = CliRunner().invoke(smidgen, ["bench", "histories", *arguments], standalone_mode=False)
    assert isinstance(shown.exception, ConfigError)
    assert "--labelled" in str(shown.exception)
