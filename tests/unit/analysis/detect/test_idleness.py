"""Silence makes a partition idle only as far as it was read."""

from __future__ import annotations

import math

import pytest

from pipeline.analysis.detect.idleness import MOST_READINGS, Readings, is_idle

ONE, OTHER = ("profiles", 0), ("profiles", 1)


@pytest.mark.parametrize(
    ("silent_s", "unread_s", "idle"),
    [
        pytest.param(0.0, 0.0, False, id="it has just spoken"),
        pytest.param(300.0, 0.0, False, id="not longer than a partition may be silent"),
        pytest.param(301.0, 0.0, True, id="silent, and all of it was read"),
        pytest.param(301.0, 20.0, False, id="what came in the last 20 s is not read yet"),
        pytest.param(321.0, 20.0, True, id="silent for long enough before that"),
        pytest.param(3601.0, 3600.0, False, id="its reader is away since it spoke"),
        pytest.param(1e9, math.inf, False, id="nobody knows how far it was read"),
        pytest.param(301.0, -5.0, True, id="read by a clock that is ahead: silence counts to now"),
        pytest.param(299.0, -5.0, False, id="such a clock makes no silence longer"),
    ],
)
def test_a_partition_is_idle_once_its_silence_was_read(silent_s: float, unread_s: float, idle: bool) -> None:
    assert is_idle(silent_s, unread_s, 300.0) is idle


def test_nothing_is_read_before_it_was_measured() -> None:
    assert Readings().read_up_to(0, 100) == {}


def test_a_partition_is_read_up_to_the_last_end_that_was_committed() -> None:
    readings = Readings()
    readings.add(10.0, {ONE: 100, OTHER: 7}, {ONE: 90, OTHER: 7}, {0: 5})
    assert readings.read_up_to(0, 5) == {OTHER: 10.0}
    readings.add(20.0, {ONE: 150, OTHER: 7}, {ONE: 120, OTHER: 7}, {0: 6})
    assert readings.read_up_to(0, 6) == {ONE: 10.0, OTHER: 20.0}, "others send to it without pause"
    readings.add(30.0, {ONE: 200, OTHER: 9}, {ONE: 199, OTHER: 8}, {0: 7})
    assert readings.read_up_to(0, 7) == {ONE: 20.0, OTHER: 20.0}


def test_only_a_reading_counts_whose_progress_was_heard() -> None:
    """Aggregate has caught up at 20, and what it said of that waits at offset 5 of partition 0."""
    readings = Readings()
    readings.add(10.0, {ONE: 100}, {ONE: 100}, {0: 5, 1: 50})
    readings.add(20.0, {ONE: 200}, {ONE: 200}, {0: 6, 1: 50})
    assert readings.read_up_to(0, 4) == {}
    assert readings.read_up_to(0, 5) == {ONE: 10.0}
    assert readings.read_up_to(0, 6) == {ONE: 20.0}
    assert readings.read_up_to(1, 50) == {ONE: 20.0}
    assert readings.read_up_to(2, 50) == {}, "a partition that is not measured yet"


def test_who_is_further_behind_than_the_readings_that_are_kept_knows_nothing() -> None:
    readings = Readings()
    for number in range(MOST_READINGS + 5):
        readings.add(float(number), {ONE: number}, {ONE: number}, {0: number})
    assert readings.read_up_to(0, 4) == {}
    assert readings.read_up_to(0, 5) == {ONE: 5.0}


def test_a_lag_without_end_takes_no_memory_without_end() -> None:
    readings = Readings()
    for number in range(1000):
        readings.add(float(number), {ONE: number + 1}, {ONE: 0}, {0: 0})
    assert len(readings._ends[ONE]) == MOST_READINGS
    assert readings.read_up_to(0, 0) == {}
    readings.add(1000.0, {ONE: 1001}, {ONE: 1001}, {0: 0})
    assert readings.read_up_to(0, 0) == {ONE: 1000.0}
