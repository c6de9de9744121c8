"""A batch that unpacks to more than fits, or to nothing that a consumer can read: it stops no worker."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer

from pipeline.kafka.decompression import MAX_BATCH_BYTES
from pipeline.messages.measurements import encode_profile
from pipeline.storage.connect import open_store
from tests.e2e.worker_process import (
    START,
    TOPICS,
    BrokerUrl,
    WorkerProcess,
    read_all,
    stored_samples,
    wait_done,
)
from tests.support.builders import build_profile

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]


async def publish_batches(broker: str, values: list[bytes]) -> dict[int, int]:
    """Publish each value as a batch of its own, all of one key; return the end of its partition."""
    producer = AIOKafkaProducer(
        bootstrap_servers=broker, compression_type="zstd", max_request_size=2 * MAX_BATCH_BYTES, linger_ms=0
    )
    await producer.start()
    try:
        for value in values:
            position = await producer.send_and_wait(TOPICS["profiles"].name, value, key=b"shop/h1")
        return {position.partition: position.offset + 1}
    finally:
        await producer.stop()


def test_a_bomb_between_good_messages_is_one_dead_letter(own_broker: BrokerUrl, store_dsn: str) -> None:
    service = f"service-{uuid4().hex[:12]}"
    good = encode_profile(build_profile({"a;b": 3, "a;c": 4}, service=service, start=START))
    bomb = bytes(MAX_BATCH_BYTES + 1)  # some 2 kB as it is sent and kept
    with WorkerProcess(own_broker, store_dsn, "aggregate") as worker:
        ends = asyncio.run(publish_batches(own_broker, [good, bomb, good, bomb, bomb, good]))
        wait_done(own_broker, ends, worker)
        code, log = worker.stop(), worker.log
    assert code == 0, log
    assert "Traceback" not in log
    dead_letters = read_all(own_broker, "dead-letters")
    reasons = [dict(dead_letter.headers)["reason"].decode() for dead_letter in dead_letters]
    assert [dict(dead_letter.headers)["offset"] for dead_letter in dead_letters] == [b"1", b"3", b"4"]
    assert all("bytes of zstd unpack to more than 67108864 bytes" in reason for reason in reasons), reasons
    store = open_store(store_dsn)
    assert stored_samples(store, service) == 3 * 7
    store.close()
