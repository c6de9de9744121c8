"""The consumer of a stage: where it reads from after each assignment, and what it was given."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from aiokafka import AIOKafkaConsumer
from faust.transport.consumer import ensure_TPset
from faust.transport.drivers import aiokafka
from faust.types import TP

from pipeline.kafka import keep_membership
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.worker.app import StageApp

logger = logging.getLogger(__name__)


class FetchedOffsets:
    """Which offsets of each partition came from the broker, in runs without a gap.

    What lies between two messages and never came, the log has not: it was compacted, or is the mark of a
    transaction. What came and is missing was lost between the client and the worker's loop. Written by the
    thread of the consumer, read by that of the loop.
    """

    def __init__(self) -> None:
        self._runs: dict[TP, list[list[int]]] = defaultdict(
            list
        )  # begin and end of each, in order of arrival
        self._lock = threading.Lock()

    def add(self, partition: TP, offsets: Sequence[int]) -> None:
        """Note offsets, which rise, of one partition."""
        with self._lock:
            runs = self._runs[partition]
            if not (runs and runs[-1][1] == offsets[0]):
                runs.append([offsets[0], offsets[0]])
            if offsets[-1] - offsets[0] == len(offsets) - 1:
                runs[-1][1] = offsets[-1] + 1
                return
            for offset in offsets:
                if runs[-1][1] != offset:
                    runs.append([offset, offset])
                runs[-1][1] = offset + 1

    def any_within(self, partition: TP, begin: int, end: int) -> bool:
        """Return whether one from ``begin`` to before ``end`` came, and forget those before."""
        with self._lock:
            runs = self._runs[partition] = [run for run in self._runs[partition] if run[1] > begin]
            return any(run[0] < end for run in runs)

    def keep(self, partitions: Iterable[TP]) -> None:
        """Forget all partitions but these."""
        with self._lock:
            for partition in self._runs.keys() - set(partitions):
                del self._runs[partition]


class Turns:
    """Whose turn it is among partitions: that of the one whose last turn is longest ago."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._last: dict[TP, int] = {}

    def next_of(self, ready: Sequence[TP]) -> TP:
        """Give one of the partitions its turn."""
        turn = min(ready, key=lambda tp: self._last.get(tp, -1))
        self._last[turn] = next(self._numbers)
        return turn


class _ConsumerThread(aiokafka.AIOKafkaConsumerThread):
    """The thread of a consumer: it minds its name in the group, and takes from its partitions in turn."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.turns = Turns()

    async def on_start(self) -> None:
        """Connect."""
        await super().on_start()
        app = cast("StageApp", self.app)
        if name := app.conf.consumer_group_instance_id:
            error = ConfigError(f"{app.conf.id}: another worker has joined as instance {name}; this one ends")
            keep_membership(
                self._ensure_consumer(),
                app.conf.broker_session_timeout,
                lambda: app.loop.call_soon_threadsafe(app.on_failure, error),
            )

    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> Any:
        """Return messages of the partition whose turn it is, ``max_records`` at most, and note which came.

        Of one partition, since a batch is INSERTs for each of its partitions, and Faust mixes what it gets.
        In turn, since the library gives all that was fetched, thousands where they are small, and whoever's
        come later wait behind them: one with few messages would wait for the backlog of the others.
        """
        ready = [tp for tp in consumer._fetcher._records if tp in active_partitions]
        if ready:
            active_partitions, timeout = {self.turns.next_of(ready)}, 0
        else:  # wait for one message; what came with it is handed out by the next calls
            max_records = 1
        records = await super()._fetch_records(consumer, active_partitions, timeout, max_records)
        fetched = cast(StageConsumer, self.consumer).fetched
        for tp, messages in records.items():
            fetched.add(tp, [message.offset for message in messages])
        return records


class _RebalanceListener(aiokafka.ConsumerRebalanceListener):
    """Numbers assignments itself: Kafka gives a static member that joins again the number that it had."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Pass on what was assigned, under a number of its own."""
        app = self._thread.app
        app.consumer_generation_id += 1
        await self._thread.on_partitions_assigned(ensure_TPset(assigned), app.consumer_generation_id)


class StageConsumer(aiokafka.Consumer):
    """A consumer that reads each partition from where it was committed, or where the store is behind that."""

    RebalanceListener = _RebalanceListener

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.fetched = FetchedOffsets()
        super().__init__(*arguments, **named)

    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek each partition to its commit, and to its start if it has none.

        The library leaves the latter where they are, so that what was fetched of them during a rebalance,
        and dropped for it, would never be read.
        """
        committed = await super().seek_to_committed()
        if new := [tp for tp, offset in committed.items() if not offset]:
            await self._thread.seek_to_beginning(*new)
        return committed

    async def perform_seek(self) -> None:
        """Seek each partition to its commit, or to its start if that comes first."""
        await super().perform_seek()
        app = cast("StageApp", self.app)
        app.back = back = {
            tp: start
            for tp in self.assignment()
            if (start := app.starts.get((tp.topic, tp.partition))) is not None
            and start < (self._committed_offset[tp] or 0)
        }
        for tp, start in back.items():
            text = "%s partition %d: committed up to %d, stored up to %d: reading from there again"
            logger.warning(text, tp.topic, tp.partition, self._committed_offset[tp], start)
        if back:
            await self.seek_wait(back)
            self._read_offset.update(back)
            self._committed_offset.update({tp: start or None for tp, start in back.items()})
        self.fetched.keep(self.assignment())

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        """Yield what was fetched, until another assignment comes.

        Faust notes how far it has read once it has handed a message over, though by then that may be one of
        an earlier assignment; what is read again would then be taken for known.
        """
        async for tp, message in super().getmany(timeout):
            yield tp, message
            if message.generation_id != self.app.consumer_generation_id:
                self._read_offset[tp] = self._committed_offset[tp]
                return


class StageTransport(aiokafka.Transport):
    """Faust's transport with the consumer of a stage."""

    Consumer = StageConsumer
