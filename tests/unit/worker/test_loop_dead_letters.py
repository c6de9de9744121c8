"""What the worker loop sets aside as dead letters, when it says so, and when there are too many."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from pipeline.model import Outgoing
from pipeline.model.errors import InvalidMessage
from pipeline.worker import loop
from pipeline.worker.dlq.limit import LimitConfig, TooManyDeadLetters
from tests.unit.worker.faked_loop import TOPICS, Bench, FakeEvent, drive


def test_bad_messages_become_dead_letters_before_anything_is_acknowledged() -> None:
    bench = Bench()
    drive(bench.run([bench.event(0), bench.event(1, b""), bench.event(2, None), bench.event(3)]))
    assert bench.log[1:] == [
        "dead letters 2",
        "handle [0, 3]",
        "settled",
        "ack 0/0",
        "ack 0/1",
        "ack 0/2",
        "ack 0/3",
    ]
    headers = dict(bench.publisher.packets[0].headers)
    assert headers == {
        "topic": b"profiles",
        "partition": b"0",
        "offset": b"1",
        "reason": b"empty message",
        "stage": b"fake",
        "time": b"2023-11-14T22:13:20.000Z",
    }
    assert bench.publisher.packets[0].key == b"k"
    assert dict(bench.publisher.packets[1].headers)["null"] == b"value"


def test_a_batch_of_nothing_but_bad_messages_never_reaches_the_stage() -> None:
    bench = Bench()
    drive(bench.run([bench.event(0, b"")]))
    assert bench.log[1:] == ["dead letters 1", "ack 0/0"]


def test_what_has_dead_letters_is_committed_at_once() -> None:
    bench = Bench()
    drive(bench.run([bench.event(0)]))
    assert bench.membership.commits == 0
    drive(bench.run([bench.event(1, b""), bench.event(2)]))
    assert bench.membership.commits == 1
    assert bench.log[-1] == "ack 0/2"


def test_a_commit_that_fails_or_hangs_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse() -> None:
        raise KafkaError("not now")

    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(loop, "COMMIT_S", 0.01)
    for on_commit in (refuse, hang):
        bench = Bench()
        bench.membership.on_commit = on_commit
        drive(bench.run([bench.event(0, b"")], [bench.event(1)]))
        assert bench.failures == []
        assert bench.log[-1] == "ack 0/1"
    assert [record.message for record in caplog.records if "committing" in record.message] == [
        "fake: committing: KafkaError: not now"
    ]


def test_a_message_over_its_topics_size_is_not_even_decoded() -> None:
    bench = Bench(inputs={"changes": lambda value: pytest.fail("decoded")})
    huge = bytes(TOPICS["changes"].max_message_bytes + 1)
    drive(bench.run([bench.event(0, huge, topic="changes")], topic="changes"))
    assert (
        "1048577 bytes, more than the 1048576" in dict(bench.publisher.packets[0].headers)["reason"].decode()
    )


def test_nesting_beyond_the_recursion_limit_is_a_bad_message() -> None:
    def deep(value: bytes | None) -> Any:
        return deep(value)

    bench = Bench(inputs={"profiles": deep})
    drive(bench.run([bench.event(0)]))
    assert dict(bench.publisher.packets[0].headers)["reason"] == b"nested too deeply"
    assert not bench.failures


def test_a_stages_message_that_is_too_large_is_set_aside_and_the_rest_goes_on() -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "a", b"{}"), Outgoing("windows", "b", bytes(2000))]
    drive(bench.run([bench.event(0)]))
    assert bench.log[2:] == ["dead letters 1", "publish 1", "settled", "ack 0/0"]
    assert dict(bench.publisher.packets[0].headers)["topic"] == b"windows"


def test_a_broken_deploy_stops_it_with_one_line_and_leaves_the_rest_on_the_topic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(limit=LimitConfig(share=0.5, least=4, after_s=60.0, sources=2))

    def batch(first: int) -> list[FakeEvent]:
        return [bench.event(first, b"", key=b"shop/h"), bench.event(first + 1, b"", key=b"cart/h")]

    async def scenario() -> None:
        for number in range(4):
            await bench.run(batch(2 * number))
            bench.now += 30.0

    with caplog.at_level(logging.ERROR):
        drive(scenario())
    assert [line for line in bench.log if line.startswith("ack")] == [f"ack 0/{n}" for n in range(4)]
    assert len(bench.publisher.packets) == 4, "what is not acknowledged is no dead letter either"
    assert [type(failure) for failure in bench.failures] == [TooManyDeadLetters]
    (record,) = caplog.records
    assert record.getMessage() == (
        "fake: stopping, most of profiles is bad: 2 of 2 sources (shop, cart) send nothing usable: "
        "6 messages refused; the last one: empty message. Nothing of this batch is acknowledged; see "
        "dead_letter_limit"
    )
    assert record.exc_info is None
    assert bench.loop.bad_sources == {"profiles": 2}


def test_a_flood_from_one_source_is_dead_letters_and_no_more() -> None:
    bench = Bench(limit=LimitConfig(share=0.5, least=4, after_s=60.0, sources=2))

    async def scenario() -> None:
        for number in range(20):
            bad = [bench.event(10 * number + n, b"", key=b"hostile/h") for n in range(9)]
            await bench.run([*bad, bench.event(10 * number + 9, b"x", key=b"shop/h")])
            bench.now += 30.0

    drive(scenario())
    assert not bench.failures
    assert len(bench.publisher.packets) == 180
    assert len([line for line in bench.log if line.startswith("ack")]) == 200


def test_dead_letters_are_reported_once_in_a_while_with_their_position(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(value: bytes | None) -> str:
        raise InvalidMessage("name: odd line\nbreak")

    bench = Bench(inputs={"profiles": refuse})

    async def scenario() -> None:
        for number in range(4):
            await bench.run([bench.event(number, key=b"shop/h"), bench.event(10 + number, key=b"shop/h")])
            bench.now += 25.0

    with caplog.at_level(logging.WARNING):
        drive(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        "fake: 2 dead letters; the last one: profiles partition 0 offset 10: name: odd line\ufffdbreak",
        "fake: 6 dead letters; the last one: profiles partition 0 offset 13: name: odd line\ufffdbreak",
    ]
    assert (
        caplog.records[1].__dict__.items()
        >= {
            **{"stage": "fake", "service": "shop", "topic": "profiles", "partition": 0, "offset": 13},
            "dead_letters": 6,
        }.items()
    )
