"""An assignment that waits for its store says so, in the log and to whoever asks."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Collection
from types import SimpleNamespace
from typing import cast

import pytest
from aiokafka import TopicPartition

from pipeline.kafka import Broker
from pipeline.model.errors import ConfigError, QueryRefused, StoreUnavailable
from pipeline.stages.base import Stage
from pipeline.worker import starts
from tests.support.open_faults import open_fault
from tests.unit.worker.faked_loop import TOPICS


@pytest.mark.parametrize(
    "error", [StoreUnavailable("the store does not answer"), QueryRefused("the store refuses: memory")]
)
def test_an_assignment_says_once_a_minute_what_it_waits_for(
    error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "PAUSE_S", 0.0)
    tries = itertools.count()
    seen: list[str] = []

    def stored_up_to(*_: object) -> dict[int, int]:
        seen.append(waiting.waits_for)
        if next(tries) < 13:
            raise error
        return {0: 0}

    stage = SimpleNamespace(
        name="aggregate", inputs=("profiles",), stored_up_to=stored_up_to, passed=lambda *_: None
    )
    broker = Broker(("127.0.0.1:1",))
    ticks: Callable[[], float] = itertools.count(step=10.0).__next__  # of each failure
    logs = starts.LogWatch(broker, {})
    waiting = starts.Starts(cast(Stage, stage), TOPICS, broker, logs, asyncio.Event(), ticks)
    assert asyncio.run(waiting.of([("profiles", 0)])) == {("profiles", 0): 0}
    text = f"not known yet where to go on, trying again: {error}"
    assert seen == ["", *[text] * 13]
    assert waiting.waits_for == ""
    assert [record.getMessage() for record in caplog.records] == [f"aggregate: {text}"] * 3


@open_fault("44.1", "a lost end of a log is seen only until agents have published past it")
def test_a_log_that_lost_counted_messages_and_grew_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log lost offsets 900 to 999, which are counted, and ends at 1020 by the second start."""
    end = 900

    @contextlib.asynccontextmanager
    async def open_reader(_broker: Broker) -> AsyncIterator[SimpleNamespace]:
        async def offsets(value: int, positions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
            return dict.fromkeys(positions, value)

        async def poll(_timeout_s: float) -> list[object]:
            return []

        yield SimpleNamespace(
            end_offsets=lambda positions: offsets(end, positions),
            first_offsets=lambda positions: offsets(0, positions),
            seek=lambda _positions: None,
            poll=poll,
            fetched_end=lambda _position: end,
        )

    monkeypatch.setattr(starts, "open_reader", open_reader)
    stage = SimpleNamespace(
        name="aggregate", inputs=("profiles",), stored_up_to=lambda *_: {0: 1000}, passed=lambda *_: None
    )
    broker = Broker(("127.0.0.1:1",))
    refused: list[int] = []
    for end in (900, 1020):
        logs = starts.LogWatch(broker, {})
        start = starts.Starts(cast(Stage, stage), TOPICS, broker, logs, asyncio.Event())
        try:
            asyncio.run(start.of([("profiles", 0)]))
        except ConfigError:
            refused.append(end)
    assert refused == [900, 1020]
