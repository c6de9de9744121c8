from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from agents.publishing.message_queue import MessageQueue
from agents.publishing.pending import Tally
from agents.publishing.publisher import BackgroundPublisher
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable, InvalidMessage


class FakeBroker:
    """A broker that can be away, and that signals when something has happened to it."""

    def __init__(self, *, up: bool = True) -> None:
        self.up = up
        self.errors: list[BaseException] = []
        self.silent = False
        self.received: list[str] = []
        self.attempts = 0
        self._changed = threading.Condition()

    async def connect(self) -> FakeBroker:
        self._attempted()
        if not self.up:
            raise BrokerUnavailable("broker test: cannot be reached")
        return self

    async def send(self, message: Outgoing) -> None:
        while self.silent:
            await asyncio.sleep(0.005)
        self._attempted()
        if not self.up:
            raise BrokerUnavailable("broker test: went away")
        if self.errors:
            raise self.errors.pop(0)
        if message.key == "refused":
            raise InvalidMessage("too large")
        with self._changed:
            self.received.append(message.key)
            self._changed.notify_all()

    async def close(self) -> None:
        return

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, timeout=60)

    def _attempted(self) -> None:
        with self._changed:
            self.attempts += 1
            self._changed.notify_all()


def start(broker: FakeBroker, *, max_messages: int = 100) -> BackgroundPublisher:
    publisher = BackgroundPublisher(broker.connect, MessageQueue(max_messages=max_messages, max_bytes=10_000))
    publisher.start()
    return publisher


def offer(publisher: BackgroundPublisher, *names: str) -> None:
    for name in names:
        publisher.offer(Outgoing("profiles", name, b"value"), samples=10)


def test_everything_is_published_in_order() -> None:
    broker = FakeBroker()
    publisher = start(broker)
    offer(publisher, *"abcdef")
    delivery = publisher.close(timeout_s=60)
    assert broker.received == list("abcdef")
    assert (delivery.published, delivery.dropped, delivery.unsent) == (Tally(6, 60), Tally(), Tally())


def test_an_outage_is_survived_and_what_it_cost_is_said(caplog: pytest.LogCaptureFixture) -> None:
    broker = FakeBroker()
    publisher = start(broker, max_messages=3)
    offer(publisher, "first")
    broker.wait(lambda: broker.received == ["first"])
    broker.up = False
    before = broker.attempts
    offer(publisher, "a")
    broker.wait(lambda: broker.attempts >= before + 2)  # "a" is in hand, outside the buffer
    offer(publisher, *"bcdefg")
    broker.up = True
    broker.wait(lambda: broker.received[-1] == "g")
    delivery = publisher.close(timeout_s=60)
    assert broker.received == ["first", "a", "e", "f", "g"]
    assert (delivery.published, delivery.dropped, delivery.unsent) == (Tally(5, 50), Tally(3, 30), Tally())
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 3, warnings
    assert warnings[0].startswith("broker test: went away; sampling goes on")
    assert warnings[1] == "the buffer is full: the oldest messages are being dropped"
    assert warnings[2].endswith("dropped meanwhile: 3 messages (30 samples)")


def test_a_broker_that_is_absent_at_the_start_is_waited_for() -> None:
    broker = FakeBroker(up=False)
    publisher = start(broker)
    offer(publisher, "a", "b")
    broker.wait(lambda: broker.attempts >= 2)
    broker.up = True
    broker.wait(lambda: broker.received == ["a", "b"])
    assert publisher.close(timeout_s=60).published == Tally(2, 20)


def test_closing_takes_no_longer_than_it_may_and_counts_what_is_left() -> None:
    broker = FakeBroker(up=False)
    publisher = start(broker)
    offer(publisher, "a", "b", "c")
    broker.wait(lambda: broker.attempts >= 1)
    delivery = publisher.close(timeout_s=0.05)
    assert (delivery.published, delivery.unsent) == (Tally(), Tally(3, 30))


def test_closing_does_not_wait_for_a_silent_broker() -> None:
    broker = FakeBroker()
    broker.silent = True
    publisher = start(broker)
    offer(publisher, "a")
    assert publisher.close(timeout_s=0.05).unsent == Tally(1, 10)


@pytest.mark.parametrize("error", [TypeError("a bug"), asyncio.CancelledError()], ids=repr)
def test_an_unforeseen_error_neither_ends_the_publisher_nor_loses_a_message(error: BaseException) -> None:
    broker = FakeBroker()
    broker.errors = [error]
    publisher = start(broker)
    offer(publisher, *"abc")
    broker.wait(lambda: broker.received == list("abc"))
    assert publisher.tasks.problem().startswith("publisher: ")
    assert publisher.close(timeout_s=60).published == Tally(3, 30)


def test_a_refused_message_is_counted_and_the_next_one_published() -> None:
    broker = FakeBroker()
    publisher = start(broker)
    offer(publisher, "refused", "b")
    delivery = publisher.close(timeout_s=60)
    assert broker.received == ["b"]
    assert (delivery.published, delivery.dropped) == (Tally(1, 10), Tally(1, 10))
