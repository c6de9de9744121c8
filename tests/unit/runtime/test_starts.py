"""An assignment that waits for its store says so, in the log and to whoever asks."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from pipeline.errors import QueryRefused, StoreUnavailable
from pipeline.kafka import Broker
from pipeline.runtime.worker import starts
from pipeline.stages.base import Stage
from tests.unit.runtime.faked_loop import TOPICS


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

    stage = SimpleNamespace(name="aggregate", inputs=("profiles",), stored_up_to=stored_up_to)
    broker = Broker(("127.0.0.1:1",))
    ticks: Callable[[], float] = itertools.count(step=10.0).__next__  # of each failure
    logs = starts.LogWatch(broker, {})
    waiting = starts.Starts(cast(Stage, stage), TOPICS, broker, logs, asyncio.Event(), ticks)
    assert asyncio.run(waiting.of([("profiles", 0)])) == {("profiles", 0): 0}
    text = f"not known yet where to go on, trying again: {error}"
    assert seen == ["", *[text] * 13]
    assert waiting.waits_for == ""
    assert [record.getMessage() for record in caplog.records] == [f"aggregate: {text}"] * 3
