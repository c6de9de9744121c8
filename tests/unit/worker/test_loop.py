"""The worker loop handles, publishes, settles and acknowledges in that order, and tries again in place."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from pipeline.messages.scans import decode_scan, encode_scan, split_scan
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError
from tests.unit.messages.test_assembler import scan
from tests.unit.worker.faked_loop import Bench, bug, drive, unavailable


def test_acknowledges_after_settling_after_publishing_after_handling() -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    drive(bench.run([bench.event(0), bench.event(1)]))
    assert bench.log == [
        "assigned profiles [0, 1]",
        "handle [0, 1]",
        "publish 1",
        "settled",
        "ack 0/0",
        "ack 0/1",
    ]


def test_a_batch_in_parts_is_acknowledged_after_the_last() -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    bench.stage.parts = 3
    drive(bench.run([bench.event(0), bench.event(1)]))
    part = ["handle [0, 1]", "publish 1", "settled"]
    assert bench.log == ["assigned profiles [0, 1]", *part, *part, *part, "ack 0/0", "ack 0/1"]


def test_a_batch_that_is_given_up_between_two_parts_comes_again() -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    bench.stage.parts = 3
    bench.stage.settlings = [lambda: None, lambda: bench.loop._give_up.set()]
    drive(bench.run([bench.event(0)]))
    assert bench.log.count("handle [0]") == 2
    assert not [line for line in bench.log if line.startswith("ack")]


def test_handles_off_the_event_loop() -> None:
    bench = Bench()
    drive(bench.run([bench.event(0)]))
    assert bench.stage.threads
    assert threading.get_ident() not in bench.stage.threads


def test_an_unavailable_store_is_tried_again_with_the_same_batch() -> None:
    bench = Bench()
    bench.stage.outcomes = [unavailable, unavailable]
    drive(bench.run([bench.event(4)]))
    assert bench.log.count("handle [4]") == 3
    assert bench.log[-1] == "ack 0/4"
    assert not bench.failures


def test_settling_is_tried_again_without_handling_or_publishing_again() -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    bench.stage.settlings = [unavailable]
    drive(bench.run([bench.event(4)]))
    assert bench.log[1:] == ["handle [4]", "publish 1", "settled", "ack 0/4"]


def test_an_unexpected_exception_acknowledges_nothing_and_says_where(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.stage.outcomes = [bug]
    batch = [bench.event(7), bench.event(9), bench.event(2, partition=1)]
    with caplog.at_level(logging.ERROR):
        drive(bench.run(batch, [bench.event(10)]))
    assert not [line for line in bench.log if line.startswith("ack")]
    assert "handle [10]" not in bench.log
    assert [type(failure) for failure in bench.failures] == [KeyError]
    assert "fake: failed on profiles partition 0 offsets 7 to 9, partition 1 offsets 2 to 2" in caplog.text


def test_what_a_person_has_to_settle_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def no_tables() -> None:
        raise ConfigError("store: no such table; run: smidgen store migrate")

    bench = Bench()
    bench.stage.outcomes = [no_tables]
    with caplog.at_level(logging.ERROR):
        drive(bench.run([bench.event(7)]))
    assert not [line for line in bench.log if line.startswith("ack")]
    assert [type(failure) for failure in bench.failures] == [ConfigError]
    (line,) = caplog.records
    assert line.exc_info is None
    assert line.getMessage().startswith("fake: store: no such table; run: smidgen store migrate. Nothing of")


def test_parts_of_a_scan_hold_the_acknowledgement_of_what_follows() -> None:
    bench = Bench(inputs={"change-points": decode_scan})
    first, last = (encode_scan(part) for part in split_scan(scan(2), max_items=1))
    other = encode_scan(scan(1, service="other"))

    async def scenario() -> None:
        await bench.run(
            [bench.event(0, first, topic="change-points"), bench.event(1, other, topic="change-points")],
            topic="change-points",
        )
        assert bench.log[1:] == ["handle [1]", "settled"], "offset 1 must wait for offset 0"
        await bench.run([bench.event(2, last, topic="change-points")], topic="change-points")

    drive(scenario())
    assert bench.log[3:] == ["handle [2]", "settled", "ack 0/0", "ack 0/1", "ack 0/2"]


def test_it_shows_how_long_a_call_takes_and_counts_batches() -> None:
    bench = Bench()
    release = threading.Event()
    bench.stage.outcomes = [lambda: release.wait(60)]

    async def scenario() -> None:
        assert bench.loop.call_s == 0.0
        running = asyncio.ensure_future(bench.run([bench.event(0)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        bench.now = 42.0
        assert bench.loop.call_s == 42.0
        release.set()
        await running
        assert bench.loop.call_s == 0.0

    drive(scenario())
    counted = {name: value for name, _, value in bench.telemetry.samples()}
    assert counted["messages_total"] == 1
    assert (counted["batch_seconds_count"], counted["batch_seconds_sum"]) == (1, 42.0)
