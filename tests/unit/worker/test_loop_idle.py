"""What a stage does by the clock alone: in one process of the group, between batches."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.model import Outgoing
from pipeline.model.errors import QueryRefused
from tests.unit.worker.faked_loop import Bench, bug, drive, unavailable


def refused() -> None:
    raise QueryRefused("too much memory")


def bench_with(*idlings: object) -> Bench:
    bench = Bench()
    bench.stage.idle_s = 0.001
    bench.stage.outgoing = [Outgoing("windows", "shop", b"{}")]
    bench.stage.idlings = list(idlings)  # type: ignore[arg-type]
    return bench


async def idle_until(bench: Bench, lines: int) -> None:
    """Let the loop idle until it has logged so many lines, or failed."""
    task = asyncio.ensure_future(bench.loop.idle())
    while len(bench.log) < lines and not bench.failures:
        await asyncio.sleep(0.001)
    task.cancel()


def test_what_is_due_is_published_and_settled() -> None:
    bench = bench_with()
    drive(idle_until(bench, 6))
    assert bench.log[:6] == ["idle", "publish 1", "settled"] * 2


def test_an_unavailable_store_is_tried_again_and_a_refusal_is_left_for_later() -> None:
    bench = bench_with(unavailable, refused)
    drive(idle_until(bench, 5))
    assert bench.log[:5] == ["idle", "idle", "idle", "publish 1", "settled"]
    assert not bench.failures


def test_a_bug_stops_the_process_and_says_where(caplog: pytest.LogCaptureFixture) -> None:
    bench = bench_with(bug)
    drive(idle_until(bench, 9))
    (record,) = caplog.records
    assert record.getMessage() == "fake: failed on what is due by the clock"
    assert record.exc_info is not None
    assert [type(error) for error in bench.failures] == [KeyError]
    assert bench.log == ["idle"]


def test_who_lacks_the_first_partition_and_who_stands_still_does_not_ask() -> None:
    async def stand(bench: Bench) -> None:
        task = asyncio.ensure_future(bench.loop.idle())
        for _ in range(20):
            await asyncio.sleep(0.001)
        task.cancel()

    other = bench_with()
    other.membership.owned = (1,)
    drive(stand(other))
    assert other.log == []

    async def paused(bench: Bench) -> None:
        await bench.loop.pause()
        await stand(bench)

    still = bench_with()
    drive(paused(still))
    assert still.log == []
