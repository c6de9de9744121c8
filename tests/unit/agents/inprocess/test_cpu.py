from __future__ import annotations

import random
import sys
import threading
import time

import pytest

from agents.inprocess.cpu import check_thread_clock, choose_running, read_clocks, thread_cpu_ns
from agents.inprocess.sampling import affordable_hz, interval_end
from agents.inprocess.switching import COARSE_S, DEFAULT_S, FINE_S, SwitchInterval


@pytest.mark.parametrize(
    ("spent_ns", "draw", "chosen", "busy"),
    [
        pytest.param(1000, 0.99, [7], 1, id="on CPU all the time"),
        pytest.param(500, 0.49, [7], 1, id="half the time, drawn"),
        pytest.param(500, 0.51, [], 1, id="half the time, not drawn"),
        pytest.param(0, 0.0, [], 0, id="asleep"),
        pytest.param(20, 0.5, [], 0, id="a wake-up is not busy"),
        pytest.param(1500, 0.99, [7], 1, id="clocks are not read at the same moment"),
    ],
)
def test_a_thread_counts_as_often_as_it_is_on_cpu(
    spent_ns: int, draw: float, chosen: list[int], busy: int
) -> None:
    found = choose_running({7: 10**9}, {7: 10**9 + spent_ns}, 1000, lambda: draw)
    assert found == (chosen, busy)


def test_the_share_of_samples_is_the_share_of_cpu() -> None:
    draw = random.Random(3).random
    hits = sum(len(choose_running({1: 0}, {1: 300}, 1000, draw)[0]) for _ in range(10_000))
    assert abs(hits - 3000) < 4 * (10_000 * 0.3 * 0.7) ** 0.5


def test_a_thread_that_began_between_the_looks_does_not_count() -> None:
    assert choose_running({}, {7: 500}, 1000, lambda: 0.0) == ([], 0)


def test_clocks_of_threads() -> None:
    check_thread_clock()
    release = threading.Event()
    asleep = threading.Thread(target=release.wait)
    asleep.start()
    try:
        me = threading.get_ident()
        before = read_clocks()
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        after = read_clocks()
        assert after[me] - before[me] >= 20_000_000
        assert after[asleep.ident or 0] - before[asleep.ident or 0] < 5_000_000
        assert me not in read_clocks({me})
    finally:
        release.set()
        asleep.join()


def test_the_clock_of_a_thread_that_is_gone_is_refused_and_not_fatal() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        thread_cpu_ns(2**22 + 1)  # beyond the largest id that Linux gives


@pytest.mark.parametrize(
    ("start", "interval_s", "end"),
    [(100.0, 10.0, 110.0), (101.0, 10.0, 110.0), (107.4, 10.0, 110.0), (107.6, 10.0, 120.0)],
)
def test_intervals_end_at_multiples(start: float, interval_s: float, end: float) -> None:
    assert interval_end(start, interval_s) == end


@pytest.mark.parametrize(
    ("asked_hz", "rate_hz", "cost_s", "expected"),
    [
        pytest.param(100, 100, 0.00005, 100, id="within the budget"),
        pytest.param(100, 100, 0.0003, 25, id="beyond it"),
        pytest.param(100, 25, 0.00015, 25, id="twice as often would come near it"),
        pytest.param(100, 25, 0.00004, 100, id="cheap again"),
        pytest.param(100, 100, 0, 100, id="free"),
    ],
)
def test_the_rate_keeps_the_budget(asked_hz: float, rate_hz: float, cost_s: float, expected: float) -> None:
    assert affordable_hz(asked_hz, rate_hz, cost_s, budget=0.01) == expected


def test_the_switch_interval_is_fine_but_where_threads_compete() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(DEFAULT_S)
    try:
        switching = SwitchInterval()
        assert sys.getswitchinterval() == pytest.approx(FINE_S)
        for _ in range(100):
            switching.note(2)
        assert sys.getswitchinterval() == pytest.approx(COARSE_S)
        for _ in range(100):
            switching.note(1)
        assert sys.getswitchinterval() == pytest.approx(FINE_S)
        switching.restore()
        assert sys.getswitchinterval() == pytest.approx(DEFAULT_S)
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interval_of_the_application_stays(when: str) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.02 if when == "before" else DEFAULT_S)
    try:
        switching = SwitchInterval()
        sys.setswitchinterval(0.02)
        for _ in range(100):
            switching.note(2)
        switching.restore()
        assert sys.getswitchinterval() == pytest.approx(0.02)
    finally:
        sys.setswitchinterval(before)
