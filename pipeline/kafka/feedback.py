"""What people say of regressions, onto the topic ``feedback``: for commands, pages and webhooks."""

from __future__ import annotations

import asyncio

from pipeline.kafka.connection import Broker
from pipeline.kafka.producer import Producer, ProducerOptions
from pipeline.messages.inputs import encode_feedback
from pipeline.model import Outgoing, Silence, Verdict
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics


def feedback_message(said: Silence | Verdict) -> Outgoing:
    """Return what a person said as a message, keyed by its service."""
    return Outgoing("feedback", said.service, encode_feedback(said))


class FeedbackPublisher:
    """Publishes what people say, for programs that stay; it connects when it is first used.

    Calls may overlap. After a failure the next call connects anew.
    """

    def __init__(self, settings: Settings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics
        self._producer: Producer | None = None
        self._lock = asyncio.Lock()

    async def publish(self, *said: Silence | Verdict) -> None:
        """Publish in order and wait until every replica has it.

        Raises:
            ConfigError: the broker refuses us, or we cannot trust it.
            BrokerUnavailable: nothing is known of the outcome; saying it once more changes nothing.
            InvalidMessage: the broker does not take it.
        """
        async with self._lock:
            if self._producer is None:
                options = ProducerOptions(self._settings.idempotent_producer, "smidgen-feedback", linger_ms=0)
                self._producer = await Producer.open(Broker.of(self._settings), self._topics, options)
            try:
                for one in said:
                    await self._producer.send(feedback_message(one))
            except BaseException:
                await self._close()
                raise

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._lock:
            await self._close()

    async def _close(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            await producer.close()
