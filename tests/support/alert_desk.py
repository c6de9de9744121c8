"""Desks over a store and a clock of their own, and targets that record what is sent to them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Literal

from pipeline.delivery.alerts.delivery import Part
from pipeline.delivery.alerts.desk import Desk
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.record import DeliveryRecord
from pipeline.delivery.alerts.rules_file import AlertRules, load_rules
from pipeline.delivery.alerts.targets import Http, Target
from pipeline.kafka import Entry
from pipeline.model.units import DAY_S
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.interface import RowQuery
from tests.support.alert_events import NOW, encoded

Heard = list[tuple[str, str, str]]  # occasion, title, thread
HEARD: dict[str, Heard] = {}
WRONG: dict[str, Exception | asyncio.Event] = {}
BEGUN: set[str] = set()


class Recorder(Target):
    """Target that records notes, or fails as a test says."""

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
        desk = Desk(self.rules, DeliveryRecord(self.store), Http(), lambda: self.now)
        await desk.arrived(parts_of(*(partitions or (0,))))
        return desk

    def states(self) -> list[tuple[str, str]]:
        """Return the target and state of each row."""
        rows = self.store.rows(RowQuery("alerts", None, 0.0, NOW + 100 * DAY_S))
        return sorted((row["target"], row["state"]) for row in rows)


async def take(desk: Desk, *events: dict[str, Any], partition: int = 0) -> None:
    """Hand events to a desk."""
    await desk.take([Entry(partition, n, NOW, b"shop", encoded(event), ()) for n, event in enumerate(events)])


async def settle(desk: Desk) -> None:
    """Send due notes, and wait for the end of sending."""
    for _ in range(3):
        await desk.tick()
        if desk._sending:
            await asyncio.wait(desk._sending.values())
        await asyncio.sleep(0)


def counted(desk: Desk) -> dict[tuple[str, ...], float]:
    """Return a desk's metrics that are not 0, by name and labels, without buckets."""
    return {
        (name, *labels.values()): value
        for name, labels, value in desk.samples()
        if value and not name.endswith("_bucket")
    }


def two(more: str = "", rule: str = "{to: [a, b]}") -> str:
    """Return rules for two recorders; ``more`` are options of the first."""
    return f"""
targets:
  a: {{kind: recorder, name: a{more}}}
  b: {{kind: recorder, name: b}}
rules: [{rule}]
"""


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)
