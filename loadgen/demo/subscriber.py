"""Subscriber of the demo: events, as any subscriber reads them, and scans for the display."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from loadgen.demo.status import Status
from pipeline.kafka import Entry, TopicPartition, admin_client, committed_offsets, read_topics
from pipeline.messages.events import DETECTED, decode_event
from pipeline.messages.scans import decode_scan
from pipeline.model import Scan
from pipeline.settings.topics import Topics

SCANS = ("change-points", "filtered", "unique")
"""Topics of scans, in the order of the flow."""


class Subscriber:
    """Reader of topics from their beginning, without a consumer group, into a Status."""

    def __init__(
        self, broker: str, topics: Topics, status: Status, on_event: Callable[[dict[str, Any]], None]
    ) -> None:
        self._broker = broker
        names = (*SCANS, "regressions", "dead-letters")
        self._read = [topics[name] for name in names]
        self._logical = {topics[name].name: name for name in names}
        self._unique = topics["unique"].name
        self._group = topics.group("rootcause")
        self._status = status
        self._on_event = on_event

    async def run(self) -> NoReturn:
        """Read until cancelled.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        async for entry in read_topics(self._broker, self._read, from_start=True, follow=True):
            self._take(self._logical[entry.topic], entry)
        raise AssertionError("a broker's log has no end")

    async def explained(self) -> bool:
        """Return whether rootcause has committed every scan that was seen on ``unique``."""
        ends = {TopicPartition(self._unique, p): end for p, end in self._status.unique_offsets.items()}
        async with admin_client(self._broker) as client:
            done = await committed_offsets(client, self._group, list(ends))
        return all(done.get(partition, 0) >= end for partition, end in ends.items())

    def _take(self, topic: str, message: Entry) -> None:
        if topic == "regressions":
            event = decode_event(message.value)
            if event["type"] == DETECTED:  # later updates of an event are no findings
                self._status.events.append(event)
                self._on_event(event)
        elif topic == "dead-letters":
            headers = dict(message.headers)
            reason = headers.get("reason", b"no reason").decode(errors="replace")
            self._status.dead_letters.append(
                f"{headers.get('topic', b'').decode(errors='replace')}: {reason}"
            )
        else:
            if topic == "unique":
                self._status.unique_offsets[message.partition] = message.offset + 1
            self._count(topic, decode_scan(message.value))

    def _count(self, topic: str, scan: Scan) -> None:
        status = self._status
        if scan.part == 0:
            status.scans[topic] = status.scans.get(topic, 0) + 1
        status.candidates[topic] = status.candidates.get(topic, 0) + len(scan.candidates)
        if scan.part == scan.parts - 1:
            status.scanned_until[topic] = max(status.scanned_until.get(topic, 0.0), scan.end)
        if topic == "unique" and (scan.candidates or scan.dropped):
            status.ledger.append(scan)
