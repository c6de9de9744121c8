"""Messages larger than a topic of Apache Kafka takes: refused with a clear word, and nothing stands still."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence

import pytest

from agents.publishing.broker import connect, publish_once
from agents.publishing.message_queue import MessageQueue
from agents.publishing.pending import Tally
from agents.publishing.publisher import BackgroundPublisher
from pipeline.kafka.topics import topic_config
from pipeline.model import Outgoing, Record
from pipeline.model.errors import InvalidMessage
from pipeline.settings.config import Settings
from tests.e2e.test_worker_lifecycle import Relay, serve, stop_this_process, text
from tests.e2e.worker_process import TOPICS, BrokerUrl, publish, read_all
from tests.kafka.asking import alter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LIMIT_BYTES = 100_000


@pytest.fixture
def url(kafka_broker: BrokerUrl) -> BrokerUrl:
    """Profiles and windows take less than topics.yaml says: someone has altered them."""
    for topic in ("profiles", "windows"):
        changed = {**topic_config(TOPICS[topic], 1), "max.message.bytes": str(LIMIT_BYTES)}
        alter(kafka_broker, topic, changed)
    return kafka_broker


def incompressible(seed: int) -> str:
    return random.Random(seed).randbytes(LIMIT_BYTES).hex()


def test_an_agent_drops_what_is_too_large_and_goes_on(
    url: BrokerUrl, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(broker=url)
    publisher = BackgroundPublisher(
        lambda: connect(settings, TOPICS), MessageQueue(max_messages=20, max_bytes=10_000_000)
    )
    publisher.start()
    with caplog.at_level(logging.WARNING, "agents"):
        for value in (b"1", incompressible(1).encode(), b"2", incompressible(2).encode(), b"3"):
            publisher.offer(Outgoing("profiles", "s/h", value), samples=7)
        delivery = publisher.close(timeout_s=240)
    assert (delivery.published, delivery.dropped, delivery.unsent) == (Tally(3, 21), Tally(2, 14), Tally())
    assert caplog.text.count("a message with 7 samples was refused: topic profiles: ") == 2
    assert "sampling goes on" not in caplog.text, "the broker was never away"
    assert [entry.value for entry in read_all(url, "profiles")] == [b"1", b"2", b"3"]


def test_a_command_says_what_was_refused(url: BrokerUrl) -> None:
    message = Outgoing("profiles", "s/h", incompressible(1).encode())
    with pytest.raises(InvalidMessage, match="topic profiles: .*MessageSizeTooLarge"):
        publish_once([message], Settings(broker=url), TOPICS)


def test_what_a_stage_made_too_large_goes_to_dead_letters(url: BrokerUrl) -> None:
    """It is repeated no more than once, and what stood beside it arrives."""
    sent = ["a", incompressible(3), "b", incompressible(4), "c"]

    def stop(batch: Sequence[Record]) -> None:
        if len(relay.seen) + len(batch) == len(sent):
            stop_this_process()

    relay = Relay("relay", {"profiles": text}, output="windows", act=stop)
    # They arrive compressed in one batch each, far below the limit: hexadecimal digits are half as large.
    alter(url, "profiles", topic_config(TOPICS["profiles"], 1))
    publish(url, [(b"k", value.encode()) for value in sent])
    assert serve(url, relay) == 0
    arrived = [(entry.value or b"").decode() for entry in read_all(url, "windows")]
    assert set(arrived) == {"a", "b", "c"}
    assert len(arrived) <= 6
    dead_letters = read_all(url, "dead-letters")
    assert sorted((entry.value or b"").decode() for entry in dead_letters) == sorted([sent[1], sent[3]])
    for entry in dead_letters:
        headers = {name: value.decode() for name, value in entry.headers}
        assert headers["reason"] == f"{2 * LIMIT_BYTES} bytes from relay are too many for windows"
        assert (headers["topic"], headers["offset"], headers["stage"]) == ("windows", "-1", "relay")
