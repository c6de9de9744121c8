"""Topics that a worker waits for: a roll may begin before new topics are made."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.embedded.broker import EmbeddedBroker
from pipeline.kafka import apply_topics
from pipeline.kafka.topics import require_topics
from pipeline.model.errors import ConfigError
from pipeline.settings.topics import Topics
from tests.e2e.worker_process import TOPICS

pytestmark = pytest.mark.e2e

FORMER = Topics({name: topic for name, topic in TOPICS.items() if not name.startswith("trial")})


def test_a_worker_needs_the_topics_of_its_stages_alone() -> None:
    with EmbeddedBroker() as broker:
        asyncio.run(apply_topics(broker.url, FORMER))
        asyncio.run(require_topics(broker.url, TOPICS, TOPICS.touched_by(["dedup"])))
        with pytest.raises(ConfigError, match="topic trials is missing"):
            asyncio.run(require_topics(broker.url, TOPICS, TOPICS.touched_by(["dedup", "judge"])))


@pytest.mark.parametrize(
    ("stages", "touched"),
    [
        (["dedup"], ["filtered", "unique", "dead-letters"]),
        (["judge"], ["trials", "trial-verdicts", "dead-letters"]),
        (["filter", "dedup"], ["change-points", "filtered", "unique", "dead-letters"]),
        ([], []),
    ],
)
def test_topics_of_a_stage_are_those_it_reads_and_writes(stages: list[str], touched: list[str]) -> None:
    assert list(TOPICS.touched_by(stages)) == touched
