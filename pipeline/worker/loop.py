"""The one worker loop: take, decode, handle, publish, acknowledge.

The loop does not depend on Faust; ``pipeline.worker.app`` connects the two. A message is acknowledged only
after all its results are stored and published, in the order of its partition. A failure before that leaves
it unacknowledged, so it is read again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from pipeline.kafka import MessagesRefused, is_set_within
from pipeline.model import Outgoing, Record
from pipeline.model.errors import ConfigError, MessagesSkipped, QueryRefused, StoreUnavailable
from pipeline.settings.topics import Topics
from pipeline.stages.base import Stage
from pipeline.telemetry.metrics import Telemetry
from pipeline.worker.dlq import (
    DeadLetterLimit,
    DeadLetterWriter,
    LimitConfig,
    Rejected,
    TooManyDeadLetters,
    printable,
    source_of,
)
from pipeline.worker.group import Membership, MessagePublisher
from pipeline.worker.intake import FetchedMessage, PendingEvent, TopicIntake, rejected
from pipeline.worker.misplaced import Misplaced
from pipeline.worker.omissions import FIRST_WAIT, Omissions
from pipeline.worker.stage_calls import StageCalls

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 15.0
LAST_REFUSED_S = 60.0
REPORT_S = 60.0
COMMIT_S = 2.0
"""Seconds for which a batch with dead letters waits for its commit."""

T = TypeVar("T")


class StageLoop:
    """Drives one stage over the batches of its input topics, one batch at a time."""

    def __init__(
        self,
        stage: Stage,
        topics: Topics,
        membership: Membership,
        publisher: MessagePublisher,
        dead_letters: DeadLetterWriter,
        telemetry: Telemetry,
        *,
        on_failure: Callable[[BaseException], None],
        limit: LimitConfig = LimitConfig(),  # noqa: B008 - frozen
        expected: Collection[str] = frozenset(),
        first_retry_s: float = FIRST_RETRY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stage = stage
        self.calls = StageCalls(stage)
        self._membership = membership
        self._publisher = publisher
        self._dead_letters = dead_letters
        self._telemetry = telemetry
        self._on_failure = on_failure
        self._first_retry_s = first_retry_s
        self._monotonic = monotonic
        self._called: float | None = None
        self._unreported = 0
        self._report_from = -math.inf
        self._inputs = {
            topics[name].name: TopicIntake(
                name,
                decode,
                topics[name].max_message_bytes,
                DeadLetterLimit(limit.within() if topics[name].internal else limit, monotonic, expected),
            )
            for name, decode in stage.inputs.items()
        }
        self._omissions = Omissions(limit.share)
        self._misplaced = Misplaced(topics, monotonic)
        self._turn = asyncio.Lock()
        self._give_up = asyncio.Event()
        self._stopping = False

    @property
    def input_topics(self) -> tuple[str, ...]:
        """The broker's names of the topics that the stage reads."""
        return tuple(self._inputs)

    @property
    def call_s(self) -> float:
        """Seconds since the present call of the stage began; 0 between calls."""
        return 0.0 if self._called is None else self._monotonic() - self._called

    @property
    def bad_sources(self) -> Mapping[str, int]:
        """Number of sources that send nothing usable, by input topic (logical name)."""
        return {source.logical: source.limit.bad for source in self._inputs.values()}

    async def run(
        self,
        topic: str,
        batches: AsyncIterator[Sequence[PendingEvent]],
        others_wait: Callable[[], bool] = lambda: False,
    ) -> None:
        """Work through the batches of one topic (broker's name) until cancelled.

        ``others_wait`` returns whether another batch waits while one is handled.
        An unexpected exception is reported to ``on_failure`` and nothing is acknowledged any more.
        """
        self._inputs[topic].others_wait = others_wait
        async for batch in batches:
            async with self._turn:
                if self._give_up.is_set():
                    continue  # stopping or revoked: the batch comes again
                try:
                    await self._step(self._inputs[topic], batch)
                except Exception as error:  # any exception: the process stops without acknowledging
                    self._fail(topic, batch, error)

    async def idle(self) -> None:
        """Call the stage's ``idle`` at intervals, for work that is due without messages, until cancelled.

        Only the process of the group that has the first partition of each input calls it.
        """
        while True:
            await asyncio.sleep(self.calls.idle_s)
            async with self._turn:
                if self._give_up.is_set() or not all(
                    0 in self._membership.partitions(topic) for topic in self._inputs
                ):
                    continue
                try:
                    await self._done(self.calls.idle, tries=1)
                except QueryRefused as error:
                    self._log(logging.WARNING, "%s: query refused, trying again later: %s", error)
                except Exception as error:  # as in run
                    self._fail("", (), error)

    async def pause(self) -> None:
        """Take no more batches, and wait until the present one is finished or given up.

        Called when partitions are revoked: the group waits for it, so no other process reads them while this
        one is still storing a batch of theirs.
        """
        self._give_up.set()
        async with self._turn:
            for source in self._inputs.values():
                source.generation = None  # who is given the same again goes on from its commit too

    def resume(self) -> None:
        """Take batches again, unless the loop is stopping."""
        if not self._stopping:
            self._give_up.clear()

    async def stop(self) -> None:
        """Pause for good."""
        self._stopping = True
        await self.pause()

    async def _step(self, source: TopicIntake, batch: Sequence[PendingEvent]) -> None:
        began = self._monotonic()
        generation = self._membership.generation()
        events = [event for event in batch if event.message.generation_id == generation]
        if not events:
            return
        if source.generation != generation:
            name = events[0].message.topic
            source.begin(generation, self._membership.committed(name))
            await self._in_thread(self.calls.assigned, source.logical, self._membership.partitions(name))
        self._misplaced.look(self.stage.name, source.logical, events)
        await self._report_gaps(source, events)
        records, unusable = await self._in_thread(source.read, events)
        if unusable and not await self._dead_letters.send(unusable, self._give_up):
            return
        if unusable:
            self._report(unusable)
        whole = [found for record in records if (found := source.assembler.add(record)) is not None]
        if whole and not await self._finished(source, events, whole):
            return
        if await self._stored(self._passed, source.logical, events) is None:
            return
        if self._membership.generation() == generation:
            source.acknowledge(events, self.calls.held(source.logical))
            if unusable:
                await self._commit()
        self._telemetry.batch(events, whole, unusable, self._monotonic() - began)

    async def _report_gaps(self, source: TopicIntake, events: Sequence[PendingEvent]) -> None:
        """Log and count messages that were deleted before they were read; offsets without one are no loss.

        Raises:
            MessagesSkipped: this process fetched messages that did not reach the loop.
        """
        topic = events[0].message.topic
        for partition, wanted, found in source.gaps(events):
            first = min(found, await self._membership.first(topic, partition))
            if first > wanted:
                text = "%s: %s partition %d: offsets %d to %d were deleted before they were read"
                where = {"topic": source.logical, "partition": partition}
                self._log(logging.ERROR, text, *where.values(), wanted, first - 1, **where)
                self._telemetry.lost(first - wanted)
            begin = max(first, wanted)
            if self._membership.fetched(topic, partition, begin, found):
                skipped = f"{source.logical} partition {partition}: offsets {begin} to {found - 1}"
                raise MessagesSkipped(f"{skipped} were skipped by the client: a new start reads them")

    async def _commit(self) -> None:
        """Commit now, not within seconds: messages that became dead letters must not be read again.

        A message that is read again may be usable by then, and would be counted beside its replay.
        """
        commit = asyncio.ensure_future(self._membership.commit())
        # A commit that takes longer continues in the background: the next one follows within seconds.
        done, _ = await asyncio.wait({commit}, timeout=COMMIT_S)
        if done and not commit.cancelled() and (error := commit.exception()):
            self._log(logging.WARNING, "%s: committing: %s", error)

    def _report(self, rejected: Sequence[Rejected]) -> None:
        """Log the number of dead letters and the last one, at most once in REPORT_S."""
        self._unreported += len(rejected)
        now = self._monotonic()
        if now < self._report_from:
            return
        last = rejected[-1]
        where = {"topic": last.topic, "partition": last.partition, "offset": last.offset}
        reason = printable(last.reason)[:300]
        counted = {"service": source_of(last.key), "dead_letters": self._unreported}
        text = "%s: %d dead letters; the last one: %s partition %d offset %d: %s"
        self._log(logging.WARNING, text, self._unreported, *where.values(), reason, **where, **counted)
        self._unreported, self._report_from = 0, now + REPORT_S

    async def _finished(
        self, source: TopicIntake, events: Sequence[PendingEvent], records: Sequence[Record]
    ) -> bool:
        """Handle records until all are finished; False if given up.

        If the store refuses a query of theirs, they are tried one by one, and those it still refuses are
        left out.
        """
        sources = set(map(source_of, source.keys_of(records, events)))
        tries = self._omissions.tries(*sources) if len(records) == 1 else 1
        more = True
        while more:
            try:
                if self._give_up.is_set() or not await self._handled(records, tries):
                    return False
                self._omissions.handled(sources)
            except QueryRefused as error:
                if len(records) > 1:
                    return all([await self._finished(source, events, [record]) for record in records])
                reason = f"left out after {tries} tries: {error}" if tries > 1 else f"left out: {error}"
                if not await self._left_out(source.messages_of(records[0], events), records[0], reason):
                    return False
                tries = 1
            more = self.calls.unfinished and not (source.others_wait() and self.calls.rest())
        return True

    async def _left_out(self, messages: Sequence[FetchedMessage], record: Record, reason: str) -> bool:
        """Turn the messages of a record into dead letters and note that; False if given up."""
        service = source_of(messages[-1].key)
        if why := self._omissions.left_out(service):
            raise TooManyDeadLetters(f"{why}; the last one was {reason}")
        self._log(logging.ERROR, "%s: service=%s: %s", service, reason, service=service)
        if not await self._dead_letters.send([rejected(m, reason) for m in messages], self._give_up):
            return False
        self._telemetry.left_out(len(messages))
        return await self._stored(self._noted, record) is not None

    def _noted(self, record: Record) -> bool:
        self.calls.left_out(record)
        return True

    async def _handled(self, records: Sequence[Record], tries: int) -> bool:
        """Handle a batch or a part of it, publish, settle; False if given up.

        Raises:
            QueryRefused: the store refused a query ``tries`` times.
        """
        return await self._done(self.stage.handle, records, tries=tries if self.calls.leaves_out else 0)

    async def _done(self, call: Callable[..., list[Outgoing]], *arguments: Any, tries: int) -> bool:
        """Make a call of the stage, publish its results, settle; False if given up."""
        outgoing = await self._stored(call, *arguments, tries=tries)
        if outgoing is None:
            return False
        oversized = [message for message in outgoing if not self._publisher.fits(message)]
        if oversized and not await self._dead_letters.send_oversized(oversized, self._give_up):
            return False
        fitting = [message for message in outgoing if self._publisher.fits(message)]
        try:
            if fitting and not await self._publisher.publish(fitting, self._give_up):
                return False
        except MessagesRefused as error:  # this broker's limit of the topic is lower than in topics.yaml
            refused = [fitting[position] for position in sorted(error.reasons)]
            if not await self._dead_letters.send_oversized(refused, self._give_up):
                return False
            oversized += refused
        self._telemetry.published(len(outgoing) - len(oversized), len(oversized))
        return await self._stored(self._settled) is not None

    def _settled(self) -> bool:
        self.stage.settled()
        return True

    def _passed(self, topic: str, events: Sequence[PendingEvent]) -> bool:
        self.calls.passed(topic, {p: last for p, (_, last) in _spans(events).items()})
        return True

    async def _stored(self, call: Callable[..., T], *arguments: Any, tries: int = 0) -> T | None:
        """Repeat a call of the stage until the store is available; None if given up.

        Raises:
            QueryRefused: the store refused ``tries`` times; with 0 the call is repeated without end.
        """
        delay_s = self._first_retry_s
        refused = 0
        while True:
            try:
                return await self._in_thread(call, *arguments)
            except StoreUnavailable as error:
                if tries and isinstance(error, QueryRefused):
                    refused += 1
                    if refused == tries:
                        raise
                    delay_s = max(delay_s, self._first_retry_s * FIRST_WAIT)
                what = "query refused" if isinstance(error, QueryRefused) else "store unavailable"
                self._log(logging.WARNING, f"%s: {what}, trying again: %s", error)
                self._telemetry.retried()
            if await is_set_within(self._give_up, delay_s):
                return None
            delay_s = min(delay_s * 2, max(LAST_RETRY_S, LAST_REFUSED_S if refused else 0.0))

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread; on cancellation, wait for the thread before raising.

        Otherwise a second call of the stage could run beside the first.
        """
        self._called = self._monotonic()
        call = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            await asyncio.wait({call})
            raise
        finally:
            self._called = None

    def _fail(self, topic: str, batch: Sequence[PendingEvent], error: Exception) -> None:
        self._stopping = True
        self._give_up.set()
        if isinstance(error, TooManyDeadLetters):  # expected: one line, no traceback
            reason = (
                "%s: stopping, most of %s is bad: %s. Nothing of this batch is acknowledged; see "
                "dead_letter_limit"
            )
            self._log(logging.ERROR, reason, topic, error, topic=topic)
        elif isinstance(error, ConfigError | MessagesSkipped):  # such as tables that were dropped: one line
            self._log(logging.ERROR, "%s: %s. Nothing of this batch is acknowledged", error, topic=topic)
        else:
            spans = _spans(batch)
            text = ", ".join(f"partition {p} offsets {a} to {b}" for p, (a, b) in spans.items())
            position = {}
            if len(spans) == 1:
                partition, (first, last) = next(iter(spans.items()))
                position = {"partition": partition, "offset": first, "last_offset": last}
            extra = {"stage": self.stage.name, "topic": topic, **position}
            where = f"{topic} {text}" if spans else "what is due by the clock"
            logger.error("%s: failed on %s", self.stage.name, where, exc_info=error, extra=extra)
        self._on_failure(error)

    def _log(self, level: int, text: str, *arguments: object, **extra: object) -> None:
        """Log a line that begins with the stage; ``extra`` are its fields in JSON logs."""
        logger.log(level, text, self.stage.name, *arguments, extra={"stage": self.stage.name, **extra})


def _spans(batch: Sequence[PendingEvent]) -> dict[int, tuple[int, int]]:
    """Return the first and the last offset of each partition in a batch."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for event in batch:
        offsets[event.message.partition].append(event.message.offset)
    return {
        partition: (min(partition_offsets), max(partition_offsets))
        for partition, partition_offsets in sorted(offsets.items())
    }
