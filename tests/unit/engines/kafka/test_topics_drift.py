"""Which differences between topics.yaml and a broker are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiokafka.errors import KafkaError, NodeNotReadyError, TopicAuthorizationFailedError

from pipeline.kafka import admin
from pipeline.kafka.admin import retried
from pipeline.kafka.topics import Actual, drift, replication, topic_config
from pipeline.settings.topics import load_topics

TOPICS = load_topics()


def as_created(replicas: int) -> dict[str, Actual]:
    return {t.name: Actual(t.partitions, topic_config(t, replicas), replicas) for t in TOPICS.values()}


@pytest.mark.parametrize(("brokers", "replicas"), [(0, 1), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_what_was_created_differs_in_nothing(brokers: int, replicas: int) -> None:
    assert replication(brokers) == replicas
    assert drift(TOPICS, as_created(replicas), brokers=brokers) == []


@pytest.mark.parametrize(("replicas", "in_sync"), [(1, "1"), (2, "1"), (3, "2"), (5, "2")])
def test_one_broker_may_be_away_and_one_be_lost(replicas: int, in_sync: str) -> None:
    assert topic_config(TOPICS["profiles"], replicas)["min.insync.replicas"] == in_sync


@pytest.mark.parametrize(
    ("found", "reported"),
    [
        pytest.param(Actual(6, {}, 1), ["replication 1 instead of 3"], id="fewer replicas"),
        pytest.param(Actual(6, {}, 5), [], id="more replicas than a new topic gets"),
        pytest.param(
            Actual(6, {"min.insync.replicas": "1"}, 3),
            ["min.insync.replicas is 1 instead of 2"],
            id="one replica is enough",
        ),
        pytest.param(
            Actual(6, {"min.insync.replicas": "2"}, 2),
            ["replication 2 instead of 3", "min.insync.replicas is 2 instead of 1"],
            id="no broker may be away",
        ),
        pytest.param(
            Actual(6, {"unclean.leader.election.enable": "true"}, 3),
            ["unclean.leader.election.enable is true instead of false"],
            id="a replica that lacks messages may lead",
        ),
        pytest.param(
            Actual(6, {"message.timestamp.type": "CreateTime"}, 3),
            ["message.timestamp.type is CreateTime instead of LogAppendTime"],
            id="clocks of agents",
        ),
        pytest.param(Actual(6, {"segment.bytes": "1"}, 3), [], id="settings of no concern"),
    ],
)
def test_a_difference_is_reported(found: Actual, reported: list[str]) -> None:
    actual = {**as_created(3), "windows": found}
    assert drift(TOPICS, actual, brokers=3) == [f"windows: {text}" for text in reported]


def answers(*outcomes: KafkaError | str) -> Callable[[], Awaitable[str]]:
    left = list(outcomes)

    async def call() -> str:
        outcome = left.pop(0)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    return call


def test_a_broker_that_has_just_gone_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "_PAUSE_S", 0.0)
    call = answers(NodeNotReadyError(), NodeNotReadyError(), "topics")
    assert asyncio.run(retried(call)) == "topics"


def test_what_a_person_has_to_settle_is_asked_once() -> None:
    with pytest.raises(TopicAuthorizationFailedError):
        asyncio.run(retried(answers(TopicAuthorizationFailedError("t"), "topics")))
