"""Producers on a broker without idempotence: they continue without it, and log that once."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pipeline.embedded.stack import EmbeddedStack
from pipeline.kafka import Broker, Producer, ProducerOptions, apply_topics, as_broker, producer
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError
from pipeline.settings.topics import load_topics


@pytest.fixture(scope="module")
def broker(embedded: EmbeddedStack) -> Broker:
    asyncio.run(apply_topics(as_broker(embedded.broker), load_topics()))
    return as_broker(embedded.broker)


async def _published(broker: Broker) -> bool:
    opened = await Producer.open(broker, load_topics(), ProducerOptions(idempotent=True))
    try:
        await opened.send(Outgoing("feedback", "shop", b"{}"))
        return opened.idempotent
    finally:
        await opened.close()


def test_it_goes_on_without_and_says_so_once(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    producer._said.clear()
    with caplog.at_level(logging.INFO):
        assert [asyncio.run(_published(broker)) for _ in range(2)] == [False, False]
    said = [record.message for record in caplog.records if "idempotent" in record.message.lower()]
    assert said == [f"broker {broker} takes no idempotent producers: a message may arrive twice"]


def test_a_kafka_that_fails_is_not_used_without(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def of_kafka(_: Broker, **__: float) -> frozenset[int]:
        return frozenset(range(50))

    monkeypatch.setattr(producer, "listed_requests", of_kafka)
    with pytest.raises(ConfigError, match="refuses the producer"):
        asyncio.run(_published(broker))


@pytest.mark.kafka
def test_a_broker_that_has_it_is_used_with_it(kafka_broker: str) -> None:
    asyncio.run(apply_topics(as_broker(kafka_broker), load_topics()))
    assert asyncio.run(_published(as_broker(kafka_broker)))
