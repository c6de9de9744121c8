"""What a desk sends by its rules: threads, quiet hours, digests, limits and reminders."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.delivery.alerts.record import Record
from pipeline.delivery.alerts.targets import TargetUnavailable
from pipeline.kafka import Entry
from pipeline.model.units import DAY_S, HOUR_S
from tests.support.alert_desk import HEARD, WRONG, World, settle, take, two
from tests.support.alert_events import NOW, detected, resolved, updated

pytestmark = pytest.mark.usefixtures("recorder")


async def test_what_becomes_of_a_regression_follows_in_its_thread(tmp_path: Path) -> None:
    world = World(tmp_path, two(rule="{to: [a]}"))
    WRONG["a"] = TargetUnavailable("away")
    desk = await world.desk()
    await take(desk, detected("r0", time=NOW - 1), detected("r1"), updated("r1"))
    await settle(desk)
    WRONG.clear()
    world.now += 60
    await settle(desk)
    again = await world.desk()
    await take(again, resolved("r1"))
    await settle(again)
    assert [(occasion, thread) for occasion, _, thread in HEARD["a"]] == [
        *(("detected", ""), ("detected", "")),
        *(("updated", "thread-2"), ("resolved", "thread-2")),
    ]


async def test_quiet_hours_hold_back_and_urgent_rules_do_not(tmp_path: Path) -> None:
    quiet = ', quiet: [{from: "00:00", to: "23:00"}]'
    rules = "{to: [a]}, {services: [cart], to: [a], urgent: true}"
    world = World(tmp_path, two(quiet, rules))
    desk = await world.desk()
    await take(desk, detected("r1"), detected("r2", service="cart"))
    await settle(desk)
    assert [title.split(":")[0] for _, title, _ in HEARD["a"]] == ["cart"]
    world.now += 9 * HOUR_S
    await settle(desk)
    assert [title.split(":")[0] for _, title, _ in HEARD["a"]] == ["cart", "shop"]


async def test_a_digest_is_one_message_of_all_processes(tmp_path: Path) -> None:
    world = World(tmp_path, two(", digest: {every: 1h}", "{to: [a]}"))
    first, second = await world.desk(0), await world.desk(1)
    await take(first, detected("r1"), updated("r1"))
    await take(second, detected("r2", service="cart"), partition=1)
    await settle(first)
    await settle(second)
    assert HEARD == {}
    world.now += HOUR_S
    await settle(second)
    await settle(first)
    assert [title for _, title, _ in HEARD["a"]] == ["Smidgen: 2 regressions in 2 services, 1 follow-up"]


async def test_a_limit_gathers_what_has_no_room(tmp_path: Path) -> None:
    world = World(tmp_path, two(", limit: {messages: 3, per: 1h}", "{to: [a]}"))
    desk = await world.desk()
    await take(desk, *(detected(f"r{n}") for n in range(10)))
    await settle(desk)
    assert [occasion for occasion, _, _ in HEARD["a"]] == ["detected", "detected", "digest"]
    await take(desk, detected("late"), resolved("r9"))
    await settle(desk)
    assert len(HEARD["a"]) == 3
    world.now += HOUR_S + 1
    await settle(desk)
    # The thread of a regression is the message that it was in.
    assert [(occasion, thread) for occasion, _, thread in HEARD["a"][3:]] == [
        ("detected", ""),
        ("resolved", "thread-3"),
    ]


@pytest.mark.parametrize("answer", ["", "person", "resolved"])
async def test_nobody_is_reminded_once_somebody_has_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    async def answered(_: Record, service: str, events: list[str]) -> bool:
        assert (service, events) == ("shop", ["r1"])
        return answer == "person"

    monkeypatch.setattr(Record, "answered", answered)
    world = World(tmp_path, two(rule="{to: [a], unanswered: {after: 4h, to: [b]}}"))
    desk = await world.desk()
    await take(desk, detected("r1"))
    await settle(desk)
    assert "b" not in HEARD
    if answer == "resolved":
        await take(desk, resolved("r1"))
    world.now += 4 * HOUR_S
    await settle(desk)
    wanted = [] if answer else ["unanswered"]
    assert [occasion for occasion, _, _ in HEARD.get("b", [])] == wanted


async def test_old_events_and_what_is_no_event_lead_to_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    desk = await world.desk()
    await take(desk, detected("old", time=NOW - 8 * DAY_S))
    await desk.take([Entry(0, 9, NOW, b"shop", value, ()) for value in (b"{", None, b'{"id": 1}')])
    assert world.states() == []
