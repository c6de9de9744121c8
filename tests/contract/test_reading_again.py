"""Messages that a consumer fetched and dropped: they are read again, whatever the committed offset is."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import cast

import faust
import pytest
from faust.streams import Stream
from faust.transport.consumer import Consumer

from pipeline.kafka import Packet, Producer, ProducerOptions, apply_topics, as_broker
from pipeline.settings.config import Settings
from pipeline.worker.app import create_app
from tests.e2e.worker_process import TOPICS, fresh_broker

MESSAGES = 5


@pytest.mark.parametrize("committed", [0, 2])
def test_a_consumer_goes_back_over_what_it_had_fetched(committed: int) -> None:
    with fresh_broker() as broker:
        asyncio.run(asyncio.wait_for(read_twice(broker, committed), 240))


async def read_twice(broker: str, committed: int) -> None:
    """Read a partition, drop it all as at a rebalance, and read it from where it was committed."""
    await apply_topics(broker, TOPICS)
    producer = await Producer.open(as_broker(broker), TOPICS, ProducerOptions(idempotent=False))
    await producer.send_packets([Packet("profiles", b"shop/h1", b"%d" % n) for n in range(MESSAGES)])
    await producer.close()

    async def starts_of(assigned: Collection[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
        return {}

    failures: list[BaseException] = []
    app = create_app(Settings(broker=broker), "reading-again", starts_of, failures.append)
    seen: list[int] = []
    arrived = asyncio.Event()

    async def collect(untyped: faust.StreamT[bytes]) -> None:
        stream = cast(Stream[bytes], untyped)
        async for event in stream.noack().events():
            seen.append(event.message.offset)
            if len(seen) <= committed:
                event.ack()
            if event.message.offset == MESSAGES - 1:
                arrived.set()

    channel = app.topic("profiles", value_serializer="raw", key_serializer="raw", internal=False)
    app.agent(channel)(collect)
    await app.start()
    try:
        await arrived.wait()
        consumer = cast(Consumer, app.consumer)
        await consumer.commit()
        seen.clear()
        arrived.clear()
        consumer.stop_flow()
        await consumer.perform_seek()
        consumer.resume_flow()
        await arrived.wait()
        assert seen == list(range(committed, MESSAGES))
        assert not failures
    finally:
        await app.stop()
