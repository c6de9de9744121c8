"""``smidgen bench suspects`` on little."""

from __future__ import annotations

import orjson
from click.testing import CliRunner

from pipeline.cli import smidgen

LITTLE = ["bench", "suspects", "--cases", "4", "--size", "plain"]


def test_rows_are_a_table_or_json() -> None:
    result = CliRunner().invoke(smidgen, LITTLE)
    assert result.exit_code == 0, result.output
    assert "| plain | all | 4 | " in result.output
    lines = CliRunner().invoke(smidgen, [*LITTLE, "--json"]).output.splitlines()
    row = orjson.loads(next(line for line in lines if line.startswith("{")))
    assert row["missed"] == 0.0
    assert row["by_chance"] <= row["among"] <= 1.0
    assert row["event_first"] <= row["event_among"] <= 1.0
    assert row["event_named"] <= 1.0
