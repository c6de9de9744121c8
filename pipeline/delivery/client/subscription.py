"""Subscriptions to regression events: one that resumes, and a look at stored events."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import cast

from pipeline.kafka import (
    Broker,
    ConsumerMember,
    Entry,
    TopicPartition,
    offsets_after,
    open_member,
    read_topic,
)
from pipeline.messages.events import decode_event
from pipeline.messages.schema.events import RegressionDetected, RegressionResolved, RegressionUpdated
from pipeline.model.clock import from_iso
from pipeline.model.errors import InvalidMessage
from pipeline.settings.config import Settings, load_settings

log = logging.getLogger(__name__)

Event = RegressionDetected | RegressionUpdated | RegressionResolved
"""An event by its ``type``; of an older version it may lack what docs/events.md marks as new."""

POLL_S = 1.0


async def subscribe(
    group: str,
    *,
    settings: Settings | None = None,
    services: Sequence[str] = ("*",),
    since: float | None = None,
    from_start: bool = False,
) -> AsyncGenerator[Event]:
    """Yield events as they come, those of a service in order, and resume after a restart.

    An event is done when the next one is requested; events that are not done come again. So a killed process
    sees its last event twice: ``SeenIds`` filters it out. Processes of one ``group`` share the partitions,
    and an event goes to one of them.

    Args:
        group: The consumer group. A new one begins with what comes from now on, or ``from_start``.
        settings: How to reach the broker; by default smidgen.yaml and the environment say so.
        services: Globs, one of which a service has to match.
        since: Read again what is kept from this time on (epoch seconds), whatever the group has read: for a
            replay, once.
        from_start: Begin with the oldest event that is kept if the group is new.

    Raises:
        BrokerUnavailable: the broker does not answer any more; a new subscription goes on.
        ConfigError: there is no topic, or the broker refuses us.
    """
    settings = settings or load_settings({})
    topic = settings.read_topics()["regressions"]
    broker = Broker.of(settings)
    async with (
        open_member(broker, [topic], group, from_start=from_start) as member,
        aclosing(_entries(member, since)) as entries,
    ):
        async for entry in entries:
            event = _event(entry, services, since)
            if event is not None:
                yield event
            await member.commit(offsets_after([entry]))


async def _entries(member: ConsumerMember, since: float | None) -> AsyncGenerator[Entry]:
    """Yield the entries of a member; newly assigned partitions resume at the group's offsets."""
    assigned: frozenset[TopicPartition] = frozenset()
    while True:
        entries = await member.poll(POLL_S)
        if member.partitions != assigned:
            first = not assigned
            assigned = member.partitions
            if first and since is not None and assigned:
                await member.rewind(since)
                continue
            await member.begin()
        for entry in entries:
            if TopicPartition(entry.topic, entry.partition) in member.partitions:
                yield entry


async def history(
    since: float, *, settings: Settings | None = None, services: Sequence[str] = ("*",)
) -> AsyncIterator[Event]:
    """Yield the stored events from a time on (epoch seconds), and end; no group is involved.

    Raises:
        BrokerUnavailable: the broker does not answer.
        ConfigError: there is no topic, or the broker refuses us.
    """
    settings = settings or load_settings({})
    topic = settings.read_topics()["regressions"]
    async for entry in read_topic(Broker.of(settings), topic, from_start=True, follow=False):
        event = _event(entry, services, since)
        if event is not None:
            yield event


def _event(entry: Entry, services: Sequence[str], since: float | None) -> Event | None:
    """Return the requested event of a message; messages that are no event are logged."""
    try:
        event = cast(Event, decode_event(entry.value))
        service = str(event["data"]["service"])
        if since is not None and from_iso(event["time"]) < since:
            return None
    except (InvalidMessage, KeyError, TypeError) as error:
        log.warning("partition %d offset %d is no event: %r", entry.partition, entry.offset, error)
        return None
    return event if any(fnmatch.fnmatchcase(service, glob) for glob in services) else None
