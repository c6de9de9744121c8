"""INSERTs several at once: how many, how many rows, and what comes of it when one fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from pipeline.model.errors import StoreUnavailable
from pipeline.stages.inserts import AT_ONCE, Inserts
from pipeline.storage.interface import Store

WAIT_S = 60.0


class SlowStore:
    """A store whose inserts do something before they end; it notes which have begun and which have ended."""

    def __init__(self, meanwhile: Callable[[str], None]) -> None:
        self._meanwhile = meanwhile
        self._lock = threading.Lock()
        self.begun: list[str] = []
        self.ended: list[str] = []

    def insert(self, _table: str, _columns: Any, *, token: str, asked_at: float) -> None:
        with self._lock:
            self.begun.append(token)
        try:
            self._meanwhile(token)
        finally:
            with self._lock:
                self.ended.append(token)


def insert(store: SlowStore, rows: Sequence[int], fails: BaseException | None = None) -> None:
    """Insert blocks of so many rows, whose tokens are their numbers; then the caller may fail."""
    with Inserts(cast(Store, store), 100) as inserts:
        for number, size in enumerate(rows):
            inserts.await_room(size)
            inserts.begin("gcpu", {"partition": [0] * size}, token=str(number), asked_at=0.0)
        if fails:
            raise fails


def test_all_have_ended_when_the_block_is_left() -> None:
    store = SlowStore(lambda _: None)
    insert(store, [1] * 3 * AT_ONCE)
    assert sorted(map(int, store.ended)) == list(range(3 * AT_ONCE))


@pytest.mark.parametrize(
    ("rows", "at_once"),
    [
        pytest.param([1] * (AT_ONCE + 1), AT_ONCE, id="so many"),
        pytest.param([40, 40, 40], 2, id="so many rows"),
        pytest.param([1000, 1], 1, id="a large one alone"),
        pytest.param([1, 1000], 1, id="a large one waits for what is under way"),
    ],
)
def test_a_further_one_waits_for_room(rows: list[int], at_once: int) -> None:
    go_on = threading.Event()
    waiting: list[int] = []

    def look() -> None:
        end = time.monotonic() + WAIT_S
        while len(store.begun) < at_once and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.2)  # in which one too many would begin
        waiting.append(len(store.begun))
        go_on.set()

    store = SlowStore(lambda _: cast(None, go_on.wait(2 * WAIT_S)))
    looking = threading.Thread(target=look)
    looking.start()
    insert(store, rows)
    looking.join()
    assert waiting == [at_once]
    assert len(store.ended) == len(rows)


def test_once_one_has_failed_no_further_one_begins_and_the_others_end() -> None:
    failed = threading.Event()

    def meanwhile(token: str) -> None:
        if token == "1":
            failed.set()
            raise StoreUnavailable("the connection was reset")
        failed.wait(WAIT_S)

    store = SlowStore(meanwhile)
    with pytest.raises(StoreUnavailable, match="reset"):
        insert(store, [1] * 100)
    assert len(store.begun) < 100
    assert sorted(store.begun) == sorted(store.ended)


def test_a_failure_is_seen_before_the_next_one_begins() -> None:
    def refuse(_token: str) -> None:
        raise StoreUnavailable("timeout")

    store = SlowStore(refuse)
    with pytest.raises(StoreUnavailable, match="timeout"):
        insert(store, [100, 100])
    assert store.begun == ["0"]


def test_the_last_one_that_fails_is_raised_too() -> None:
    def refuse(_token: str) -> None:
        raise StoreUnavailable("timeout")

    with pytest.raises(StoreUnavailable, match="timeout"):
        insert(SlowStore(refuse), [1])


def test_what_the_caller_fails_with_is_raised_once_all_have_ended() -> None:
    store = SlowStore(lambda _: None)
    with pytest.raises(KeyError):
        insert(store, [1], KeyError())
    assert store.ended == ["0"]
