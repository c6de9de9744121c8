from __future__ import annotations

from agents.publishing.buffer import Buffer, Pending, Tally
from pipeline.model import Outgoing


def pending(name: str, size: int = 10, samples: int = 1) -> Pending:
    return Pending(Outgoing("profiles", name, b"x" * size), samples)


def names(buffer: Buffer) -> list[str]:
    found = []
    while taken := buffer.take():
        found.append(taken.message.key)
    return found


def test_messages_leave_in_order() -> None:
    buffer = Buffer(max_messages=10, max_bytes=1000)
    assert not any(buffer.put(pending(name)) for name in "abc")
    assert buffer.waiting == Tally(3, 3)
    assert names(buffer) == ["a", "b", "c"]
    assert buffer.take() is None
    assert buffer.dropped == Tally()


def test_too_many_drop_the_oldest() -> None:
    buffer = Buffer(max_messages=2, max_bytes=1000)
    assert [buffer.put(pending(name, samples=n)) for n, name in enumerate("abcd", 1)] == [
        False,
        False,
        True,
        True,
    ]
    assert buffer.dropped == Tally(2, 1 + 2)
    assert names(buffer) == ["c", "d"]


def test_too_many_bytes_drop_as_many_of_the_oldest_as_needed() -> None:
    buffer = Buffer(max_messages=10, max_bytes=100)
    for name in "abc":
        buffer.put(pending(name, 30))
    assert buffer.put(pending("d", 70))
    assert buffer.dropped == Tally(2, 2)
    assert buffer.waiting_bytes == 100
    assert names(buffer) == ["c", "d"]


def test_a_message_larger_than_the_buffer_drops_nothing_but_itself() -> None:
    buffer = Buffer(max_messages=10, max_bytes=100)
    buffer.put(pending("a"))
    assert buffer.put(pending("b", 101, samples=7))
    assert buffer.dropped == Tally(1, 7)
    assert names(buffer) == ["a"]
