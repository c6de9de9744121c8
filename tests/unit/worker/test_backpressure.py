"""Streams are bounded by bytes: their queue, and the batches that are taken from them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from mode.utils.queues import FlowControlEvent

from pipeline.worker.backpressure import BoundedQueue, take_bounded


@dataclass(eq=False)
class FakeMessage:
    value: bytes | None
    key: bytes | None = None


@dataclass(eq=False)
class FakeEvent:
    number: int
    message: FakeMessage


def event(number: int, size: int) -> FakeEvent:
    return FakeEvent(number, FakeMessage(b"x" * size if size else None))


def queue(max_bytes: int, maxsize: int = 100) -> BoundedQueue:
    return BoundedQueue(maxsize=maxsize, max_bytes=max_bytes, flow_control=FlowControlEvent())


def offer(waiting: BoundedQueue, number: int, size: int, log: list[str]) -> None:
    waiting.put_nowait_enhanced(
        event(number, size), on_pressure_high=lambda: log.append("stop"), on_pressure_drop=_resume(log)
    )


_callbacks: dict[int, Callable[[], None]] = {}


def _resume(log: list[str]) -> Callable[[], None]:
    return _callbacks.setdefault(id(log), lambda: log.append("go"))


def test_a_queue_is_full_by_bytes_and_fetching_resumes_when_there_is_room() -> None:
    async def main() -> list[str]:
        log: list[str] = []
        waiting = queue(100)
        offer(waiting, 0, 60, log)
        assert not waiting.full()
        offer(waiting, 1, 60, log)  # is taken: it has been fetched
        assert waiting.full()
        offer(waiting, 2, 0, log)  # asks for no more to be fetched
        assert log == ["stop"]
        assert waiting.get_nowait().number == 0
        assert waiting.get_nowait().number == 1  # more than a share of the bound was taken until now
        assert log == ["stop"]
        assert waiting.get_nowait().number == 2
        assert log == ["stop", "go"]
        assert waiting.bytes == 0
        return log

    asyncio.run(main())


async def test_a_queue_is_full_by_number_too() -> None:
    waiting = queue(1 << 30, maxsize=2)
    waiting.put_nowait(event(0, 1))
    waiting.put_nowait(event(1, 1))
    assert waiting.full()


async def test_a_cleared_queue_has_room_again() -> None:
    waiting = queue(10)
    waiting.put_nowait(event(0, 50))
    assert waiting.full()
    waiting.clear()
    assert not waiting.full()
    assert waiting.bytes == 0


async def test_who_puts_waits_for_room_in_bytes() -> None:
    waiting = queue(10)
    waiting._flow_control.resume()
    await waiting.put(event(0, 50))
    second = asyncio.ensure_future(waiting.put(event(1, 1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not second.done()
    assert (await waiting.get()).number == 0
    await asyncio.wait_for(second, 60)
    assert waiting.bytes == 1


@dataclass
class FakeStream:
    """A stream whose events a task pushes through its processors, as Faust's drainer does."""

    events: list[FakeEvent]
    channel: Any = field(default_factory=lambda: _nothing())
    enable_acks: bool = True
    should_stop: bool = False
    current_event: Any = None
    processors: list[Callable[[Any], Any]] = field(default_factory=list)
    pushed: int = 0
    drainer: asyncio.Task[None] | None = None

    def add_processor(self, processor: Callable[[Any], Any]) -> None:
        self.processors.append(processor)

    def _enable_passive(self, _channel: Any) -> None:
        self.drainer = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        for found in self.events:
            self.current_event = found
            for processor in self.processors:
                await processor(found.message.value)
            self.pushed += 1

    async def wait_for_stopped(self, waited: Any, timeout: float | None = None) -> bool:
        waiting = asyncio.ensure_future(waited.wait())
        while not waiting.done() and not self.should_stop:
            done, _ = await asyncio.wait({waiting}, timeout=0.01 if timeout is None else timeout)
            if not done and (timeout is not None or self.drainer is None or self.drainer.done()):
                self.should_stop = self.should_stop or timeout is None
                break
        if not waiting.done():
            waiting.cancel()
        return self.should_stop


async def _nothing() -> AsyncIterator[None]:
    return
    yield


def taken(sizes: list[int], *, max_messages: int, max_bytes: int) -> list[list[int]]:
    async def main() -> list[list[int]]:
        stream: Any = FakeStream([event(i, size) for i, size in enumerate(sizes)])
        batches = []
        async for batch in take_bounded(
            stream, max_messages=max_messages, max_bytes=max_bytes, within_s=0.05
        ):
            before = stream.pushed
            for _ in range(5):
                await asyncio.sleep(0)  # nothing is taken while a batch is worked on
            assert stream.pushed <= before + 1
            assert not stream.enable_acks
            batches.append([found.number for found in batch])
        return batches

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("sizes", "max_messages", "max_bytes", "wanted"),
    [
        pytest.param([1] * 5, 2, 1000, [[0, 1], [2, 3], [4]], id="by number"),
        pytest.param([40] * 5, 100, 100, [[0, 1, 2], [3, 4]], id="by bytes"),
        pytest.param([500, 1, 500], 100, 100, [[0], [1, 2]], id="one larger than the bound ends its batch"),
        pytest.param([0, 0, 0], 100, 1, [[0, 1, 2]], id="messages without a value have no size"),
        pytest.param([], 10, 10, [], id="nothing"),
    ],
)
def test_a_batch_ends_by_number_bytes_or_time(
    sizes: list[int], max_messages: int, max_bytes: int, wanted: list[list[int]]
) -> None:
    assert taken(sizes, max_messages=max_messages, max_bytes=max_bytes) == wanted
