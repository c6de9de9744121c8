"""What a stage's consumer notes of what it fetched, and what it hands out across assignments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState
from faust.transport.drivers import aiokafka
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from pipeline.worker.consumer import FetchedOffsets, StageConsumer, Turns, _ConsumerThread

HERE, THERE = TP("profiles", 7), TP("profiles", 8)


@given(
    st.lists(st.sets(st.integers(0, 30), min_size=1).map(sorted), max_size=5),
    st.integers(0, 30),
    st.integers(1, 10),
)
def test_what_came_is_known_and_nothing_else(fetches: list[list[int]], begin: int, length: int) -> None:
    fetched = FetchedOffsets()
    for offsets in fetches:
        fetched.add(HERE, offsets)
    span = set(range(begin, begin + length))
    assert fetched.any_within(HERE, begin, begin + length) == any(span & set(one) for one in fetches)
    assert not fetched.any_within(THERE, begin, begin + length)


def test_runs_without_a_gap_are_one_and_old_ones_are_forgotten() -> None:
    fetched = FetchedOffsets()
    for first in range(0, 3000, 3):
        fetched.add(HERE, [first, first + 1, first + 2])
    assert len(fetched._runs[HERE]) == 1
    for offset in range(4000, 6000, 2):  # the marks of transactions lie between
        fetched.add(HERE, [offset])
        assert not fetched.any_within(HERE, offset + 1, offset + 2)
    assert len(fetched._runs[HERE]) <= 1
    fetched.add(THERE, [0])
    fetched.keep([THERE])
    assert list(fetched._runs) == [THERE]


def consumer(number: int = 1) -> Any:
    """A consumer without a broker."""
    made = cast(Any, StageConsumer.__new__(StageConsumer))
    made.app = SimpleNamespace(consumer_generation_id=number)
    made._read_offset, made._committed_offset = {}, {HERE: 20, THERE: None}
    return made


@pytest.mark.parametrize(("partition", "read"), [(HERE, 20), (THERE, None)])
def test_what_was_handed_over_across_an_assignment_is_read_again(
    monkeypatch: pytest.MonkeyPatch, partition: TP, read: int | None
) -> None:
    """Faust waits for a commit with a message in hand, and notes it as read when that is over."""
    made = consumer()

    async def getmany(_self: Any, _timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        for offset in (40, 41, 42):
            number = made.app.consumer_generation_id
            yield partition, SimpleNamespace(offset=offset, generation_id=number)

    monkeypatch.setattr(aiokafka.Consumer, "getmany", getmany)

    async def drain() -> list[int]:
        handed_over = []
        async for tp, message in made.getmany(1.0):
            if message.offset == 41:
                made.app.consumer_generation_id += 1  # meanwhile it was all assigned anew, and sought back
            made._read_offset[tp] = message.offset
            handed_over.append(message.offset)
        return handed_over

    assert asyncio.run(drain()) == [40, 41]
    assert made._read_offset[partition] == read


def test_partitions_without_a_commit_are_sought_to_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    sought: list[TP] = []

    async def committed(_self: Any) -> dict[TP, int | None]:
        return {HERE: 20, THERE: None}

    async def beginning(*partitions: TP) -> None:
        sought.extend(partitions)

    monkeypatch.setattr(aiokafka.Consumer, "seek_to_committed", committed)
    made = consumer()
    made._thread = SimpleNamespace(seek_to_beginning=beginning)
    assert asyncio.run(made.seek_to_committed()) == {HERE: 20, THERE: None}
    assert sought == [THERE]


def test_every_assignment_has_a_number_of_its_own() -> None:
    """Kafka gives a static member that joins again the generation that it had."""
    passed: list[tuple[set[TP], int]] = []

    async def assigned(partitions: set[TP], number: int) -> None:
        passed.append((partitions, number))

    thread = SimpleNamespace(app=SimpleNamespace(consumer_generation_id=0), on_partitions_assigned=assigned)
    listener = StageConsumer.RebalanceListener(cast(Any, thread))
    for _ in range(2):
        asyncio.run(listener.on_partitions_assigned([HERE]))
    assert passed == [({HERE}, 1), ({HERE}, 2)]


def test_a_partition_hands_out_one_batch_and_then_it_is_the_next_ones_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, other, paused = (TP("profiles", number) for number in (4, 2, 9))
    asked: list[tuple[set[TP], float | None, int | None]] = []

    async def fetch(
        _self: Any, _consumer: Any, partitions: set[TP], timeout: float | None, max_records: int | None
    ) -> dict[TP, list[Any]]:
        asked.append((partitions, timeout, max_records))
        return {first: [SimpleNamespace(offset=len(asked))]}

    monkeypatch.setattr(aiokafka.AIOKafkaConsumerThread, "_fetch_records", fetch)
    ready: dict[TP, None] = {}
    thread = cast(Any, _ConsumerThread.__new__(_ConsumerThread))
    thread.turns, thread.consumer = Turns(), SimpleNamespace(fetched=FetchedOffsets())
    client = cast(Any, SimpleNamespace(_fetcher=SimpleNamespace(_records=ready)))
    both = (paused, first, other)
    for there in (both, both, both, both, (paused, other), both, (paused,)):
        ready.clear()
        ready.update(dict.fromkeys(there))
        asyncio.run(thread._fetch_records(client, {first, other}, 1.0, 500))
    assert asked == [
        *(({turn}, 0, 500) for turn in (first, other, first, other, other, first)),
        ({first, other}, 1.0, 1),
    ]
    assert thread.consumer.fetched.any_within(first, 1, 2)


def test_only_a_partition_with_an_offset_is_looked_at_for_being_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[TP] = []
    parent = aiokafka.AIOKafkaConsumerThread
    monkeypatch.setattr(parent, "verify_event_path", lambda _self, _now, partition: looked.append(partition))

    async def look() -> list[int]:
        subscription = SubscriptionState()
        thread = cast(Any, _ConsumerThread.__new__(_ConsumerThread))
        thread._consumer = SimpleNamespace(_subscription=subscription)
        counts = []
        for step in (
            lambda: None,
            lambda: subscription.subscribe({"profiles"}),
            lambda: subscription.assign_from_subscribed([TopicPartition(*HERE)]),
            lambda: subscription.seek(TopicPartition(*HERE), 3),
        ):
            step()
            thread.verify_event_path(0.0, HERE)
            thread.verify_event_path(0.0, THERE)
            counts.append(len(looked))
        return counts

    assert asyncio.run(look()) == [0, 0, 0, 1]
    assert looked == [HERE]
