"""One queue: its bounds and policies, and its two tiers, memory and disk, in order whatever happens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.publishing.message_queue import MessageQueue, Overflow
from agents.publishing.pending import Pending, Tally
from agents.publishing.publisher import BackgroundPublisher
from agents.publishing.spool import Spool
from pipeline.model import Outgoing
from tests.unit.agents.publishing.test_publisher import FakeBroker


def pending(number: int) -> Pending:
    return Pending(Outgoing("profiles", "shop/h", str(number).encode() * 3), number)


def spooled(folder: Path, in_memory: int = 2) -> MessageQueue:
    return MessageQueue(spool=Spool(folder, 10**6), max_messages=in_memory, max_bytes=10**6)


def drained(queue: MessageQueue) -> Iterator[int]:
    while found := queue.take():
        yield found.samples


def named(name: str, size: int = 10, samples: int = 1) -> Pending:
    return Pending(Outgoing("profiles", name, b"x" * size), samples)


def names(queue: MessageQueue) -> list[str]:
    found = []
    while taken := queue.take():
        found.append(taken.message.key)
    return found


@pytest.mark.parametrize(
    ("sizes", "most", "kept", "dropped"),
    [
        pytest.param({"a": 10, "b": 10, "c": 10}, (10, 1000), "abc", [], id="in order"),
        pytest.param({"a": 10, "b": 10, "c": 10, "d": 10}, (2, 1000), "cd", ["c", "d"], id="too many"),
        pytest.param({"a": 30, "b": 30, "c": 30, "d": 70}, (10, 100), "cd", ["d"], id="too many bytes"),
        pytest.param({"a": 10, "b": 101}, (10, 100), "a", ["b"], id="larger than the queue"),
    ],
)
def test_what_the_bounds_of_memory_leave(
    sizes: dict[str, int], most: tuple[int, int], kept: str, dropped: list[str]
) -> None:
    queue = MessageQueue(max_messages=most[0], max_bytes=most[1])
    full = [name for name, size in sizes.items() if queue.put(named(name, size, samples=size))]
    assert full == dropped
    assert queue.waiting == Tally(len(kept), sum(sizes[name] for name in kept))
    assert queue.waiting_bytes == sum(sizes[name] for name in kept)
    lost = [name for name in sizes if name not in kept]
    assert queue.dropped == Tally(len(lost), sum(sizes[name] for name in lost))
    assert names(queue) == list(kept)
    assert queue.take() is None


def test_a_queue_that_keeps_goes_beyond_its_bounds_and_has_no_room() -> None:
    queue = MessageQueue(max_messages=2, max_bytes=100, overflow=Overflow.KEEP)
    assert queue.has_room(2, 100)
    assert not any(queue.put(named(name, 60)) for name in "abc")
    assert not queue.has_room(1, 0)
    assert queue.dropped == Tally()
    assert names(queue) == ["a", "b", "c"]
    assert queue.has_room(2, 100)


def test_what_was_taken_last_is_unconfirmed_until_the_next_is_taken() -> None:
    queue = MessageQueue(max_bytes=100, overflow=Overflow.KEEP)
    for name in "ab":
        queue.put(named(name))
    for unconfirmed in ("ab", "b", ""):
        queue.take()
        assert [message.key for message in queue.unconfirmed] == list(unconfirmed)
    queue.put_back()  # nothing is in hand
    assert queue.waiting == Tally()


def test_what_memory_cannot_hold_waits_on_disk_and_comes_first(tmp_path: Path) -> None:
    queue = spooled(tmp_path)
    assert not any(queue.put(pending(number)) for number in range(5))
    assert (queue.waiting, queue.dropped) == (Tally(5, 10), Tally())
    assert queue.spooled_bytes > 0
    assert list(drained(queue)) == [0, 1, 2, 3, 4]
    assert queue.spooled_bytes == 0


@pytest.mark.parametrize("more", [0, 1, 4])
def test_what_was_not_confirmed_comes_first_at_the_next_start(tmp_path: Path, more: int) -> None:
    queue = spooled(tmp_path)
    queue.put(pending(0))
    in_hand = queue.take()
    assert in_hand
    for number in range(1, 1 + more):
        queue.put(pending(number))
    queue.put_back()
    assert queue.waiting.messages == 1 + more
    assert queue.close() == Tally(1 + more, sum(range(1 + more)))
    assert list(drained(spooled(tmp_path))) == list(range(1 + more))


def test_what_was_taken_from_disk_and_not_confirmed_is_still_there(tmp_path: Path) -> None:
    queue = spooled(tmp_path)
    for number in range(5):
        queue.put(pending(number))
    assert queue.take() == pending(0)
    second = queue.take()
    assert second
    queue.put_back()
    assert queue.waiting.messages == 4
    queue.close()
    assert list(drained(spooled(tmp_path))) == [0, 1, 2, 3, 4]  # the first, which was confirmed, counts once


def test_a_disk_that_takes_nothing_costs_the_oldest_and_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = spooled(tmp_path)

    def refuse(*_: object) -> Tally:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "append", refuse)
    assert [queue.put(pending(number)) for number in range(5)] == [False, False, True, True, True]
    assert queue.dropped == Tally(3, 3)
    assert list(drained(queue)) == [3, 4]
    assert [record.message for record in caplog.records] == [
        "the spool cannot be written (No space left on device): messages are being dropped"
    ]


def test_a_queue_takes_a_message_back() -> None:
    queue = MessageQueue(max_messages=5, max_bytes=100)
    for number in range(3):
        queue.put(pending(number))
    first = queue.take()
    assert first
    queue.put_back()
    assert queue.waiting == Tally(3, 3)
    assert queue.waiting_bytes == 9
    assert queue.take() == first


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["put", "put", "take", "restart"]), max_size=50), st.integers(1, 4))
def test_nothing_is_lost_and_order_is_kept(
    tmp_path_factory: pytest.TempPathFactory, operations: list[str], in_memory: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    queue = spooled(folder, in_memory)
    put, got = 0, []
    in_hand: Pending | None = None
    for what in operations:
        if what == "put":
            queue.put(pending(put))
            put += 1
        elif what == "take":
            if in_hand:
                got.append(in_hand.samples)
            in_hand = queue.take()
        else:
            if in_hand:
                queue.put_back()
                in_hand = None
            queue.close()
            queue = spooled(folder, in_memory)
    got += [in_hand.samples] if in_hand else []
    got += drained(queue)
    assert list(dict.fromkeys(got)) == list(range(put))  # perhaps some twice, each first in its turn


def test_an_outage_longer_than_memory_loses_nothing_and_keeps_order(tmp_path: Path) -> None:
    broker = FakeBroker(up=False)
    publisher = BackgroundPublisher(broker.connect, spooled(tmp_path))
    publisher.start()
    for number in range(20):
        publisher.offer(Outgoing("profiles", f"shop/{number}", b"value"), 1)
    assert publisher.delivery.dropped == Tally()
    broker.up = True
    broker.wait(lambda: len(broker.received) == 20)
    assert broker.received == [f"shop/{number}" for number in range(20)]
    assert publisher.close(60).unsent == Tally()
    assert publisher.delivery.published == Tally(20, 20)


def test_what_an_outage_outlasts_is_published_by_the_next_agent(tmp_path: Path) -> None:
    broker = FakeBroker(up=False)
    publisher = BackgroundPublisher(broker.connect, spooled(tmp_path))
    publisher.start()
    for number in range(5):
        publisher.offer(Outgoing("profiles", f"shop/{number}", b"value"), 1)
    broker.wait(lambda: broker.attempts > 0)
    delivery = publisher.close(0.1)
    assert (delivery.unsent, delivery.kept) == (Tally(), Tally(5, 5))
    broker.up = True
    publisher = BackgroundPublisher(broker.connect, spooled(tmp_path))
    publisher.start()
    broker.wait(lambda: len(broker.received) == 5)
    assert broker.received == [f"shop/{number}" for number in range(5)]
    publisher.close(60)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.lists(st.integers(0, 3000), max_size=4), st.sampled_from(["take", "restart"])),
        max_size=40,
    ),
    st.integers(1, 5000),
)
def test_what_there_is_room_for_is_never_dropped(
    tmp_path_factory: pytest.TempPathFactory, operations: list[list[int] | str], in_memory: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")

    def begin() -> MessageQueue:
        return MessageQueue(
            spool=Spool(folder, 20_000), max_messages=3, max_bytes=in_memory, overflow=Overflow.KEEP
        )

    queue, put, got = begin(), 0, []
    for what in [*operations, "restart"]:
        if what == "take":
            got += [found.samples] if (found := queue.take()) else []
        elif what == "restart":
            if got and (found := queue.take()):
                queue.put_back()
            assert queue.dropped == Tally()
            queue.close()
            assert queue.dropped == Tally()
            queue = begin()
        elif queue.has_room(len(what), sum(map(int, what))):
            for size in what:
                queue.put(Pending(Outgoing("profiles", "shop/h", b"x" * int(size)), put))
                put += 1
    got += drained(queue)
    assert set(got) == set(range(put))


def test_a_disk_that_takes_nothing_leaves_no_room_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = MessageQueue(
        spool=Spool(tmp_path, 10**6), max_messages=2, max_bytes=10**6, overflow=Overflow.KEEP
    )

    def refuse(*_: object) -> Tally:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Spool, "append", refuse)
        for number in range(3):
            assert queue.has_room(1, 3)
            assert not queue.put(pending(number))
        assert not queue.has_room(1, 3)
    assert (queue.waiting, queue.dropped) == (Tally(3, 3), Tally())
    assert [record.message for record in caplog.records] == [
        "the spool cannot be written (No space left on device): no more is taken"
    ]
    assert queue.has_room(1, 3)
    assert not queue.has_room(1, 10**6)  # more than the spool may hold
    queue.put(pending(3))
    assert list(drained(queue)) == [0, 1, 2, 3]


def test_no_more_waits_in_memory_than_the_disk_can_take_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(tmp_path)
    monkeypatch.setattr("os.statvfs", lambda _: Mock(f_bavail=100, f_frsize=4096, spec=real))
    queue = MessageQueue(
        spool=Spool(tmp_path, 10**9), max_messages=10**6, max_bytes=10**9, overflow=Overflow.KEEP
    )
    while queue.has_room(1, 10_000):
        queue.put(Pending(Outgoing("profiles", "shop/h", b"x" * 10_000)))
    assert 20 < queue.waiting.messages < 40
    monkeypatch.setattr("os.statvfs", Mock(side_effect=FileNotFoundError(2, "No such file or directory")))
    assert not queue.has_room(1, 0)
    while queue.waiting_bytes > 50_000:
        queue.take()
    assert queue.has_room(1, 0)


def test_without_memory_a_kill_costs_nothing(tmp_path: Path) -> None:
    queue = MessageQueue(spool=Spool(tmp_path, 10**6), max_messages=10, max_bytes=1, overflow=Overflow.KEEP)
    for number in range(3):
        queue.put(pending(number))
    folder = tmp_path / "after"
    folder.mkdir()
    for path in tmp_path.glob("*.spool"):
        (folder / path.name).write_bytes(path.read_bytes())  # as the disk is when a process is killed
    assert list(drained(spooled(folder))) == [0, 1, 2]
