"""The worker loop as partitions come and go, as it is stopped, and as it is cancelled."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pipeline.model import Outgoing
from tests.support.open_faults import open_fault
from tests.unit.worker.faked_loop import Bench, drive, unavailable


def test_messages_of_an_earlier_assignment_are_left_alone() -> None:
    bench = Bench()
    bench.membership.number = 2
    drive(bench.run([bench.event(0, generation_id=1), bench.event(5, generation_id=2)]))
    assert bench.log[1:] == ["handle [5]", "settled", "ack 0/5"]


def test_assigned_is_reported_anew_before_the_first_batch_of_every_assignment() -> None:
    bench = Bench()

    async def scenario() -> None:
        await bench.run([bench.event(0)], [bench.event(1)])
        bench.membership.number = 2
        await bench.run([bench.event(0, generation_id=2)])

    drive(scenario())
    kinds = [line.split()[0] for line in bench.log if line.startswith(("assigned", "handle"))]
    assert kinds == ["assigned", "handle", "handle", "assigned", "handle"]


def test_a_batch_that_outlives_its_assignment_is_not_acknowledged() -> None:
    bench = Bench()

    def rebalance() -> None:
        bench.membership.number = 2

    bench.stage.outcomes = [rebalance]
    drive(bench.run([bench.event(0)]))
    assert bench.log[1:] == ["handle [0]", "settled"]


def test_revocation_waits_for_the_batch_in_flight_and_lets_it_be_acknowledged() -> None:
    bench = Bench()
    release = threading.Event()
    bench.stage.outcomes = [lambda: release.wait(60)]

    async def scenario() -> None:
        running = asyncio.ensure_future(bench.run([bench.event(0)], [bench.event(1)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        pausing = asyncio.ensure_future(bench.loop.pause())
        await asyncio.sleep(0.02)
        assert not pausing.done()
        release.set()
        await pausing
        assert bench.log[-1] == "ack 0/0"
        await running

    drive(scenario())
    assert "handle [1]" not in bench.log, "a batch of revoked partitions must not be handled"


def test_after_a_revocation_it_goes_on() -> None:
    bench = Bench()

    async def scenario() -> None:
        await bench.loop.pause()
        await bench.run([bench.event(0)])
        bench.loop.resume()
        await bench.run([bench.event(0)])

    drive(scenario())
    assert bench.log.count("handle [0]") == 1


@pytest.mark.parametrize("obstacle", ["store", "broker"])
def test_stopping_gives_up_what_cannot_be_finished_unacknowledged(obstacle: str) -> None:
    bench = Bench()
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    bench.publisher.blocked = obstacle == "broker"
    bench.stage.outcomes = [unavailable] * 1000 if obstacle == "store" else []

    async def scenario() -> None:
        running = asyncio.ensure_future(bench.run([bench.event(0)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        await bench.loop.stop()
        bench.loop.resume()  # a rebalance on the way out changes nothing
        await running
        await bench.run([bench.event(1)])

    drive(scenario())
    assert not [line for line in bench.log if line.startswith("ack")]
    assert "settled" not in bench.log
    assert "handle [1]" not in bench.log


def test_cancelling_waits_for_the_thread_and_acknowledges_nothing() -> None:
    bench = Bench()
    release = threading.Event()
    ended: list[bool] = []

    def wait() -> None:
        release.wait(60)
        ended.append(True)

    bench.stage.outcomes = [wait]

    async def scenario() -> None:
        running = asyncio.ensure_future(bench.run([bench.event(0)]))
        while "handle [0]" not in bench.log:
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.sleep(0.02)
        assert not running.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    drive(scenario())
    assert ended
    assert not bench.failures
    assert not [line for line in bench.log if line.startswith("ack")]


GAPS = {
    "before the first": ({0: 100}, [150], 150, ["offsets 100 to 149"], 50),
    "later, while the store was away": (
        {0: 100},
        [100, 151, 10_000],
        10_000,
        ["offsets 101 to 150", "offsets 152 to 9999"],
        9898,
    ),
    "a part of it": ({0: 100}, [100, 150], 120, ["offsets 101 to 119"], 19),
    "left out by the topic itself": ({0: 100}, [100, 102, 150], 90, [], 0),
    "nothing was committed": ({}, [500], 500, [], 0),
}


@pytest.mark.parametrize(("committed", "offsets", "oldest", "said", "lost"), GAPS.values(), ids=GAPS.keys())
def test_what_was_deleted_before_it_was_read_is_reported_and_counted(
    committed: dict[int, int],
    offsets: list[int],
    oldest: int,
    said: list[str],
    lost: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.membership.begins, bench.membership.oldest = committed, oldest
    drive(bench.run(*([bench.event(offset)] for offset in offsets)))
    lines = [record.getMessage() for record in caplog.records if "were deleted" in record.getMessage()]
    assert [line.split(": ")[2].removesuffix(" were deleted before they were read") for line in lines] == said
    samples = {name: value for name, _, value in bench.telemetry.samples()}
    assert samples["lost_messages_total"] == lost


@pytest.mark.parametrize(("came", "ends"), [((100, 103), False), ((100, 101, 103), True), ((102, 103), True)])
def test_messages_that_came_to_the_process_and_not_to_the_loop_end_the_worker(
    came: tuple[int, ...], ends: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What never came, the topic leaves out itself. A new start goes on from the commit, before them."""
    bench = Bench()
    bench.membership.begins, bench.membership.came = {0: 100}, came
    drive(bench.run([bench.event(100)], [bench.event(103)]))
    acknowledged = [line for line in bench.log if line.startswith("ack")]
    assert acknowledged == (["ack 0/100"] if ends else ["ack 0/100", "ack 0/103"])
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    reason = "profiles partition 0: offsets 101 to 102 were skipped by the client: a new start reads them"
    assert said == ([f"fake: {reason}. Nothing of this batch is acknowledged"] if ends else [])
    assert len(bench.failures) == ends


def test_messages_that_were_deleted_since_they_came_are_lost_not_skipped() -> None:
    bench = Bench()
    bench.membership.begins, bench.membership.came, bench.membership.oldest = {0: 100}, (100, 101), 150
    drive(bench.run([bench.event(150)]))
    assert not bench.failures


def test_a_stage_learns_what_it_is_past_before_that_is_acknowledged() -> None:
    """Dead letters too; and while the store cannot note it, nothing is acknowledged."""
    bench = Bench()
    bench.stage.passings = [unavailable, lambda: bench.log.append("passed")]
    drive(bench.run([bench.event(3), bench.event(4, value=b"bad"), bench.event(7, partition=1)]))
    assert bench.stage.seen == [{0: 4, 1: 7}]
    acknowledged = [number for number, line in enumerate(bench.log) if line.startswith("ack")]
    assert acknowledged
    assert bench.log.index("passed") < acknowledged[0]


@open_fault("44.1", "an offset below the expected one is handled, and left out as counted")
def test_offsets_that_go_back_within_an_assignment_end_the_worker() -> None:
    """The broker lost the end of the log, and other messages have the offsets that are counted."""
    bench = Bench()
    bench.membership.begins = {0: 999}
    drive(bench.run([bench.event(999)], [bench.event(900)]))
    assert len(bench.failures) == 1
