"""The publisher of a worker over a producer that fails as ordered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from pipeline.kafka import MessagesRefused, Packet, Producer, Publisher, partition_of
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.topics import load_topics

TOPICS = load_topics()
LARGEST = 5
"""Most bytes that the faked broker takes."""


class FakeProducer:
    """Refuses a whole call if one of its messages is too large, as a broker does with a batch."""

    def __init__(self, log: list[str], failures: list[Exception]) -> None:
        self.log = log
        self.failures = failures
        self.partitions: list[int | None] = []

    async def send_packets(self, packets: Sequence[Packet]) -> list[int]:
        if self.failures:
            raise self.failures.pop(0)
        if any(len(packet.value) > LARGEST for packet in packets):
            raise MessagesRefused(dict.fromkeys(range(len(packets)), "too large"))
        self.partitions += [packet.partition for packet in packets]
        self.log += [packet.value.decode() for packet in packets]
        return list(range(len(packets)))

    async def close(self) -> None:
        self.log.append("closed")


class Broken(FakeProducer):
    async def send_packets(self, packets: Sequence[Packet]) -> list[int]:
        await asyncio.sleep(3600)
        return []


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Puts a faked producer in the place of the real one; returns what happened."""

    def use(*failures: Exception, kind: type[FakeProducer] = FakeProducer) -> list[str]:
        log: list[str] = []
        left = list(failures)

        async def open_fake(*_: Any, **__: Any) -> FakeProducer:
            log.append("opened")
            return kind(log, left)

        monkeypatch.setattr(Producer, "open", open_fake)
        return log

    return use


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def publisher() -> Publisher:
    return Publisher("127.0.0.1:9", TOPICS, idempotent=True, first_retry_s=0.001)


def messages(*values: str) -> list[Outgoing]:
    return [Outgoing("windows", "shop", value.encode()) for value in values]


def test_what_failed_is_repeated_over_a_new_connection(opened: Callable[..., list[str]]) -> None:
    log = opened(BrokerUnavailable("away"), ConfigError("locked out"))
    assert drive(publisher().publish(messages("a", "b"), asyncio.Event()))
    assert log == ["opened", "closed", "opened", "closed", "opened", "a", "b"]


def test_what_is_too_large_is_found_alone_and_the_rest_is_published(
    opened: Callable[..., list[str]],
) -> None:
    log = opened()
    with pytest.raises(MessagesRefused) as caught:
        drive(publisher().publish(messages("a", "much too large", "b", "too large"), asyncio.Event()))
    assert caught.value.reasons == {1: "too large", 3: "too large"}
    assert [entry for entry in log if entry not in ("opened", "closed")] == ["a", "b"]


def test_one_message_that_is_too_large(opened: Callable[..., list[str]]) -> None:
    opened()
    with pytest.raises(MessagesRefused) as caught:
        drive(publisher().publish(messages("much too large"), asyncio.Event()))
    assert caught.value.reasons == {0: "too large"}


def test_it_gives_up_between_attempts(opened: Callable[..., list[str]]) -> None:
    log = opened(*(BrokerUnavailable("away") for _ in range(1000)))

    async def scenario() -> bool:
        give_up = asyncio.Event()
        task = asyncio.ensure_future(publisher().publish(messages("a"), give_up))
        while len(log) < 4:
            await asyncio.sleep(0.001)
        give_up.set()
        return await task

    assert drive(scenario()) is False
    assert "a" not in log


def test_it_gives_up_an_attempt_that_hangs(
    opened: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.kafka.publisher.FINISH_S", 0.01)
    opened(kind=Broken)

    async def scenario() -> bool:
        give_up = asyncio.Event()
        give_up.set()
        return await publisher().publish(messages("a"), give_up)

    assert drive(scenario()) is False


def test_partitions_are_those_of_topics_yaml() -> None:
    keyed, plain = Packet("windows", b"shop", b"a"), Packet("windows", None, b"b", partition=8)
    assert partition_of(keyed, TOPICS) == partition_of(Packet("windows", b"shop", b"", partition=3), TOPICS)
    assert partition_of(plain, TOPICS) == 8 % TOPICS["windows"].partitions
