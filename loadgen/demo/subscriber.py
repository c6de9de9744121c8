"""Listens to the broker as any subscriber would: to the events, and to the scans for the display."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import aiokafka
from aiokafka.errors import KafkaError

from loadgen.demo.status import Status
from pipeline.codec.events import DETECTED, decode_event
from pipeline.codec.scans import decode_scan
from pipeline.errors import BrokerUnavailable
from pipeline.model import Scan
from pipeline.topics import Topics

SCANS = ("change-points", "filtered", "unique")
"""Topics of scans, in the order of the flow."""

_ROOTCAUSE_GROUP = "smidgen-rootcause"
_MAX_BYTES = 16 * 1024 * 1024


class Subscriber:
    """Reads topics from their beginning, without a consumer group, into a Status."""

    def __init__(
        self, broker: str, topics: Topics, status: Status, on_event: Callable[[dict[str, Any]], None]
    ) -> None:
        self._broker = broker
        self._logical = {topics[name].name: name for name in (*SCANS, "regressions", "dead-letters")}
        self._unique = topics["unique"].name
        self._status = status
        self._on_event = on_event

    async def run(self) -> NoReturn:
        """Read for as long as it is not cancelled.

        Raises:
            BrokerUnavailable: the broker does not answer.
        """
        consumer = aiokafka.AIOKafkaConsumer(
            *self._logical,
            bootstrap_servers=self._broker,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=_MAX_BYTES,
            fetch_max_wait_ms=200,
        )
        try:
            await consumer.start()
            async for message in consumer:
                self._take(self._logical[message.topic], message)
        except (KafkaError, OSError) as error:
            raise BrokerUnavailable(f"broker {self._broker}: {error or type(error).__name__}") from None
        finally:
            await consumer.stop()
        raise AssertionError("a consumer has no end")

    async def explained(self) -> bool:
        """Tell whether rootcause has committed every scan that was seen on ``unique``."""
        ends = self._status.unique_offsets
        wanted = {aiokafka.TopicPartition(self._unique, p): end for p, end in ends.items()}
        # Reads the group's offsets without joining it.
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._broker, group_id=_ROOTCAUSE_GROUP, enable_auto_commit=False
        )
        consumer.assign(list(wanted))
        try:
            await consumer.start()
            done = {place: await consumer.committed(place) or 0 for place in wanted}
        except (KafkaError, OSError) as error:
            raise BrokerUnavailable(f"broker {self._broker}: {error or type(error).__name__}") from None
        finally:
            await consumer.stop()
        return all(done[place] >= end for place, end in wanted.items())

    def _take(self, topic: str, message: Any) -> None:
        if topic == "regressions":
            event = decode_event(message.value)
            if event["type"] == DETECTED:  # what became of one later is told as well, and is no finding
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
