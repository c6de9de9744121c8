"""How long event time waits for hosts that are late by habit."""

from __future__ import annotations

import pytest

from pipeline.counting.lateness import MOST_S, RECENT, HostLateness

MINUTE = 60.0


def sent(behind_s: float, messages: int = RECENT, other: int = 1) -> HostLateness:
    """Two hosts that send every minute, of which one is behind."""
    lateness = HostLateness()
    for minute in range(messages):
        now = 10_000 + minute * MINUTE
        lateness.note("shop", 0, "prompt", now - MINUTE, now)
        lateness.note("shop", 0, "late", now - behind_s - MINUTE, now - behind_s)
        lateness.note("shop", other, "elsewhere", now - MINUTE, now)
    return lateness


@pytest.mark.parametrize(
    ("behind_s", "messages", "wait"),
    [
        (0, RECENT, None),
        (59, RECENT, None),  # hosts send one after another within an interval
        (10 * MINUTE, RECENT, (9 * MINUTE, 1)),
        (10 * MINUTE, RECENT - 1, None),  # no habit yet
        (MOST_S, RECENT, (MOST_S - MINUTE, 1)),
        (2 * MOST_S, RECENT, (0.0, 1)),  # left out instead
    ],
)
def test_how_long_scans_wait(behind_s: float, messages: int, wait: tuple[float, int] | None) -> None:
    waits = sent(behind_s, messages).waits()
    assert waits == ({} if wait is None else {("shop", 0): wait})


def test_once_late_is_no_habit() -> None:
    lateness = sent(0)
    lateness.note("shop", 0, "late", 8_000, 8_060)
    assert lateness.waits() == {}


def test_a_host_that_fell_silent_is_not_waited_for() -> None:
    lateness = sent(10 * MINUTE)
    lateness.note("shop", 0, "prompt", 10_000 + 3 * MOST_S, 10_060 + 3 * MOST_S)
    assert lateness.waits() == {("shop", 0): (0.0, 1)}


def test_another_process_begins_anew() -> None:
    lateness = sent(10 * MINUTE)
    lateness.forget({0})
    assert lateness.waits() == {}


def test_services_by_the_thousand_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.counting.lateness._MOST_HOSTS", 10)
    lateness = sent(10 * MINUTE)
    for number in range(1000):
        lateness.note(f"other-{number}", 0, "host", 0.0, MINUTE)
    assert len(lateness._latest) == len(lateness._hosts) == len(lateness._known) == 10
    assert lateness.waits() == {}
    lateness.forget({0})
    assert not lateness._latest
    assert not lateness._known


def test_a_service_is_known_as_long_as_one_of_its_hosts_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.counting.lateness._MOST_HOSTS", 2)
    lateness = HostLateness()
    for minute in range(RECENT):
        now = 10_000 + minute * MINUTE
        lateness.note("shop", 0, f"prompt-{minute}", now - MINUTE, now)
        lateness.note("shop", 0, "late", now - 11 * MINUTE, now - 10 * MINUTE)
    assert lateness.waits() == {("shop", 0): (9 * MINUTE, 1)}
