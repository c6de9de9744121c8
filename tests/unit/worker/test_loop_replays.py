"""Replayed dead letters in the worker loop: known by an id, and the forged ones refused."""

from __future__ import annotations

import pytest

from tests.unit.worker.faked_loop import Bench, FakeEvent, drive

REPLAY = "0123456789abcdef0123456789abcdef"


def replayed(bench: Bench, offset: int, number: int, replay: str = REPLAY) -> FakeEvent:
    return bench.event(offset, headers=(("replay", f"{replay}/{number}".encode()),))


def test_a_replayed_message_has_the_id_of_its_replay() -> None:
    bench = Bench()
    other = REPLAY[::-1]
    batch = [bench.event(0), replayed(bench, 1, 0), replayed(bench, 2, 1), replayed(bench, 3, 0, other)]
    drive(bench.run(batch))
    assert bench.log == [
        "assigned profiles [0, 1]",
        *("handle [0, 1, 2, 3]", "settled"),
        *(f"ack 0/{offset}" for offset in range(4)),
    ]
    ids = [record.id for record in bench.stage.records]
    assert ids == ["", f"{REPLAY}/0", f"{REPLAY}/1", f"{other}/0"]


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


def test_many_replays_in_a_batch_are_one_call() -> None:
    bench = Bench()
    drive(bench.run([replayed(bench, offset, 0, f"{offset:032x}") for offset in range(12)]))
    assert bench.publisher.packets == []
    assert len([line for line in bench.log if line.startswith("handle")]) == 1


def test_a_dead_letter_of_a_replayed_dead_letter_says_so() -> None:
    bench = Bench()
    drive(bench.run([bench.event(0, b"", headers=(("replayed-from", b"2/17"), ("other", None)))]))
    assert dict(bench.publisher.packets[0].headers)["replayed-from"] == b"2/17"
