"""When scans are due."""

from __future__ import annotations

import pytest

from pipeline.detect.schedule import MAX_CATCH_UP, Cadence, ServiceProgress, due_scans, first_boundary
from pipeline.model import Progress

HOURLY = Cadence("hourly", 3600.0, 60.0)
DAILY = Cadence("daily", 86_400.0, 0.0)


def step(partition: int, watermark: float, topic: str = "profiles") -> Progress:
    return Progress("shop", topic, partition, watermark, 0.0)


@pytest.mark.parametrize(
    ("low", "ends"),
    [
        pytest.param(3659.0, [], id="not before late data had their time"),
        pytest.param(3660.0, [3600.0], id="once they had"),
        pytest.param(3 * 3600.0, [3600.0, 7200.0], id="all that were passed at once, oldest first"),
        pytest.param(0.0, [], id="none"),
    ],
)
def test_scans_are_due_at_the_boundaries_that_the_watermark_passes(low: float, ends: list[float]) -> None:
    assert [scan.end for scan in due_scans({"hourly": 0.0}, low, [HOURLY])] == ends


def test_scans_of_several_workloads_come_by_the_watermark_they_waited_for() -> None:
    due = due_scans({"hourly": 82_800.0, "daily": 0.0}, 90_060.0, [HOURLY, DAILY])
    assert [(scan.workload, scan.end) for scan in due] == [
        ("daily", 86_400.0),
        ("hourly", 86_400.0),
        ("hourly", 90_000.0),
    ]


def test_what_lies_too_far_back_is_skipped() -> None:
    due = due_scans({"hourly": 0.0}, 5000 * 3600.0 + 60.0, [HOURLY])
    assert len(due) == MAX_CATCH_UP
    assert (due[0].end, due[0].skipped) == ((5000 - MAX_CATCH_UP + 1) * 3600.0, 5000 - MAX_CATCH_UP)
    assert {scan.skipped for scan in due[1:]} == {0}
    assert due[-1].end == 5000 * 3600.0


def test_the_slowest_live_partition_holds_scans_back() -> None:
    state = ServiceProgress()
    state.advance(step(0, 100.0), now=0.0)
    state.advance(step(1, 50.0), now=10.0)
    assert state.low_watermark(10.0, idle_s=60.0) == 50.0
    state.advance(step(0, 120.0), now=70.0)
    assert state.low_watermark(71.0, idle_s=60.0) == 120.0, "the other has fallen silent"


def test_a_watermark_never_goes_back_but_for_what_was_only_recalled() -> None:
    state = ServiceProgress()
    state.advance(step(0, 100.0), now=0.0)
    state.advance(step(0, 90.0), now=1.0)
    assert state.low_watermark(1.0, idle_s=60.0) == 100.0
    state.restore(("profiles", 1), 80.0, now=1.0)
    assert state.low_watermark(1.0, idle_s=60.0) == 80.0
    state.advance(step(1, 70.0), now=2.0)
    assert state.low_watermark(2.0, idle_s=60.0) == 70.0


@pytest.mark.parametrize(
    ("earliest", "first"), [(0.0, 0.0), (3599.0, 0.0), (3600.0, 3600.0), (9000.0, 7200.0)]
)
def test_the_first_boundary_lies_before_the_data(earliest: float, first: float) -> None:
    assert first_boundary(earliest, 3600.0) == first
