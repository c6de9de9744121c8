"""What Apache Kafka deletes, and what becomes of a worker whose messages are gone."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer

from loadgen.engines.kafka.cluster import KafkaCluster
from pipeline.kafka import apply_topics
from pipeline.kafka.topics import topic_config
from pipeline.messages.measurements import encode_profile
from pipeline.storage.interface import Store
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    read_all,
    stored_samples,
    wait_done,
    wait_until,
)
from tests.kafka.asking import alter, first_offsets, settings

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

DAY_MS = 86_400_000

# Looks for what can be deleted at once and often; the defaults are 30 s and 5 min.
EAGER = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "0",
}


@pytest.fixture
def url(kafka_cluster: Callable[..., KafkaCluster]) -> BrokerUrl:
    started = kafka_cluster(1, properties=EAGER)
    asyncio.run(apply_topics(started.url, TOPICS))
    return BrokerUrl(started.url, idempotent=True)


def shorten(url: str, topic: str, retention_ms: int) -> None:
    alter(url, topic, {**topic_config(TOPICS[topic], 1), "retention.ms": str(retention_ms)})


def test_a_worker_goes_on_where_the_log_begins(
    url: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    """What expired while no worker ran is lost; what is there is counted, once."""
    before, gone, after = (build_load(service_name, 60, seed=seed) for seed in (1, 2, 3))
    ends = publish_load(url, before)
    with WorkerProcess(url, store_dsn, "aggregate") as worker:
        wait_done(url, ends, worker)
        assert worker.stop() == 0
    ends = publish_load(url, gone)
    shorten(url, "profiles", 1000)
    wait_until(lambda: first_offsets(url, "profiles", *ends) == ends, "all of it deleted")
    shorten(url, "profiles", DAY_MS)
    with WorkerProcess(url, store_dsn, "aggregate") as worker:
        worker.wait_ready()
        ends = publish_load(url, after)
        wait_done(url, ends, worker)
        assert worker.stop() == 0
        log = worker.log
    assert stored_samples(shared_store, service_name) == before.samples + after.samples
    reported = re.findall(r"profiles partition \d+: offsets (\d+) to (\d+) were deleted before", log)
    assert sum(int(last) - int(first) + 1 for first, last in reported) == 60
    assert "Traceback" not in log


def test_a_wrong_clock_neither_shortens_nor_lengthens_a_life(
    url: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    """Agents a year behind and three hours ahead: all arrives, and it is deleted by the broker's clock."""
    load = build_load(service_name, 40)
    clocks = [-365 * DAY_MS, 3 * DAY_MS // 24]

    async def send() -> None:
        now_ms = int(time.time() * 1000)
        async with AIOKafkaProducer(bootstrap_servers=url, acks="all") as producer:
            for number, profile in enumerate(load.profiles):
                key = f"{profile.service}/{profile.host}".encode()
                at = now_ms + clocks[number % 2]
                await producer.send_and_wait("profiles", encode_profile(profile), key=key, timestamp_ms=at)

    asyncio.run(send())
    assert settings(url, "profiles")["retention.ms"] == str(DAY_MS)
    time.sleep(2)  # ten looks of the broker for what is too old
    entries = read_all(url, "profiles")
    assert len(entries) == 40
    assert all(abs(entry.timestamp - time.time()) < 600 for entry in entries)
    with WorkerProcess(url, store_dsn, "aggregate") as worker:
        ends = {
            p: max(e.offset for e in entries if e.partition == p) + 1 for p in {e.partition for e in entries}
        }
        wait_done(url, ends, worker)
        assert worker.stop() == 0
    assert_counted(shared_store, load)
    shorten(url, "profiles", 1000)
    wait_until(lambda: read_all(url, "profiles") == [], "all of it deleted")
