"""The desk over a store: each event once, in order, and no target waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Literal

import pytest

from pipeline.alerts.delivery import Part
from pipeline.alerts.desk import Desk
from pipeline.alerts.message import Note
from pipeline.alerts.record import Record
from pipeline.alerts.rules_file import AlertRules, load_rules
from pipeline.alerts.targets import KINDS, Http, Target, TargetRefused, TargetUnavailable
from pipeline.codec.records import columns_of
from pipeline.errors import StoreUnavailable
from pipeline.kafka import Entry
from pipeline.storage.arrays import ArrayStore
from pipeline.units import DAY_S, HOUR_S
from tests.support.alert_events import NOW, detected, encoded, resolved, updated, verdict

Heard = list[tuple[str, str, str]]  # occasion, title, thread
HEARD: dict[str, Heard] = {}
WRONG: dict[str, Exception | asyncio.Event] = {}
BEGUN: set[str] = set()


class Recorder(Target):
    """Keeps what is sent to it, or does what a test says is wrong with it."""

    kind: Literal["recorder"]
    name: str

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Keep a note."""
        wrong = WRONG.get(self.name)
        if isinstance(wrong, Exception):
            raise wrong
        if wrong:
            BEGUN.add(self.name)
            await wrong.wait()
        HEARD.setdefault(self.name, []).append((note.occasion, note.title, thread))
        return thread or f"thread-{len(HEARD[self.name])}"


def parts_of(*partitions: int, trials: bool = False) -> frozenset[Part]:
    """Return partitions of the topic of regressions, or of verdicts on trials."""
    return frozenset(("trial-verdicts" if trials else "regressions", number) for number in partitions)


class World:
    """A store, a clock and desks over them."""

    def __init__(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "alerts.yaml").write_text(text)
        self.rules: AlertRules = load_rules(tmp_path / "alerts.yaml", {})
        self.store = ArrayStore()
        self.now = NOW

    async def desk(self, *partitions: int) -> Desk:
        """Return a process that has these partitions."""
        desk = Desk(self.rules, Record(self.store), Http(), lambda: self.now)
        await desk.arrived(parts_of(*(partitions or (0,))))
        return desk

    def states(self) -> list[tuple[str, str]]:
        """Target and state of each row."""
        rows = self.store.rows("alerts", None, 0.0, NOW + 100 * DAY_S)
        return sorted((row["target"], row["state"]) for row in rows)


async def take(desk: Desk, *events: dict[str, Any], partition: int = 0) -> None:
    """Give a desk events."""
    await desk.take([Entry(partition, n, NOW, b"shop", encoded(event), ()) for n, event in enumerate(events)])


async def settle(desk: Desk) -> None:
    """Send what is due, and wait for it."""
    for _ in range(3):
        await desk.tick()
        if desk._sending:
            await asyncio.wait(desk._sending.values())
        await asyncio.sleep(0)


def counted(desk: Desk) -> dict[tuple[str, ...], float]:
    """Return what a desk says on /metrics and is not 0, by name and labels; buckets left out."""
    return {
        (name, *labels.values()): value
        for name, labels, value in desk.samples()
        if value and not name.endswith("_bucket")
    }


@pytest.fixture(autouse=True)
def recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "recorder", Recorder)
    HEARD.clear()
    WRONG.clear()
    BEGUN.clear()


def two(more: str = "", rule: str = "{to: [a, b]}") -> str:
    """Rules for two recorders; ``more`` are options of the first."""
    return f"""
targets:
  a: {{kind: recorder, name: a{more}}}
  b: {{kind: recorder, name: b}}
rules: [{rule}]
"""


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


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


def test_an_event_that_comes_again_is_sent_once(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


def test_what_a_killed_process_took_in_is_sent_by_the_next(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, two())
        await take(await world.desk(), detected())
        assert HEARD == {}
        await settle(await world.desk())
        assert len(HEARD["a"]) == 1

    run(work())


def test_a_process_sends_only_of_its_partitions(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, two())
        await take(await world.desk(0, 1), detected(), partition=1)
        await settle(await world.desk(0))
        assert HEARD == {}
        await settle(await world.desk(1))
        assert len(HEARD["a"]) == 1

    run(work())


def test_partitions_go_once_what_is_being_sent_is_kept(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


def test_what_comes_while_partitions_arrive_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
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

    run(work())


def test_a_dead_target_keeps_nobody_waiting_and_gets_everything_later(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


def test_a_target_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


def test_pauses_grow_and_obey_the_target(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, two())
        desk = await world.desk()
        assert [desk._pause("a", 0.0) for _ in range(4)] == [2.0, 4.0, 8.0, 16.0]
        assert desk._pause("a", 100.0) == 100.0
        assert [desk._pause("b", 0.0) for _ in range(20)][-1] == 900.0

    run(work())


def test_what_is_refused_is_dropped_and_given_up_after_a_day(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, two())
        WRONG.update(a=TargetRefused("HTTP 404"), b=TargetUnavailable("away"))
        desk = await world.desk()
        await take(desk, detected("r1"))
        await settle(desk)
        world.now += DAY_S + 1
        WRONG.clear()
        await settle(desk)
        assert HEARD == {}
        rows = world.store.rows("alerts", "shop", 0.0, NOW + DAY_S, state="dropped")
        assert {row["target"]: row["detail"] for row in rows} == {"a": "HTTP 404", "b": "given up"}

    run(work())


def test_what_becomes_of_a_regression_follows_in_its_thread(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


def test_quiet_hours_hold_back_and_urgent_rules_do_not(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


def test_a_digest_is_one_message_of_all_processes(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


def test_a_limit_gathers_what_has_no_room(tmp_path: Path) -> None:
    async def work() -> None:
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

    run(work())


@pytest.mark.parametrize("answer", ["", "person", "resolved"])
def test_nobody_is_reminded_once_somebody_has_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    async def work() -> None:
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

    async def answered(_: Record, service: str, events: list[str]) -> bool:
        assert (service, events) == ("shop", ["r1"])
        return answer == "person"

    monkeypatch.setattr(Record, "answered", answered)
    run(work())


def test_old_events_and_what_is_no_event_lead_to_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, two())
        desk = await world.desk()
        await take(desk, detected("old", time=NOW - 8 * DAY_S))
        await desk.take([Entry(0, 9, NOW, b"shop", value, ()) for value in (b"{", None, b'{"id": 1}')])
        assert world.states() == []

    run(work())


def test_what_waits_for_a_target_that_left_the_file_is_dropped(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, two())
        await take(await world.desk(), detected())
        after = World(tmp_path, two(rule="{to: [b]}").replace("  a: {kind: recorder, name: a}\n", ""))
        after.store = world.store
        await settle(await after.desk())
        assert ("a", "dropped") in world.states()

    run(work())


def test_a_store_that_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        world = World(tmp_path, two())
        monkeypatch.setattr("pipeline.alerts.record.RETRY_S", 0.01)
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

    run(work())


def test_a_delivery_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    world = World(tmp_path, "targets: {a: {kind: recorder, name: a}}\nrules: [{to: [a]}]\n")

    async def main() -> None:
        before = await world.desk()
        await take(before, detected("r1"), detected("r2"))
        rows = world.store.rows("alerts", None, 0.0, NOW + DAY_S)
        broken = {**rows[0], "id": "broken", "event": "r0", "content": '{"event": 7}'}
        world.store.insert("alerts", columns_of([broken]))
        await settle(await world.desk())
        assert len(HEARD["a"]) == 2

    asyncio.run(main())


def test_numbers_say_what_was_sent_failed_and_waits(tmp_path: Path) -> None:
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

    async def main() -> None:
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

    asyncio.run(main())
