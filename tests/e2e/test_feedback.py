"""Verdicts over a real broker: published by the one publisher, read as they were said."""

from __future__ import annotations

import asyncio

from pipeline.kafka.feedback import FeedbackPublisher
from pipeline.messages.inputs import decode_feedback
from pipeline.model import Silence, Verdict
from pipeline.settings.config import load_settings
from tests.e2e.worker_process import TOPICS, BrokerUrl, read_all

T0 = 1_790_000_000.0


def test_what_several_people_say_at_once_arrives(own_broker: BrokerUrl) -> None:
    said = [Verdict("e1", "shop", "true", T0 + number, f"person-{number}") for number in range(5)]
    mute = Silence("m1", "shop", "muted", T0, T0, T0 + 60, owner="ada")
    settings = load_settings({"broker": own_broker, "idempotent_producer": own_broker.idempotent})

    async def publish() -> None:
        publisher = FeedbackPublisher(settings, TOPICS)
        await publisher.publish(said[0], mute)
        await asyncio.gather(*(publisher.publish(one) for one in said[1:]))
        await publisher.close()
        await publisher.publish(said[0])  # connects anew
        await publisher.close()

    asyncio.run(publish())
    found = [decode_feedback(entry.value) for entry in read_all(own_broker, "feedback")]
    assert {one for one in found if isinstance(one, Verdict)} == set(said)
    assert found.count(mute) == 1
