"""The desk over a store: each event once, in order, and no target waits for another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pipeline.delivery.alerts.targets import TargetRefused, TargetUnavailable
from pipeline.messages.records import columns_of
from pipeline.model.errors import StoreUnavailable
from pipeline.model.units import DAY_S
from pipeline.storage.interface import RowQuery
from tests.support.alert_desk import BEGUN, HEARD, WRONG, World, counted, parts_of, settle, take, two
from tests.support.alert_events import NOW, detected, verdict

pytestmark = pytest.mark.usefixtures("recorder")


def test_verdicts_on_trials_are_sent_by_who_has_their_partition(tmp_path: Path) -> None:
    world = World(tmp_path, two(rule="{to: [a], events: [regression, trial-fail]}"))

    async def use() -> None:
        regressions, trials = await world.desk(0), await world.desk(0)
        await trials.arrived(parts_of(0, trials=True))
        for desk in (regressions, trials):
            await take(desk, verdict())
            await take(desk, detected())
        await settle(regressions)
        assert [title for _, title, _ in HEARD["a"]] == ["shop: shop.pricing.total takes 33.3% more CPU"]
        await settle(trials)
        assert [title for _, title, _ in HEARD["a"]][1:] == ["shop: experiment pr-7 fails: cpu +5.00%"]
        again = await world.desk(0)  # a restart, with both topics
        await again.arrived(parts_of(0) | parts_of(0, trials=True))
        await take(again, verdict(), verdict("pr-7", "pass", revision=2))
        await settle(again)

    asyncio.run(use())
    assert [(occasion, thread) for occasion, _, thread in HEARD["a"]][2:] == [("resolved", "thread-2")]


async def test_an_event_that_comes_again_is_sent_once(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    desk = await world.desk()
    await take(desk, detected(), detected())
    await settle(desk)
    await take(desk, detected())
    await settle(desk)
    again = await world.desk()  # a restart
    await take(again, detected())
    await settle(again)
    assert {name: len(heard) for name, heard in HEARD.items()} == {"a": 1, "b": 1}
    assert world.states() == [("a", "sent"), ("a", "waiting"), ("b", "sent"), ("b", "waiting")]


async def test_what_a_killed_process_took_in_is_sent_by_the_next(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    await take(await world.desk(), detected())
    assert HEARD == {}
    await settle(await world.desk())
    assert len(HEARD["a"]) == 1


async def test_a_process_sends_only_of_its_partitions(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    await take(await world.desk(0, 1), detected(), partition=1)
    await settle(await world.desk(0))
    assert HEARD == {}
    await settle(await world.desk(1))
    assert len(HEARD["a"]) == 1


async def test_partitions_go_once_what_is_being_sent_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    answer = WRONG["a"] = asyncio.Event()
    desk = await world.desk()
    await take(desk, detected("r1"), detected("r2"))
    await desk.tick()
    while "a" not in BEGUN:
        await asyncio.sleep(0.01)
    leaving = asyncio.create_task(desk.left(parts_of(0)))
    await asyncio.sleep(0.05)
    assert not leaving.done()
    answer.set()
    await leaving
    assert len(HEARD["a"]) == 1  # the second one is left to the next process
    assert ("a", "sent") in world.states()
    await settle(await world.desk())
    assert len(HEARD["a"]) == 2


async def test_what_comes_while_partitions_arrive_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, two())
    desk = await world.desk()
    load = desk._record.load

    async def slowly(since: float) -> Any:
        found = await load(since)
        await asyncio.sleep(0.1)
        return found

    monkeypatch.setattr(desk._record, "load", slowly)
    arriving = asyncio.create_task(desk.arrived(parts_of(0)))
    await asyncio.sleep(0.05)
    await take(desk, detected())
    await arriving
    await settle(desk)
    assert len(HEARD["a"]) == 1


async def test_a_dead_target_keeps_nobody_waiting_and_gets_everything_later(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    WRONG["a"] = TargetUnavailable("no answer")
    desk = await world.desk()
    await take(desk, detected("r1"), detected("r2"))
    await settle(desk)
    assert len(HEARD["b"]) == 2
    world.now += 1
    WRONG.clear()
    await settle(desk)
    assert "a" not in HEARD  # it is left alone for a while
    world.now += 2
    await settle(desk)
    assert len(HEARD["a"]) == 2


async def test_a_target_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    answer = WRONG["a"] = asyncio.Event()
    desk = await world.desk()
    await take(desk, detected("r1"))
    await desk.tick()
    while "b" not in HEARD:
        await asyncio.sleep(0.01)
    assert len(HEARD["b"]) == 1
    assert "a" not in HEARD
    answer.set()
    await desk.finish()
    assert len(HEARD["a"]) == 1


async def test_pauses_grow_and_obey_the_target(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    desk = await world.desk()
    assert [desk._pause("a", 0.0) for _ in range(4)] == [2.0, 4.0, 8.0, 16.0]
    assert desk._pause("a", 100.0) == 100.0
    assert [desk._pause("b", 0.0) for _ in range(20)][-1] == 900.0


async def test_what_is_refused_is_dropped_and_given_up_after_a_day(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    WRONG.update(a=TargetRefused("HTTP 404"), b=TargetUnavailable("away"))
    desk = await world.desk()
    await take(desk, detected("r1"))
    await settle(desk)
    world.now += DAY_S + 1
    WRONG.clear()
    await settle(desk)
    assert HEARD == {}
    rows = world.store.rows(RowQuery("alerts", "shop", 0.0, NOW + DAY_S, equal={"state": "dropped"}))
    assert {row["target"]: row["detail"] for row in rows} == {"a": "HTTP 404", "b": "given up"}


async def test_what_waits_for_a_target_that_left_the_file_is_dropped(tmp_path: Path) -> None:
    world = World(tmp_path, two())
    await take(await world.desk(), detected())
    after = World(tmp_path, two(rule="{to: [b]}").replace("  a: {kind: recorder, name: a}\n", ""))
    after.store = world.store
    await settle(await after.desk())
    assert ("a", "dropped") in world.states()


async def test_a_store_that_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, two())
    monkeypatch.setattr("pipeline.delivery.alerts.record.RETRY_S", 0.01)
    insert, failures = world.store.insert, [StoreUnavailable("away")] * 3

    def failing(*args: Any, **kwargs: Any) -> None:
        if failures:
            raise failures.pop()
        insert(*args, **kwargs)

    monkeypatch.setattr(world.store, "insert", failing)
    desk = await world.desk()
    await take(desk, detected())
    await settle(desk)
    assert len(HEARD["a"]) == 1


async def test_a_delivery_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    world = World(tmp_path, "targets: {a: {kind: recorder, name: a}}\nrules: [{to: [a]}]\n")
    before = await world.desk()
    await take(before, detected("r1"), detected("r2"))
    rows = world.store.rows(RowQuery("alerts", None, 0.0, NOW + DAY_S))
    broken = {**rows[0], "id": "broken", "event": "r0", "content": '{"event": 7}'}
    world.store.insert("alerts", columns_of([broken]))
    await settle(await world.desk())
    assert len(HEARD["a"]) == 2


async def test_numbers_say_what_was_sent_failed_and_waits(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        """
time_zone: UTC
targets:
  chat: {kind: recorder, name: chat}
  pager: {kind: recorder, name: pager}
  night: {kind: recorder, name: night, quiet: [{from: "14:00", to: "18:00"}]}
rules:
  - {name: everything, to: [chat, night]}
  - {to: [pager], services: [shop]}
  - {name: nothing, to: [pager], services: [cart]}
""",
    )
    desk = await world.desk()
    WRONG["pager"] = TargetUnavailable("away")
    await take(desk, detected("r1", time=world.now), detected("r2", time=world.now))
    world.now += 20
    await settle(desk)
    assert counted(desk) == {
        ("alerts_total", "chat", "sent"): 2,
        ("alerts_total", "pager", "failed"): 1,
        ("alerts_waiting", "pager", "late"): 2,
        ("alerts_waiting", "night", "quiet"): 2,
        ("alert_rules_total", "everything"): 2,
        ("alert_rules_total", "2"): 2,
        ("alert_delay_seconds_sum", "chat"): 40,
        ("alert_delay_seconds_count", "chat"): 2,
    }
    WRONG["pager"] = TargetRefused("no such key")
    world.now += 60
    await settle(desk)
    found = counted(desk)
    assert found["alerts_total", "pager", "dropped"] == 2
    assert ("alerts_waiting", "pager", "late") not in found
