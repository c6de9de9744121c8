"""Publishing to Apache Kafka: nothing twice when confirmations are lost, and what is too large."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from agents.publishing.broker import publish_once
from loadgen.engines.kafka.cluster import KafkaCluster
from pipeline.kafka import Publisher, apply_topics
from pipeline.model import Outgoing
from pipeline.settings.config import Settings
from tests.e2e.worker_process import TOPICS, read_all
from tests.kafka.proxy import LosingProxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Send = Callable[[str, Sequence[Outgoing], bool], None]


def as_worker(broker: str, messages: Sequence[Outgoing], idempotent: bool) -> None:
    async def send() -> None:
        publisher = Publisher(broker, TOPICS, idempotent=idempotent)
        await publisher.start()
        try:
            for message in messages:
                assert await publisher.publish([message], asyncio.Event())
        finally:
            await publisher.stop()

    asyncio.run(send())


def as_agent(broker: str, messages: Sequence[Outgoing], idempotent: bool) -> None:
    publish_once(messages, Settings(broker=broker, idempotent_producer=idempotent), TOPICS)


@pytest.mark.parametrize("send", [as_worker, as_agent])
@pytest.mark.parametrize("idempotent", [True, pytest.param(False, marks=pytest.mark.kafka_all)])
def test_a_lost_confirmation_doubles_nothing(
    kafka_cluster: Callable[..., KafkaCluster], send: Send, idempotent: bool
) -> None:
    """Without idempotence it does, which shows that confirmations were lost indeed."""
    messages = [Outgoing("regressions", "shop", f"{number}".encode()) for number in range(30)]
    with LosingProxy(lambda number: number in (2, 3, 11, 20)) as proxy:
        advertised = {"advertised.listeners": f"INTERNAL://127.0.0.1:{proxy.port}"}
        host, port = kafka_cluster(1, properties=advertised).url.split(":")
        proxy.upstream = (host, int(port))
        url = f"127.0.0.1:{proxy.port}"
        asyncio.run(apply_topics(url, TOPICS))
        send(url, messages, idempotent)
        assert proxy.lost >= 3
        kept = [int(entry.value or b"") for entry in read_all(url, "regressions")]
    if idempotent:
        assert kept == list(range(30))
    else:
        assert len(kept) > 30
        assert sorted(set(kept)) == list(range(30))
