"""Client of subscribers on a real broker: it resumes, reads again, and handles each event once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.delivery.client import DETECTED, Event, SeenIds, history, subscribe
from pipeline.kafka import as_broker, open_member
from pipeline.settings.config import Settings
from tests.e2e.test_alerts import publish
from tests.e2e.worker_process import TOPICS, BrokerUrl
from tests.support.alert_events import NOW, detected, resolved
from tests.support.paths import ROOT


def take(make: Callable[[], AsyncIterator[Event]], count: int) -> list[str]:
    """Take so many events and leave in the midst of the last one, as a killed process does."""

    async def taking() -> list[str]:
        found: list[str] = []
        events = make()
        async with asyncio.timeout(240):
            async for event in events:
                found.append(event["id"])
                if len(found) == count:
                    break
        await events.aclose()  # type: ignore[attr-defined]
        return found

    return asyncio.run(taking())


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded broker waits for members that have left."""
    monkeypatch.setattr("pipeline.kafka.member.SESSION_S", 6.0)
    monkeypatch.setattr("pipeline.kafka.member.REBALANCE_S", 8.0)


@pytest.fixture
def settings(own_broker: BrokerUrl) -> Settings:
    return Settings(broker=str(own_broker))


def test_it_goes_on_with_what_was_not_done_with(own_broker: BrokerUrl, settings: Settings) -> None:
    publish(own_broker, *(detected(f"r{n}") for n in range(5)))
    make = lambda: subscribe("team", settings=settings, from_start=True)  # noqa: E731
    assert take(make, 3) == ["r0", "r1", "r2"]
    assert take(make, 3) == ["r2", "r3", "r4"]  # r2 was not done with
    publish(own_broker, detected("r5"))
    assert take(make, 2) == ["r4", "r5"]


def test_a_new_group_begins_with_what_comes_and_misses_nothing_from_then_on(
    own_broker: BrokerUrl, settings: Settings
) -> None:
    publish(own_broker, detected("before"))

    async def joining() -> None:
        broker = as_broker(own_broker)
        async with open_member(broker, [TOPICS["regressions"]], "late") as member:
            while not member.partitions:
                await member.poll(0.2)
            await member.begin()

    asyncio.run(joining())
    publish(own_broker, detected("while away"))
    assert take(lambda: subscribe("late", settings=settings), 1)[-1] == "while away"


def test_services_are_chosen_and_what_is_no_event_is_passed_over(
    own_broker: BrokerUrl, settings: Settings
) -> None:
    broken: dict[str, Any] = {"data": {"service": "shop"}}
    publish(own_broker, broken, detected("a"), detected("b", service="cart"), detected("c", service="shop-2"))
    make = lambda: subscribe("g", settings=settings, services=("shop*",), from_start=True)  # noqa: E731
    assert sorted(take(make, 2)) == ["a", "c"]


def test_a_replay_begins_at_a_time(own_broker: BrokerUrl, settings: Settings) -> None:
    publish(own_broker, *(detected(f"r{n}", time=NOW + n) for n in range(4)))
    take(lambda: subscribe("team", settings=settings, from_start=True), 4)
    assert take(lambda: subscribe("team", settings=settings, since=NOW + 2), 2) == ["r2", "r3"]

    async def looking() -> list[str]:
        return [event["id"] async for event in history(NOW + 1, settings=settings)]

    assert asyncio.run(looking()) == ["r1", "r2", "r3"]


def test_what_is_kept_with_an_id_happens_once(tmp_path: Path) -> None:
    with SeenIds(tmp_path / "seen.sqlite") as seen:
        seen.connection.execute("CREATE TABLE work (id TEXT)")
        for attempt in range(4):
            try:
                with seen.once("r1") as new:
                    if new:
                        seen.connection.execute("INSERT INTO work VALUES ('r1')")
                    if attempt < 2:
                        raise RuntimeError("killed")
            except RuntimeError:
                continue
    with SeenIds(tmp_path / "seen.sqlite") as seen:
        with seen.once("r1") as new:
            assert not new
        assert seen.connection.execute("SELECT count(*) FROM work").fetchall() == [(1,)]


def test_ids_are_forgotten_after_a_while(tmp_path: Path) -> None:
    with SeenIds(tmp_path / "seen.sqlite") as seen:
        seen.connection.execute("INSERT INTO smidgen_seen VALUES ('old', datetime('now', '-121 days'))")
    with SeenIds(tmp_path / "seen.sqlite") as seen, seen.once("old") as new:
        assert new


def test_the_example_prints_each_event_once(own_broker: BrokerUrl, tmp_path: Path) -> None:
    publish(own_broker, detected("r1"), detected("r1"), detected("x", service="cart"), resolved("r1"))
    command = [sys.executable, str(ROOT / "docs" / "clients" / "subscribe.py"), "shop*"]
    environ = {**os.environ, "SMIDGEN_BROKER": str(own_broker)}
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline().strip() for _ in range(2)]
        running.terminate()
    assert lines == ["shop shop.pricing.total +2.0000% Rules may be nested", "r1 is resolved"]


def test_a_type_is_one_of_three() -> None:
    assert detected()["type"] == DETECTED
