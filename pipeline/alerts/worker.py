"""The worker of alerts: one process of a consumer group over the topic of regressions."""

from __future__ import annotations

import asyncio
import logging
import signal

from pipeline.alerts.desk import Desk
from pipeline.alerts.record import Record
from pipeline.alerts.rules_file import AlertRules
from pipeline.alerts.targets import Http
from pipeline.clock import Clock
from pipeline.errors import BrokerUnavailable
from pipeline.kafka import Broker, Member, open_member
from pipeline.storage.interface import Store
from pipeline.topics import Topics

log = logging.getLogger(__name__)

GROUP = "alerts"
POLL_S = 0.5
AGAIN_S = 5.0


async def run_alerts(
    rules: AlertRules, broker: Broker, topics: Topics, store: Store, clock: Clock, *, from_start: bool = False
) -> None:
    """Send alerts until SIGINT or SIGTERM, whatever broker, store and targets do meanwhile.

    A group that has committed nothing begins with what comes from now on, or ``from_start``.

    Raises:
        ConfigError: there is no topic, or the broker refuses us.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    http = Http()
    desk = Desk(rules, Record(store), http, clock)
    try:
        while not stop.is_set():
            try:
                await _read(desk, broker, topics, stop, from_start=from_start)
            except BrokerUnavailable as error:
                log.warning("%s; once more in %.0f s", error, AGAIN_S)
                await _wait(stop, AGAIN_S)
    finally:
        await desk.finish()
        await http.close()


async def _read(desk: Desk, broker: Broker, topics: Topics, stop: asyncio.Event, *, from_start: bool) -> None:
    """Take events in and send what is due; offsets are committed once what they lead to is in the store."""
    joined = asyncio.Event()

    async def arrived(partitions: frozenset[int]) -> None:
        await desk.arrived(partitions)
        joined.set()

    async with open_member(
        broker,
        topics["regressions"],
        topics.group(GROUP),
        from_start=from_start,
        leaving=desk.left,
        arrived=arrived,
    ) as member:
        while not stop.is_set():
            if joined.is_set():
                joined.clear()
                await member.begin()
                log.info("alerts of %d partitions, %d wait", len(member.partitions), desk.waiting)
            await _step(desk, member)
        await desk.finish()


async def _step(desk: Desk, member: Member) -> None:
    entries = await member.poll(POLL_S)
    if entries:
        await desk.take(entries)
        await member.commit({entry.partition: entry.offset + 1 for entry in entries})
    await desk.tick()


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
