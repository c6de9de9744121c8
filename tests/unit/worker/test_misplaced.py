"""Warnings of messages that are not in their key's partition."""

from __future__ import annotations

import pytest

from pipeline.kafka import Packet, partition_of
from pipeline.settings.topics import Topics
from tests.unit.worker.faked_loop import TOPICS, Bench, decode_text, drive

SHARDED = TOPICS.widened({"checkout": 1})


@pytest.mark.parametrize("topics", [TOPICS, SHARDED])
def test_messages_of_stages_in_another_partition_are_warned_of(
    topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages that were written by the same topics.yaml are where they belong; each minute one line."""
    bench = Bench(inputs={"windows": decode_text}, topics=SHARDED)
    where = {key: partition_of(Packet("windows", key, b""), topics) for key in (b"checkout", b"shop")}

    async def scenario() -> None:
        for minute in range(2):
            bench.now = 60.0 * minute
            for offset in (0, 1):
                events = [
                    bench.event(2 * minute + offset, topic="windows", key=key, partition=partition)
                    for key, partition in where.items()
                ]
                await bench.run(events, topic="windows")

    drive(scenario())
    warnings = [r.getMessage() for r in caplog.records if "which topics.yaml puts into" in r.getMessage()]
    was = where[b"checkout"]
    start = (
        f"fake: windows partition {was} has messages of checkout, which topics.yaml puts into partition 6: "
    )
    assert len(warnings) == (0 if topics is SHARDED else 2)
    assert all(line.startswith(start) for line in warnings)
    assert bench.log.count("settled") == 4


def test_senders_may_put_samples_anywhere(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(topics=SHARDED)
    events = [bench.event(0, key=b"checkout/h1", partition=p, generation_id=1) for p in (0, 1)]
    drive(bench.run(events))
    assert "settled" in bench.log
    assert caplog.text == ""
