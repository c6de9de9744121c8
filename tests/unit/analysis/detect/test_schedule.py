"""When scans are due."""

from __future__ import annotations

import pytest

from pipeline.analysis.detect.schedule import (
    MAX_CATCH_UP,
    Cadence,
    ServiceProgress,
    due_scans,
    first_boundary,
)
from pipeline.model import Progress

HOURLY = Cadence("hourly", 3600.0, 60.0)
DAILY = Cadence("daily", 86_400.0, 0.0)
NOON = 1.5 * 86_400.0


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


OFTEN = Cadence("often", 1800.0, 60.0, analysis_s=3 * 3600.0, extended_s=1800.0)


def ends_of(cadence: Cadence, hours: float, *spans: tuple[float, float]) -> list[float]:
    """Return the ends in hours of the scans due after so long, with data in those hours."""
    due = due_scans(
        {cadence.workload: 0.0},
        hours * 3600.0 + cadence.wait_s,
        [cadence],
        lambda _workload, start, end: [
            (max(a * 3600.0, start), min(b * 3600.0, end)) for a, b in spans if a * 3600.0 < end
        ],
    )
    assert sum(scan.skipped for scan in due) + len(due) == hours * 3600.0 // cadence.interval_s
    return [scan.end / 3600.0 for scan in due]


def test_after_years_without_data_only_the_last_scan_is_made() -> None:
    assert ends_of(HOURLY, 200_000.0) == [200_000.0]


def test_no_scan_is_left_out_that_would_see_data_if_windows_do_not_overlap() -> None:
    alone = Cadence("alone", 3600.0, 60.0, analysis_s=3600.0)
    assert ends_of(alone, 5000.0, (0.0, 5000.0)) == [float(hour) for hour in range(1, 5001)]


def test_of_old_scans_with_data_those_are_made_that_look_at_every_window() -> None:
    hours = 2000.0
    ends = ends_of(OFTEN, hours, (0.0, hours))
    newest = [end for end in ends if end > hours - MAX_CATCH_UP / 2]
    assert newest == [hours - MAX_CATCH_UP / 2 + (1 + n) / 2 for n in range(MAX_CATCH_UP)]
    for minute in range(0, int((hours - 3.5) * 60), 10):
        assert any(end - 3.5 <= minute / 60 < end - 0.5 for end in ends if end < minute / 60 + 4)
    assert len(ends) == MAX_CATCH_UP + (2000 - MAX_CATCH_UP // 2) // 3


def test_scans_that_look_for_slow_rises_are_covered_by_no_others() -> None:
    slow = Cadence("slow", 1800.0, 60.0, analysis_s=10 * 3600.0, searches_slowly=True)
    ends = ends_of(slow, 2000.0, (0.0, 2000.0))
    assert set(range(12, 2000, 12)) <= {int(end) for end in ends if end == int(end)}


def test_around_data_of_one_moment_all_that_look_at_it_are_made() -> None:
    ends = ends_of(OFTEN, 100_000.0, (0.0, 0.1), (99_000.0, 99_000.1), (99_990.0, 100_000.0))
    assert [end for end in ends if end < 98_000.0] == [3.0, 6.0]
    assert [end for end in ends if 98_000.0 < end < 99_900.0] == [99_000.0 + 3 * n for n in (1, 2)]
    assert [end for end in ends if end > 99_900.0] == [99_990.5 + n / 2 for n in range(20)]


def test_where_it_goes_on_amid_old_scans_changes_none() -> None:
    def spans(_workload: str, start: float, end: float) -> list[tuple[float, float]]:
        return [(max(0.0, start), end)]

    low = 3000 * 3600.0 + 60.0
    every = [scan.end for scan in due_scans({"often": 0.0}, low, [OFTEN], spans)]
    for done in range(1, 400, 7):
        again = due_scans({"often": every[done - 1]}, low, [OFTEN], spans)
        assert [scan.end for scan in again] == every[done:]


def test_the_slowest_live_partition_holds_scans_back() -> None:
    state = ServiceProgress()
    state.advance(step(0, 100.0), now=0.0)
    state.advance(step(1, 50.0), now=10.0)
    assert state.low_watermark(10.0, idle_s=60.0) == 50.0
    state.advance(step(0, 120.0), now=70.0)
    assert state.low_watermark(71.0, idle_s=60.0) == 120.0, "the other has fallen silent"


def test_idle_partitions_whose_data_end_in_a_span_make_it_partial() -> None:
    state = ServiceProgress()
    state.advance(step(0, 100.0), now=0.0)
    state.advance(step(1, 500.0), now=70.0)
    for now, start, end, silent in (
        (59.0, 50.0, 400.0, 0),  # not idle yet: nothing is scanned without it
        (71.0, 50.0, 400.0, 1),
        (71.0, 50.0, 100.0, 0),  # it has all of the span
        (71.0, 100.0, 400.0, 0),  # it has nothing of the span
    ):
        state.low_watermark(now, idle_s=60.0)
        assert state.silent_since("profiles", start, end) == silent
        assert state.silent_since("metrics", start, end) == 0
    state.advance(step(0, 110.0), now=72.0)
    state.low_watermark(72.0, idle_s=60.0)
    assert state.silent_since("profiles", 50.0, 400.0) == 0, "it speaks again"


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
    assert first_boundary(Cadence("w", 3600.0, 0.0), earliest) == first


@pytest.mark.parametrize(
    ("counted", "first"),
    [
        ((), NOON + 7200.0),
        (
            ((NOON + 5000.0, NOON + 9000.0),),
            NOON + 3600.0,
        ),  # they begin within what the first scan waited for
        (((NOON + 6000.0, NOON + 6060.0), (NOON + 8000.0, NOON + 9000.0)), NOON + 3600.0),
        (((NOON - 36_000.0, NOON + 9000.0),), NOON - 36_000.0),  # another partition is behind by hours
        (((0.0, NOON + 9000.0),), NOON + 7200.0),  # of a service that is not new, where a workload is
    ],
)
def test_scans_of_a_new_service_begin_where_its_data_do(
    counted: tuple[tuple[float, float], ...], first: float
) -> None:
    def spans(_workload: str, start: float, end: float) -> list[tuple[float, float]]:
        return [(max(begin, start), min(last, end)) for begin, last in counted]

    assert first_boundary(Cadence("w", 3600.0, 600.0), NOON + 9000.0, spans) == first
