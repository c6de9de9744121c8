"""Which scan comes next, what may rest, and which messages are held for it."""

from __future__ import annotations

from pipeline.analysis.detect.schedule import DueScan
from pipeline.stages.scan_queue import MOST_HELD, ScanQueue


def scans(count: int) -> list[DueScan]:
    return [DueScan("w", float(number)) for number in range(count)]


def take(queue: ScanQueue, offset: int, **due: int) -> None:
    """Take a batch of one message of each service in, and ask for them."""
    first = {service: (0, offset + number) for number, service in enumerate(due)}
    queue.begin({s: scans(n) for s, n in due.items()}, first, {0: offset + len(due) - 1})
    queue.ask(due)


def made(queue: ScanQueue, count: int) -> str:
    """Make so many scans and return their services."""
    found = ""
    for _ in range(count):
        service, due = queue.next()
        assert queue.done(service) == due
        found += service
    return found


def test_who_has_had_the_fewest_comes_next() -> None:
    queue = ScanQueue()
    take(queue, 0, a=3, b=1, c=0)
    assert queue.unfinished
    assert made(queue, 4) == "abaa"
    assert not queue.unfinished
    assert queue.held == {}


def test_what_rests_goes_on_beside_the_next_batch_and_holds_its_message() -> None:
    queue = ScanQueue()
    take(queue, 10, a=4, b=2)
    assert made(queue, 3) == "aba"
    assert queue.rest()
    assert not queue.unfinished
    assert queue.held == {0: 10}
    take(queue, 12, c=2)
    assert made(queue, 4) == "abca"
    assert queue.held == {0: 12}
    assert made(queue, 1) == "c"
    assert queue.held == {}


def test_a_service_that_speaks_again_asks_for_all_that_is_left_and_is_held_from_where_it_began() -> None:
    queue = ScanQueue()
    take(queue, 10, a=4)
    made(queue, 1)
    assert queue.rest()
    take(queue, 11, a=5)
    assert queue.held == {0: 10}
    assert made(queue, 5) == "aaaaa"
    assert queue.held == {}


def test_what_rests_of_a_service_that_has_nothing_left_holds_nothing() -> None:
    queue = ScanQueue()
    take(queue, 10, a=4)
    assert queue.rest()
    take(queue, 11, a=0)
    assert not queue.unfinished
    assert queue.held == {}


def test_no_more_messages_are_held_than_fit() -> None:
    queue = ScanQueue()
    take(queue, 10, a=4)
    assert queue.rest()
    take(queue, 10 + MOST_HELD - 1, b=2)
    assert queue.rest()
    take(queue, 10 + MOST_HELD, c=1)
    assert not queue.rest()
    assert queue.unfinished


def test_what_is_put_off_is_asked_for_by_its_next_message() -> None:
    queue = ScanQueue()
    take(queue, 10, a=4)
    assert queue.rest()
    take(queue, 11, b=1)
    assert queue.is_resting("a")
    assert not queue.is_resting("b")
    queue.put_off("a")
    assert queue.held == {0: 11}
    assert made(queue, 1) == "b"
    take(queue, 12, a=4)
    assert made(queue, 4) == "aaaa"
