"""Faust app of a stage (one consumer group), its settings, and its streams tied to the worker loop.

This is the only package that imports Faust. Why each setting is as it is was measured; see
docs/decisions/one-worker-loop.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, cast

import faust
from faust import streams
from faust.app.base import BootStrategy
from faust.auth import SASLCredentials, SSLCredentials
from faust.transport.consumer import Consumer
from faust.types import TP

from pipeline.kafka import Broker, KafkaSecurity, always_leave, guard_batches, never_create_topics
from pipeline.model.errors import ConfigError, SmidgenError
from pipeline.settings.config import Settings
from pipeline.worker.backpressure import BoundedQueue, take_bounded
from pipeline.worker.consumer import StageConsumer, StageTransport
from pipeline.worker.loop import StageLoop

logger = logging.getLogger(__name__)

SESSION_TIMEOUT_S = 10.0
"""After this silence a worker counts as dead and its partitions go to others."""

REBALANCE_TIMEOUT_S = 120.0
"""Seconds that the group waits for a worker to finish its present batch before partitions move."""

MAX_POLL_INTERVAL_S = 1000.0
COMMIT_INTERVAL_S = 2.0

FETCH_BYTES = 1024**2
"""Most bytes fetched of a partition at once; the broker still returns a larger message, alone."""

METADATA_AGE_MS = 10_000
"""Longest age of the consumer's metadata of partition leaders.

For a partition without a committed offset, aiokafka asks its leader for the first offset. If that broker is
no longer the leader, aiokafka waits for new metadata: by its default a worker then stops for 5 minutes.
"""


class _ConsumerOnly(BootStrategy):
    """Boot strategy without producer (ours waits for confirmation, Faust's does not) and web server."""

    enable_kafka_producer = False
    enable_web = False


StartsOf = Callable[[Collection[tuple[str, int]]], Awaitable[Mapping[tuple[str, int], int]]]
"""Returns the start offsets of assigned partitions, by topic (broker's name) and number, if they have any."""


class StageApp(faust.App):
    """A Faust app that writes nothing to disk and reads no environment."""

    BootStrategy = _ConsumerOnly
    starts_of: StartsOf
    on_failure: Callable[[BaseException], None]
    starts: Mapping[tuple[str, int], int] = MappingProxyType({})
    back: Mapping[TP, int] = MappingProxyType({})  # where reading went back to, of those where it did
    logger = logging.getLogger("faust.app")  # what Faust says of itself is not Smidgen's own log
    batch_bytes = 0  # set by create_app before anything is connected

    async def on_first_start(self) -> None:
        """Skip the data directory that Faust would create for tables."""

    async def _on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Forget the partitions' start offsets: Faust may seek once more before it has new ones.

        Messages stored since are committed, and the former offsets would make Faust read them again.
        """
        self.starts = {}
        await super()._on_partitions_revoked(revoked)

    async def _on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Determine the partitions' start offsets before anything of them is fetched."""
        try:
            self.starts = await self.starts_of([(tp.topic, tp.partition) for tp in assigned])
        except SmidgenError as error:  # nothing is fetched: what is not counted must not be committed
            self.on_failure(error)
            return
        await super()._on_partitions_assigned(assigned, generation_id)

    def FlowControlQueue(self, maxsize: int | None = None, *, clear_on_resume: bool = False) -> BoundedQueue:
        """Return a stream's queue, bounded by bytes too."""
        return BoundedQueue(
            maxsize=maxsize,
            max_bytes=self.batch_bytes,
            flow_control=self.flow_control,
            clear_on_resume=clear_on_resume,
        )


def create_app(
    settings: Settings, group: str, starts_of: StartsOf, on_failure: Callable[[BaseException], None]
) -> StageApp:
    """Return the app of one stage, a member of its consumer group; nothing is connected until it starts.

    ``starts_of`` is asked of every assignment where it goes on, see ``runtime.worker.starts``;
    what it raises is handed to ``on_failure``.

    Raises:
        ConfigError: the broker's address or security is wrong, or Faust lacks its compiled streams.
    """
    if getattr(streams, "_CStreamIterator", None) is None:
        # The pure Python iterator acknowledges messages that it skips during a rebalance: they would be lost.
        raise ConfigError("faust-streaming is installed without its compiled part (or NO_CYTHON is set)")
    broker = Broker.of(settings)
    guard_batches()
    never_create_topics()
    always_leave()
    session_s = settings.instance_away_s if settings.instance else SESSION_TIMEOUT_S
    app = StageApp(
        group,
        broker=";".join(f"kafka://{server}" for server in broker.servers),
        broker_credentials=_credentials(broker.security),
        env={},
        autodiscover=False,
        value_serializer="raw",  # Faust's own decoding errors would bypass the dead letters
        key_serializer="raw",
        processing_guarantee="at_least_once",
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,  # and with that a plain round-robin assignor
        store="memory://",
        web_enabled=False,
        stream_wait_empty=False,  # otherwise stopping hangs
        stream_buffer_maxsize=max(64, 2 * settings.batch_size),
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=FETCH_BYTES,
        consumer_metadata_max_age_ms=METADATA_AGE_MS,
        broker_max_poll_interval=MAX_POLL_INTERVAL_S,
        consumer_group_instance_id=settings.instance or None,
        broker_session_timeout=session_s,
        broker_rebalance_timeout=REBALANCE_TIMEOUT_S,
        broker_request_timeout=max(REBALANCE_TIMEOUT_S, session_s) + 10.0,
        broker_heartbeat_interval=2.0,
        broker_commit_interval=COMMIT_INTERVAL_S,
        broker_commit_every=settings.batch_size,
        broker_max_poll_records=settings.batch_size,
    )
    app.batch_bytes = settings.batch_bytes
    app.starts_of, app.on_failure = starts_of, on_failure
    app.transport = StageTransport(app.conf.broker_consumer, app)
    return app


def _credentials(security: KafkaSecurity) -> SASLCredentials | SSLCredentials | None:
    """Return the credentials for Faust's client; None for a plain connection without a login."""
    if security.logs_in:
        return SASLCredentials(
            username=security.username,
            password=security.password,
            ssl_context=security.context,
            mechanism=security.mechanism,
        )
    return SSLCredentials(security.context) if security.encrypted else None


class FaustMembership:
    """The membership of an app in its consumer group."""

    def __init__(self, app: StageApp) -> None:
        self._app = app

    def generation(self) -> int:
        """Return the number of the present assignment."""
        return int(self._app.consumer_generation_id)

    def partitions(self, topic: str) -> list[int]:
        """Return the assigned partitions of a topic (broker's name), sorted."""
        return sorted(tp.partition for tp in self._app.consumer.assignment() if tp.topic == topic)

    def committed(self, topic: str) -> dict[int, int]:
        """Return the next offset of each assigned partition; empty if all are new to the group."""
        consumer = cast(Consumer, self._app.consumer)
        offsets = {
            tp.partition: consumer._committed_offset[tp] for tp in consumer.assignment() if tp.topic == topic
        }
        starts = {p: start for (name, p), start in self._app.starts.items() if name == topic and start}
        stored = {partition: offset for partition, offset in offsets.items() if offset is not None}
        # To its start, too: what retention has taken from there on was read once, and the store lacks it.
        back = {tp.partition: start for tp, start in self._app.back.items() if tp.topic == topic}
        starts_known = starts | stored | back
        # A group that has read before owes all of a partition that is new to it, from offset 0 on.
        return {**dict.fromkeys(offsets, 0), **starts_known} if starts_known else {}

    async def first(self, topic: str, partition: int) -> int:
        """Return the offset of the oldest message that a partition still has."""
        tp = TP(topic, partition)
        return int((await self._app.consumer.earliest_offsets(tp))[tp])

    def fetched(self, topic: str, partition: int, begin: int, end: int) -> bool:
        """Return whether this process fetched any message of a partition in [``begin``, ``end``)."""
        return cast(StageConsumer, self._app.consumer).fetched.any_within(TP(topic, partition), begin, end)

    async def commit(self) -> object:
        """Commit the acknowledged offsets."""
        return await self._app.consumer.commit()


def connect(app: StageApp, loop: StageLoop, settings: Settings, on_ready: Callable[[], None]) -> None:
    """Tie the app's streams and its rebalances to a worker loop; ``on_ready`` is called when assigned."""
    for topic in loop.input_topics:
        _add_stream(app, loop, topic, settings)

    stands_since: float | None = None

    async def revoked(*arguments: Any, **_kwargs: Any) -> None:
        nonlocal stands_since
        if arguments[-1]:  # the partitions; none before the first assignment
            stands_since = stands_since or time.monotonic()
        await loop.pause()
        await app.consumer.commit()  # what was just finished: the next owner need not do it again

    async def assigned(*_args: Any, **_kwargs: Any) -> None:
        nonlocal stands_since
        loop.resume()
        on_ready()
        if stands_since is not None:
            count, stood_s = len(app.consumer.assignment()), time.monotonic() - stands_since
            logger.info("%s: rebalanced, %d partitions here, stood still %.1f s", app.conf.id, count, stood_s)
            stands_since = None

    if loop.calls.idle_s:
        app.task(loop.idle)
    app.on_partitions_revoked.connect(revoked)
    app.on_partitions_assigned.connect(assigned)


def _add_stream(app: StageApp, loop: StageLoop, topic: str, settings: Settings) -> None:
    async def worker(untyped: faust.StreamT[Any]) -> None:
        stream = cast(streams.Stream[Any], untyped)
        batches = take_bounded(
            stream,
            max_messages=settings.batch_size,
            max_bytes=settings.batch_bytes,
            within_s=settings.batch_wait_s,
        )
        await loop.run(topic, batches, lambda: not cast(Any, stream.channel).queue.empty())

    channel = app.topic(topic, value_serializer="raw", key_serializer="raw", internal=False)
    app.agent(channel, name=f"{app.conf.id}.{topic}", concurrency=1)(worker)
