"""The worker loop over a stage, a publisher and a consumer group that do as they are told."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pipeline.codec.scans import decode_scan, encode_scan, split_scan
from pipeline.errors import InvalidMessage, StoreUnavailable
from pipeline.model import Outgoing, Record
from pipeline.runtime.deadletters import DeadLetters
from pipeline.runtime.loop import StageLoop
from pipeline.runtime.publisher import Packet
from pipeline.runtime.refusals import Limit, TooManyDeadLetters
from pipeline.stages.base import Decoder
from pipeline.telemetry import Telemetry
from pipeline.topics import Topics, load_topics
from tests.unit.test_runtime_assembler import scan

TOPICS = load_topics()


def decode_text(value: bytes | None) -> str:
    if not value:
        raise InvalidMessage("empty message")
    return value.decode()


@dataclass
class FakeMessage:
    offset: int
    value: bytes | None
    topic: str = "profiles"
    partition: int = 0
    key: bytes | None = b"k"
    generation_id: int = 1
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class FakeEvent:
    message: FakeMessage
    log: list[str]

    def ack(self) -> bool:
        self.log.append(f"ack {self.message.partition}/{self.message.offset}")
        return True


@dataclass
class FakeStage:
    """Writes down what happens to it; ``outcomes`` says what each call of handle does."""

    log: list[str]
    inputs: Mapping[str, Decoder] = field(default_factory=lambda: {"profiles": decode_text})
    outcomes: list[Callable[[], object]] = field(default_factory=list)
    settlings: list[Callable[[], object]] = field(default_factory=list)
    outgoing: list[Outgoing] = field(default_factory=list)
    name: str = "fake"
    threads: set[int] = field(default_factory=set)

    def assigned(self, topic: str, partitions: Sequence[int]) -> None:
        self.log.append(f"assigned {topic} {list(partitions)}")

    def handle(self, batch: Sequence[Record]) -> list[Outgoing]:
        self.threads.add(threading.get_ident())
        self.log.append(f"handle {[record.offset for record in batch]}")
        if self.outcomes:
            self.outcomes.pop(0)()
        return self.outgoing

    def settled(self) -> None:
        if self.settlings:
            self.settlings.pop(0)()
        self.log.append("settled")


@dataclass
class FakePublisher:
    log: list[str]
    packets: list[Packet] = field(default_factory=list)
    blocked: bool = False
    largest: int = 1000

    def fits(self, message: Outgoing) -> bool:
        return len(message.value) <= self.largest

    async def publish(self, messages: Sequence[Outgoing], give_up: asyncio.Event) -> bool:
        self.log.append(f"publish {len(messages)}")
        if self.blocked:
            await give_up.wait()
            return False
        return True

    async def publish_packets(self, packets: Sequence[Packet], give_up: asyncio.Event) -> bool:
        self.log.append(f"dead letters {len(packets)}")
        self.packets += packets
        return True


@dataclass
class FakeMembership:
    number: int = 1

    def generation(self) -> int:
        return self.number

    def partitions(self, topic: str) -> list[int]:
        return [0, 1]

    def committed(self, topic: str) -> dict[int, int]:
        return {}


class Bench:
    """A loop with everything around it faked; ``log`` is the order in which things happened."""

    def __init__(
        self,
        *,
        inputs: Mapping[str, Decoder] | None = None,
        topics: Topics = TOPICS,
        limit: Limit = Limit(),  # noqa: B008 - frozen
    ) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self.failures: list[BaseException] = []
        self.stage = FakeStage(self.log)
        if inputs is not None:
            self.stage.inputs = inputs
        self.publisher = FakePublisher(self.log)
        self.membership = FakeMembership()
        self.telemetry = Telemetry("fake")
        self.loop = StageLoop(
            self.stage,
            topics,
            self.membership,
            self.publisher,
            DeadLetters(self.publisher, topics, "fake", lambda: 1_700_000_000.0),
            self.telemetry,
            on_failure=self.failures.append,
            limit=limit,
            first_retry_s=0.001,
            monotonic=lambda: self.now,
        )

    def event(self, offset: int, value: bytes | None = b"x", **place: Any) -> FakeEvent:
        return FakeEvent(FakeMessage(offset, value, **place), self.log)

    async def run(self, *batches: Sequence[FakeEvent], topic: str = "profiles") -> None:
        async def source() -> AsyncIterator[Sequence[FakeEvent]]:
            for batch in batches:
                yield batch

        await self.loop.run(topic, source())


def drive(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 10))


def unavailable() -> None:
    raise StoreUnavailable("gone for a moment")


def bug() -> None:
    raise KeyError("a bug")


def test_acknowledges_after_settling_after_publishing_after_handling() -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    drive(bench.run([bench.event(0), bench.event(1)]))
    assert bench.log == [
        "assigned profiles [0, 1]",
        "handle [0, 1]",
        "publish 1",
        "settled",
        "ack 0/0",
        "ack 0/1",
    ]


def test_handles_off_the_event_loop() -> None:
    bench = Bench()
    drive(bench.run([bench.event(0)]))
    assert bench.stage.threads
    assert threading.get_ident() not in bench.stage.threads


def test_an_unavailable_store_is_tried_again_with_the_same_batch() -> None:
    bench = Bench()
    bench.stage.outcomes = [unavailable, unavailable]
    drive(bench.run([bench.event(4)]))
    assert bench.log.count("handle [4]") == 3
    assert bench.log[-1] == "ack 0/4"
    assert not bench.failures


def test_settling_is_tried_again_without_handling_or_publishing_again() -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    bench.stage.settlings = [unavailable]
    drive(bench.run([bench.event(4)]))
    assert bench.log[1:] == ["handle [4]", "publish 1", "settled", "ack 0/4"]


def test_an_unexpected_exception_acknowledges_nothing_and_says_where(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.stage.outcomes = [bug]
    batch = [bench.event(7), bench.event(9), bench.event(2, partition=1)]
    with caplog.at_level(logging.ERROR):
        drive(bench.run(batch, [bench.event(10)]))
    assert not [line for line in bench.log if line.startswith("ack")]
    assert "handle [10]" not in bench.log
    assert [type(failure) for failure in bench.failures] == [KeyError]
    assert "fake: failed on profiles partition 0 offsets 7 to 9, partition 1 offsets 2 to 2" in caplog.text


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


def test_messages_of_an_earlier_assignment_are_left_alone() -> None:
    bench = Bench()
    bench.membership.number = 2
    drive(bench.run([bench.event(0, generation_id=1), bench.event(5, generation_id=2)]))
    assert bench.log[1:] == ["handle [5]", "settled", "ack 0/5"]


def test_assigned_is_told_anew_before_the_first_batch_of_every_assignment() -> None:
    bench = Bench()

    async def scenario() -> None:
        await bench.run([bench.event(0)], [bench.event(1)])
        bench.membership.number = 2
        await bench.run([bench.event(0, generation_id=2)])

    drive(scenario())
    kinds = [line.split()[0] for line in bench.log if line.startswith(("assigned", "handle"))]
    assert kinds == ["assigned", "handle", "handle", "assigned", "handle"]


def test_a_batch_that_outlives_its_assignment_is_not_acknowledged() -> None:
    bench = Bench()

    def rebalance() -> None:
        bench.membership.number = 2

    bench.stage.outcomes = [rebalance]
    drive(bench.run([bench.event(0)]))
    assert bench.log[1:] == ["handle [0]", "settled"]


def test_revocation_waits_for_the_batch_in_flight_and_lets_it_be_acknowledged() -> None:
    bench = Bench()
    release = threading.Event()
    bench.stage.outcomes = [lambda: release.wait(5)]

    async def scenario() -> None:
        running = asyncio.ensure_future(bench.run([bench.event(0)], [bench.event(1)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        pausing = asyncio.ensure_future(bench.loop.pause())
        await asyncio.sleep(0.02)
        assert not pausing.done()
        release.set()
        await pausing
        assert bench.log[-1] == "ack 0/0"
        await running

    drive(scenario())
    assert "handle [1]" not in bench.log, "a batch of revoked partitions must not be handled"


def test_after_a_revocation_it_goes_on() -> None:
    bench = Bench()

    async def scenario() -> None:
        await bench.loop.pause()
        await bench.run([bench.event(0)])
        bench.loop.resume()
        await bench.run([bench.event(0)])

    drive(scenario())
    assert bench.log.count("handle [0]") == 1


@pytest.mark.parametrize("obstacle", ["store", "broker"])
def test_stopping_gives_up_what_cannot_be_finished_unacknowledged(obstacle: str) -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    bench.publisher.blocked = obstacle == "broker"
    bench.stage.outcomes = [unavailable] * 1000 if obstacle == "store" else []

    async def scenario() -> None:
        running = asyncio.ensure_future(bench.run([bench.event(0)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        await bench.loop.stop()
        bench.loop.resume()  # a rebalance on the way out changes nothing
        await running
        await bench.run([bench.event(1)])

    drive(scenario())
    assert not [line for line in bench.log if line.startswith("ack")]
    assert "settled" not in bench.log
    assert "handle [1]" not in bench.log


def test_cancelling_waits_for_the_thread_and_acknowledges_nothing() -> None:
    bench = Bench()
    release = threading.Event()
    ended: list[bool] = []

    def wait() -> None:
        release.wait(5)
        ended.append(True)

    bench.stage.outcomes = [wait]

    async def scenario() -> None:
        running = asyncio.ensure_future(bench.run([bench.event(0)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.sleep(0.02)
        assert not running.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    drive(scenario())
    assert ended
    assert not bench.failures
    assert not [line for line in bench.log if line.startswith("ack")]


def test_parts_of_a_scan_hold_the_acknowledgement_of_what_follows() -> None:
    bench = Bench(inputs={"change-points": decode_scan})
    first, last = (encode_scan(part) for part in split_scan(scan(2), max_items=1))
    other = encode_scan(scan(1, service="other"))

    async def scenario() -> None:
        await bench.run(
            [bench.event(0, first, topic="change-points"), bench.event(1, other, topic="change-points")],
            topic="change-points",
        )
        assert bench.log[1:] == ["handle [1]", "settled"], "offset 1 must wait for offset 0"
        await bench.run([bench.event(2, last, topic="change-points")], topic="change-points")

    drive(scenario())
    assert bench.log[3:] == ["handle [2]", "settled", "ack 0/0", "ack 0/1", "ack 0/2"]


def test_a_broken_deploy_stops_it_with_one_line_and_leaves_the_rest_on_the_topic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(limit=Limit(share=0.5, least=4, after_s=60.0, sources=2))

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
    bench = Bench(limit=Limit(share=0.5, least=4, after_s=60.0, sources=2))

    async def scenario() -> None:
        for number in range(20):
            bad = [bench.event(10 * number + n, b"", key=b"hostile/h") for n in range(9)]
            await bench.run([*bad, bench.event(10 * number + 9, b"x", key=b"shop/h")])
            bench.now += 30.0

    drive(scenario())
    assert not bench.failures
    assert len(bench.publisher.packets) == 180
    assert len([line for line in bench.log if line.startswith("ack")]) == 200


REPLAY = "0123456789abcdef0123456789abcdef"


def replayed(bench: Bench, offset: int, number: int, replay: str = REPLAY) -> FakeEvent:
    return bench.event(offset, headers=(("replay", f"{replay}/{number}".encode()),))


def test_replayed_letters_are_handled_apart_and_copies_in_a_batch_once() -> None:
    bench = Bench()
    other = REPLAY[::-1]
    batch = [
        bench.event(0),
        replayed(bench, 1, 0),
        replayed(bench, 2, 1),
        replayed(bench, 3, 0),
        replayed(bench, 4, 0, other),
        bench.event(5),
    ]
    drive(bench.run(batch))
    assert bench.log == [
        "assigned profiles [0, 1]",
        *("handle [0, 5]", "settled", "handle [1, 2]", "settled", "handle [4]", "settled"),
        *(f"ack 0/{offset}" for offset in range(6)),
    ]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        pytest.param(b"", "should be an id and a number", id="empty"),
        pytest.param(b"abc/1", "should be an id and a number", id="short id"),
        pytest.param(REPLAY.encode() + b"/-1", "should be an id and a number", id="negative"),
        pytest.param(REPLAY.encode() + b"/" + b"9" * 19, "should be an id and a number", id="beyond 64 bits"),
    ],
)
def test_a_forged_replay_is_a_bad_message(header: bytes, reason: str) -> None:
    bench = Bench()
    drive(bench.run([bench.event(0, headers=(("replay", header),))]))
    assert f"header replay: {reason}" in dict(bench.publisher.packets[0].headers)["reason"].decode()


def test_many_replays_in_a_batch_are_refused_beyond_a_bound() -> None:
    bench = Bench()
    drive(bench.run([replayed(bench, offset, 0, f"{offset:032x}") for offset in range(12)]))
    assert len(bench.publisher.packets) == 4
    assert len([line for line in bench.log if line.startswith("handle")]) == 8


def test_a_letter_of_a_replayed_letter_says_so() -> None:
    bench = Bench()
    drive(bench.run([bench.event(0, b"", headers=(("replayed-from", b"2/17"), ("other", None)))]))
    assert dict(bench.publisher.packets[0].headers)["replayed-from"] == b"2/17"


def test_it_tells_how_long_a_call_takes_and_counts_batches() -> None:
    bench = Bench()
    release = threading.Event()
    bench.stage.outcomes = [lambda: release.wait(5)]

    async def scenario() -> None:
        assert bench.loop.call_s == 0.0
        running = asyncio.ensure_future(bench.run([bench.event(0)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        bench.now = 42.0
        assert bench.loop.call_s == 42.0
        release.set()
        await running
        assert bench.loop.call_s == 0.0

    drive(scenario())
    counted = {name: value for name, _, value in bench.telemetry.samples()}
    assert counted["messages_total"] == 1
    assert (counted["batch_seconds_count"], counted["batch_seconds_sum"]) == (1, 42.0)


def test_dead_letters_are_told_once_in_a_while_with_their_place(caplog: pytest.LogCaptureFixture) -> None:
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
