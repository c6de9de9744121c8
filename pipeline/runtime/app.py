"""Faust, configured: one app (one consumer group) a stage, and its streams tied to the worker loop.

This is the only package that imports Faust. Why each setting is as it is was measured; see
docs/operations.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import faust
from faust import streams
from faust.app.base import BootStrategy
from faust.transport.consumer import Consumer

from pipeline.config import Settings
from pipeline.errors import ConfigError
from pipeline.runtime.identity import bootstrap_servers
from pipeline.runtime.loop import StageLoop
from pipeline.runtime.publisher import OVERHEAD_BYTES
from pipeline.stages.base import Stage
from pipeline.topics import Topics

SESSION_TIMEOUT_S = 10.0
"""After this silence a worker counts as dead and its partitions go to others."""

REBALANCE_TIMEOUT_S = 120.0
"""How long the group waits for a worker to finish the batch it is at before its partitions move."""

MAX_POLL_INTERVAL_S = 1000.0
COMMIT_INTERVAL_S = 2.0


def group_name(stage: str) -> str:
    """Return the consumer group of a stage."""
    return f"smidgen-{stage}"


class _ConsumerOnly(BootStrategy):
    """Starts no producer (ours waits for confirmation, Faust's does not) and no web server."""

    enable_kafka_producer = False
    enable_web = False


class StageApp(faust.App):
    """A Faust app that writes nothing to disk and reads no environment."""

    BootStrategy = _ConsumerOnly
    logger = logging.getLogger("faust.app")  # what Faust says of itself is not Smidgen's own log

    async def on_first_start(self) -> None:
        """Skip the data directory that Faust would create for tables."""


def create_app(settings: Settings, topics: Topics, stage: Stage) -> StageApp:
    """Make the app of one stage; nothing is connected until it starts.

    Raises:
        ConfigError: the broker's address is malformed, or Faust lacks its compiled streams.
    """
    if getattr(streams, "_CStreamIterator", None) is None:
        # The pure Python iterator acknowledges messages that it skips during a rebalance: they would be lost.
        raise ConfigError("faust-streaming is installed without its compiled part (or NO_CYTHON is set)")
    largest = max(topics[name].max_message_bytes for name in stage.inputs)
    return StageApp(
        group_name(stage.name),
        broker=";".join(f"kafka://{server}" for server in bootstrap_servers(settings.broker)),
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
        consumer_max_fetch_size=largest + OVERHEAD_BYTES,
        broker_max_poll_interval=MAX_POLL_INTERVAL_S,
        broker_session_timeout=SESSION_TIMEOUT_S,
        broker_rebalance_timeout=REBALANCE_TIMEOUT_S,
        broker_request_timeout=REBALANCE_TIMEOUT_S + 10.0,
        broker_heartbeat_interval=2.0,
        broker_commit_interval=COMMIT_INTERVAL_S,
        broker_commit_every=settings.batch_size,
    )


class FaustMembership:
    """What the consumer group gave to an app."""

    def __init__(self, app: StageApp) -> None:
        self._app = app

    def generation(self) -> int:
        """Return the number of the present assignment."""
        return int(self._app.consumer_generation_id)

    def partitions(self, topic: str) -> list[int]:
        """Return the assigned partitions of a topic (broker's name), sorted."""
        return sorted(tp.partition for tp in self._app.consumer.assignment() if tp.topic == topic)

    def lag(self) -> int | None:
        """Return how many messages of the assigned partitions are not acknowledged; None if not known."""
        if not self._app.started:
            return None
        consumer = cast(Consumer, self._app.consumer)
        lag = 0
        for tp in consumer.assignment():
            end, read = consumer.highwater(tp), consumer._read_offset[tp]
            if end is None:
                return None
            lag += max(0, end - (read + 1 if read is not None else 0))
        return lag


def connect(app: StageApp, loop: StageLoop, settings: Settings, on_ready: Callable[[], None]) -> None:
    """Tie the app's streams and its rebalances to a worker loop; ``on_ready`` is called when assigned."""
    for topic in loop.input_topics:
        _add_stream(app, loop, topic, settings)

    async def revoked(*_args: Any, **_kwargs: Any) -> None:
        await loop.pause()
        await app.consumer.commit()  # what was just finished: the next owner need not do it again

    async def assigned(*_args: Any, **_kwargs: Any) -> None:
        loop.resume()
        on_ready()

    app.on_partitions_revoked.connect(revoked)
    app.on_partitions_assigned.connect(assigned)


def _add_stream(app: StageApp, loop: StageLoop, topic: str, settings: Settings) -> None:
    async def worker(untyped: faust.StreamT[Any]) -> None:
        stream = cast(streams.Stream[Any], untyped)
        # noack_take puts the stream's own setting back when it ends. Were a worker to end before its app,
        # the default would acknowledge, unseen, whatever the stream still delivers.
        stream.enable_acks = False
        await loop.run(topic, stream.noack_take(settings.batch_size, within=settings.batch_wait_s))

    channel = app.topic(topic, value_serializer="raw", key_serializer="raw", internal=False)
    app.agent(channel, name=f"{group_name(loop.stage.name)}.{topic}", concurrency=1)(worker)
