"""``smidgen bench requests`` on little."""

from __future__ import annotations

import importlib.util

import orjson
import pytest
from click.testing import CliRunner

from pipeline.cli import run, smidgen

LITTLE = ["bench", "requests", "--cases", "2", "--preset", "few", "--rise", "0.2"]


def test_rows_are_a_table_or_json() -> None:
    result = CliRunner().invoke(smidgen, LITTLE)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].startswith("| few | 20% | costs | ")
    row = orjson.loads(CliRunner().invoke(smidgen, [*LITTLE, "--json"]).output.splitlines()[-1])
    assert row["preset"] == "few"
    assert row["first"] <= row["named"] <= 1.0


def test_looks_are_rows_alone_and_beside_the_old_release() -> None:
    result = CliRunner().invoke(smidgen, [*LITTLE, "--looks", "--json"])
    rows = [orjson.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    assert [(row["preset"], row["beside"]) for row in rows] == [("few", 1.0), ("few", 0.3)]


def test_forests_need_their_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert run([*LITTLE, "--forest"]) == 2
    assert "pip install 'smidgen[forest]'" in capsys.readouterr().err
