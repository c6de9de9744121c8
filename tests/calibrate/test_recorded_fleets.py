"""What simulated fleets report is what was recorded of them, but for the rounding of numbers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.fleet_choice import QUICK
from tests.support.recorded_fleets import (
    LINES,
    NAMES,
    compare,
    differences,
    read_record,
    shortened,
    write_record,
)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.calibrate) for name in NAMES]
)
def test_a_fleet_reports_what_was_recorded(name: str) -> None:
    lines = compare(name)
    assert not lines, shortened(name, lines)


def changed(path: str, value: object) -> list[str]:
    """Return the differences of a record from one with another value in an event."""
    before = read_record("silenced")
    after: Any = copy.deepcopy(before)
    target = after["events"][0]
    *outer, last = path.split(".")
    for key in outer:
        target = target[key]
    target[last] = value(target[last]) if callable(value) else value
    return differences(before, after)


def test_numbers_may_differ_by_their_rounding_alone() -> None:
    assert changed("data.delta", lambda delta: delta * (1 + 1e-10)) == []
    (line,) = changed("data.delta", lambda delta: delta * (1 + 1e-8))
    assert "data.delta: " in line


def test_another_id_or_field_is_a_difference() -> None:
    missing, new = changed("id", "another")
    assert missing.endswith("no longer there")
    assert new.endswith("new")
    (line,) = changed("data.metric_kind", "endpoint")
    assert line.endswith('data.metric_kind: "subroutine" -> "endpoint"')


def test_differences_take_twenty_lines_at_most() -> None:
    text = shortened("tiny", [f"line {number}" for number in range(100)])
    assert len(text.splitlines()) == LINES
    assert text.endswith("... and 82 more")


def test_the_same_record_gives_the_same_bytes(tmp_path: Any) -> None:
    for name in ("first", "second"):
        write_record(read_record("tiny"), tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
