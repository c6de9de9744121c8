"""The Faust app around the worker loop: where partitions go on, from one assignment to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, cast
from unittest import mock

import faust
import pytest
from faust.transport.drivers import aiokafka
from faust.types import TP

from pipeline.worker.app import FaustMembership, StageApp
from pipeline.worker.consumer import FetchedOffsets, StageConsumer

HERE, THERE = TP("profiles", 7), TP("profiles", 8)


class _Consumer(StageConsumer):
    """A consumer without a broker: it knows what was committed and notes where it seeks back to."""

    def __init__(self, app: StageApp, committed: int) -> None:
        self.app = app
        self.fetched = FetchedOffsets()
        self._read_offset = {HERE: committed}
        self._committed_offset = {HERE: committed or None}
        self.back: dict[TP, int] = {}

    def assignment(self) -> set[TP]:
        return set(self._committed_offset)

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.back.update(partitions)


async def assigned(start: int, committed: int, *, revoked: bool = False) -> _Consumer:
    """Return a consumer that was given a partition, and perhaps is about to lose it."""

    async def starts_of(assigned: Collection[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(assigned, start)

    async def nothing(*_args: Any) -> None:
        return None

    app = StageApp("group", broker="kafka://127.0.0.1:1", store="memory://", env={}, autodiscover=False)
    app.starts_of = starts_of
    with (
        mock.patch.object(faust.App, "_on_partitions_assigned", nothing),
        mock.patch.object(faust.App, "_on_partitions_revoked", nothing),
        mock.patch.object(aiokafka.Consumer, "perform_seek", nothing),
    ):
        await app._on_partitions_assigned({HERE})
        if revoked:
            await app._on_partitions_revoked({HERE})
        consumer = _Consumer(app, committed)
        await consumer.perform_seek()
    return consumer


@pytest.mark.parametrize(
    ("start", "committed", "revoked", "back"),
    [
        (0, 39, False, {HERE: 0}),  # the store was emptied
        (12, 39, False, {HERE: 12}),  # it was restored from a backup
        (39, 39, False, {}),
        (50, 39, False, {}),  # what was counted and not committed is known as counted
        (0, 39, True, {}),  # committed since it was asked: the answer is an old one
    ],
)
def test_reading_goes_back_to_the_store_but_not_by_an_old_answer(
    start: int, committed: int, revoked: bool, back: dict[TP, int]
) -> None:
    assert asyncio.run(assigned(start, committed, revoked=revoked)).back == back


@pytest.mark.parametrize(
    ("start", "committed", "goes_on"),
    [
        (0, 39, {7: 0}),  # the store has nothing of what was read: what is gone since is missing there
        (12, 39, {7: 12}),
        (50, 39, {7: 39}),
        (0, 0, {}),  # nobody has read it: what is gone was never to be counted
    ],
)
def test_where_it_goes_on_is_known_so_that_what_is_gone_there_is_a_loss(
    start: int, committed: int, goes_on: dict[int, int]
) -> None:
    consumer = asyncio.run(assigned(start, committed))
    app = cast(StageApp, consumer.app)
    with mock.patch.object(StageApp, "consumer", consumer):
        assert FaustMembership(app).committed(HERE.topic) == goes_on


def test_a_partition_that_is_new_to_a_group_that_has_read_before_is_owed_from_its_start() -> None:
    """What came into it and was deleted while no worker ran was to be counted."""
    consumer = asyncio.run(assigned(39, 39))
    consumer._committed_offset[THERE] = None
    with mock.patch.object(StageApp, "consumer", consumer):
        assert FaustMembership(cast(StageApp, consumer.app)).committed(HERE.topic) == {7: 39, 8: 0}
