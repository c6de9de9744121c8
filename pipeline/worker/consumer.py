"""The consumer of a stage: its start offsets after each assignment, and the offsets it fetched."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.transport.consumer import ensure_TPset
from faust.transport.drivers import aiokafka
from faust.types import TP

from pipeline.kafka import keep_membership
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.worker.app import StageApp

logger = logging.getLogger(__name__)


class FetchedOffsets:
    """Offsets of each partition that came from the broker, as runs without a gap.

    An offset between two messages that never came is not in the log: it was compacted, or marks a
    transaction. A message that came but is missing in the worker's loop was lost between the client and the
    loop. The consumer's thread writes, the loop's thread reads.
    """

    def __init__(self) -> None:
        self._runs: dict[TP, list[list[int]]] = defaultdict(
            list
        )  # begin and end of each, in order of arrival
        self._lock = threading.Lock()

    def add(self, partition: TP, offsets: Sequence[int]) -> None:
        """Note ascending offsets of one partition."""
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
        """Return whether an offset in [``begin``, ``end``) came, and forget the runs before it."""
        with self._lock:
            runs = self._runs[partition] = [run for run in self._runs[partition] if run[1] > begin]
            return any(run[0] < end for run in runs)

    def keep(self, partitions: Iterable[TP]) -> None:
        """Forget all partitions but these."""
        with self._lock:
            for partition in self._runs.keys() - set(partitions):
                del self._runs[partition]


class Turns:
    """Turns of partitions: the next one is the partition whose last turn is longest ago."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._last: dict[TP, int] = {}

    def next_of(self, ready: Sequence[TP]) -> TP:
        """Return the partition whose turn it is, and note the turn."""
        turn = min(ready, key=lambda tp: self._last.get(tp, -1))
        self._last[turn] = next(self._numbers)
        return turn


class _ConsumerThread(aiokafka.AIOKafkaConsumerThread):
    """The thread of a consumer: it watches its static membership, and reads its partitions in turn."""

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

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Look whether a partition is stuck, once it is known which of its messages comes next.

        Faust looks every few seconds, and a partition that waits for its offset then would end the worker.
        """
        assignment = getattr(self._ensure_consumer()._subscription.subscription, "assignment", None)
        state = assignment and assignment.state_value(TopicPartition(tp.topic, tp.partition))
        if state and state.has_valid_position:
            super().verify_event_path(now, tp)

    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> Any:
        """Return at most ``max_records`` messages of the partition whose turn it is, and note their offsets.

        They are of one partition, since a batch takes INSERTs for each of its partitions, and Faust mixes
        the messages it receives. Partitions take turns, since the library returns all fetched messages of
        one, thousands if they are small: a partition with few messages would wait for the backlog of others.
        """
        ready = [tp for tp in consumer._fetcher._records if tp in active_partitions]
        if ready:
            active_partitions, timeout = {self.turns.next_of(ready)}, 0
        else:  # wait for one message; the next calls return those fetched with it
            max_records = 1
        records = await super()._fetch_records(consumer, active_partitions, timeout, max_records)
        fetched = cast(StageConsumer, self.consumer).fetched
        for tp, messages in records.items():
            fetched.add(tp, [message.offset for message in messages])
        return records


class _RebalanceListener(aiokafka.ConsumerRebalanceListener):
    """A listener with its own assignment numbers: Kafka gives a rejoining static member its former one."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Pass the assigned partitions on, under a new number."""
        app = self._thread.app
        app.consumer_generation_id += 1
        await self._thread.on_partitions_assigned(ensure_TPset(assigned), app.consumer_generation_id)


class StageConsumer(aiokafka.Consumer):
    """A consumer that reads each partition from its commit, or from the store's offset if that is lower."""

    RebalanceListener = _RebalanceListener

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.fetched = FetchedOffsets()
        super().__init__(*arguments, **named)

    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek each partition to its commit, or to its beginning without a commit.

        The library does not seek partitions without a commit, so messages that were fetched and dropped
        during a rebalance would never be read.
        """
        committed = await super().seek_to_committed()
        if new := [tp for tp, offset in committed.items() if not offset]:
            await self._thread.seek_to_beginning(*new)
        return committed

    async def perform_seek(self) -> None:
        """Seek each partition to its commit, or to its entry in the app's ``starts`` if that comes first."""
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
        """Yield fetched messages until the next assignment.

        Faust notes its read offset after it has handed a message over, even if the message is of an earlier
        assignment by then: messages that are read again would then be skipped as already read.
        """
        async for tp, message in super().getmany(timeout):
            yield tp, message
            if message.generation_id != self.app.consumer_generation_id:
                self._read_offset[tp] = self._committed_offset[tp]
                return


class StageTransport(aiokafka.Transport):
    """Faust's transport with the consumer of a stage."""

    Consumer = StageConsumer
