"""What checks messages is made by one thread at a time, however many stages begin together."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.messages import records


def test_adapters_are_made_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = most = 0

    class Slow:
        def __init__(self, _: object) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    monkeypatch.setattr(records, "TypeAdapter", Slow)
    shapes = [type(f"Shape{number}", (), {}) for number in range(4)]
    with ThreadPoolExecutor(len(shapes)) as threads:
        list(threads.map(records.adapter_of, shapes))
    assert most == 1
