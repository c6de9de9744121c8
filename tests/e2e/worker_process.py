"""Shared parts of the worker tests: worker processes, a store that fails on demand, and counted messages."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from aiokafka import AIOKafkaProducer, TopicPartition

from loadgen.bench.faults.relay import BUSY, Answer, RelayServer
from loadgen.engines.kafka.cluster import KafkaCluster
from pipeline.embedded.broker import EmbeddedBroker
from pipeline.kafka import (
    Entry,
    admin_client,
    apply_topics,
    cluster_id,
    committed_offsets,
    read_topic,
    topic_ids,
)
from pipeline.messages.measurements import encode_profile
from pipeline.model import Profile
from pipeline.settings.topics import load_topics
from pipeline.storage.interface import SeriesQuery, StackQuery, Store
from tests.support.builders import build_profile

TOPICS = load_topics()
START = 1_700_000_000.0 // 3600 * 3600
SPAN_S = 3600.0
DEADLINE_S = 240.0
LOOK_SHARE = 3.0
"""Seconds of pause for each second that a look takes."""


class BrokerUrl(str):
    """Bootstrap servers, and whether that broker takes idempotent producers."""

    idempotent: bool

    def __new__(cls, url: str, *, idempotent: bool) -> BrokerUrl:
        made = super().__new__(cls, url)
        made.idempotent = idempotent
        return made


def is_idempotent(broker: str) -> bool:
    """Whether producers are to be idempotent there; not on a broker of which nothing is known."""
    return isinstance(broker, BrokerUrl) and broker.idempotent


@contextmanager
def fresh_broker(kind: str = "embedded") -> Iterator[BrokerUrl]:
    """A broker with the topics and nothing else on it: no other test's groups, offsets or messages.

    ``kind`` is embedded, kafka (one broker of Apache Kafka) or kafka3 (three of them).
    """
    makes: dict[str, Callable[[], EmbeddedBroker | KafkaCluster]] = {
        "embedded": EmbeddedBroker,
        "kafka": KafkaCluster,
        "kafka3": lambda: KafkaCluster(3),
    }
    with makes[kind]() as running:
        asyncio.run(apply_topics(running.url, TOPICS))
        yield BrokerUrl(running.url, idempotent=kind != "embedded")


class Running(Protocol):
    """A process with a log."""

    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        """Everything it has logged so far."""


def wait_until(condition: Callable[[], bool], what: str, *workers: Running) -> None:
    """Wait for a condition, or fail with what was waited for; at once if one of the workers ends."""
    timeout_s = DEADLINE_S
    began = looked = time.monotonic()
    while not condition():
        for worker in workers:
            assert worker.process.poll() is None, worker.log
        took_s = time.monotonic() - looked
        assert looked + took_s < began + timeout_s, f"not within {timeout_s:g} s: {what}" + "".join(
            f"\n{worker.log[-2000:]}" for worker in workers
        )
        time.sleep(
            min(max(0.1, LOOK_SHARE * took_s), 1.0)
        )  # a look that reads a topic takes work from workers
        looked = time.monotonic()


_MAIN = """
from pipeline.cli import main
from pipeline.commands.lazy_group import load
# The shortest that brokers allow: a test waits for it after every kill.
load("pipeline.worker.app").SESSION_TIMEOUT_S = 6.0
main()
"""


class WorkerProcess:
    """``smidgen worker`` as a process of its own; its log goes to a file."""

    def __init__(
        self, broker: str, store: str, *stages: str, batch_size: int = 20, more: Sequence[str] = ()
    ) -> None:
        self._log = tempfile.NamedTemporaryFile("w+", prefix="smidgen-worker-", suffix=".log")  # noqa: SIM115
        command = [sys.executable, "-c", _MAIN, "worker", *stages]
        flags = ["--broker", broker, "--store", store, "--batch-size", str(batch_size)]
        flags += ["--batch-wait", "0.2s", "--log-level", "debug"]
        flags += [] if is_idempotent(broker) else ["--no-idempotent-producer"]
        self.process = subprocess.Popen([*command, *flags, *more], stderr=self._log, stdout=self._log)

    @property
    def log(self) -> str:
        """Everything it has logged so far."""
        with open(self._log.name) as file:
            return file.read()

    @property
    def messages(self) -> int:
        """How many messages it is done with, by its own account."""
        return sum(int(found) for found in re.findall(r"batch messages=(\d+)", self.log))

    def wait_ready(self) -> None:
        """Wait until it has its partitions."""
        wait_until(lambda: "ready: " in self.log, "a ready worker", self)

    def kill(self) -> None:
        """End it as the kernel would."""
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_s: float = 150.0) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        self._log.close()


@dataclass
class FailingStore:
    """Stands between a worker and the store; ``fault(n)`` says what happens to the n-th INSERT (from 1).

    ``"refused"`` answers 503 without doing it, ``"lost"`` does it and drops the answer, a callable is
    called before (its argument False) and after it is done (True); None lets it pass.
    """

    upstream: str
    fault: Callable[[int], str | Callable[[bool], None] | None]
    url: str = ""
    inserts: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_fault(self) -> str | Callable[[bool], None] | None:
        """Count an INSERT and return what should happen to it."""
        with self._lock:
            self.inserts += 1
            return self.fault(self.inserts)

    def _treat(self, insert: bool, forward: Callable[[], Answer]) -> Answer | None:
        fault = self.next_fault() if insert else None
        if fault == "refused":
            return BUSY
        if callable(fault):
            fault(False)
        answer = forward()
        if callable(fault):
            fault(True)
        return None if fault == "lost" else answer

    def __enter__(self) -> FailingStore:
        self._server = RelayServer(lambda: self.upstream, self._treat)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = self._server.url
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True)
class Load:
    """Profiles of one service with what must be counted of them."""

    service: str
    profiles: tuple[Profile, ...]

    @property
    def samples(self) -> int:
        """All samples."""
        return sum(int(profile.counts.sum()) for profile in self.profiles)

    @property
    def by_subroutine(self) -> dict[str, int]:
        """Samples that hold a subroutine, each sample once."""
        counted: Counter[str] = Counter()
        for profile in self.profiles:
            for i, count in enumerate(profile.counts.tolist()):
                stack = profile.stack_frames[profile.stack_starts[i] : profile.stack_starts[i + 1]]
                for frame in {profile.frames[index] for index in stack.tolist()}:
                    counted[frame] += count
        return {name: count for name, count in counted.items() if count}


def build_load(service: str, messages: int, *, hosts: int = 12, seed: int = 1) -> Load:
    """Return seeded profiles of several hosts, spread over an hour, some stacks recursive."""
    rng = np.random.default_rng(seed)
    profiles = []
    for number in range(messages):
        stacks = {}
        for _ in range(int(rng.integers(1, 30))):
            frames = [f"app.f{rng.integers(0, 40)}" for _ in range(int(rng.integers(1, 8)))]
            stacks[";".join(["app.main", *frames])] = int(rng.integers(0, 50))
        start = START + float(rng.uniform(0, SPAN_S - 10))
        profiles.append(build_profile(stacks, service=service, host=f"h{number % hosts}", start=start))
    return Load(service, tuple(profiles))


Ends = dict[int, int]
"""Partition → offset after the last message."""


def publish(
    broker: str, messages: Sequence[tuple[bytes | None, bytes | None]], topic: str = "profiles"
) -> Ends:
    """Put (key, value) pairs on a topic and return where it ends."""

    async def send() -> Ends:
        # Compressed as agents do: Kafka holds the compressed size against a topic's limit.
        producer = AIOKafkaProducer(
            bootstrap_servers=broker,
            max_request_size=64 << 20,
            acks="all",
            compression_type="zstd",
            enable_idempotence=is_idempotent(broker),
        )
        await producer.start()
        try:
            waiting = [await producer.send(TOPICS[topic].name, value, key=key) for key, value in messages]
            positions = await asyncio.gather(*waiting)
        finally:
            await producer.stop()
        ends: Ends = {}
        for position in positions:
            ends[position.partition] = max(ends.get(position.partition, 0), position.offset + 1)
        return ends

    return asyncio.run(send())


def publish_load(broker: str, load: Load) -> Ends:
    """Put the profiles of a load on their topic and return where it ends."""
    return publish(broker, [(f"{p.service}/{p.host}".encode(), encode_profile(p)) for p in load.profiles])


@contextmanager
def committed_reader(
    broker: str, stage: str, topic: str, partitions: Iterable[int]
) -> Iterator[Callable[[], Ends]]:
    """Yield a function that returns what a stage has committed of a topic; 0 where it has committed nothing.

    It asks over one connection, since a new one for every look would keep a broker as busy as a worker does.
    """
    positions = [TopicPartition(TOPICS[topic].name, partition) for partition in partitions]
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        client = runner.run(stack.enter_async_context(admin_client(broker)))

        def look() -> Ends:
            offsets = runner.run(committed_offsets(client, TOPICS.group(stage), positions))
            return {position.partition: offsets.get(position, 0) for position in positions}

        try:
            yield look
        finally:
            runner.run(stack.aclose())


def committed(broker: str, stage: str, topic: str, partitions: Iterable[int]) -> Ends:
    """Return what a stage has committed of a topic; 0 where it has committed nothing."""
    with committed_reader(broker, stage, topic, partitions) as look:
        return look()


def wait_done(
    broker: str, ends: Ends, *workers: WorkerProcess, stage: str = "aggregate", topic: str = "profiles"
) -> None:
    """Wait until a stage has committed everything on a topic."""
    with committed_reader(broker, stage, topic, ends) as look:
        wait_until(lambda: look() == ends, f"all of {topic} committed", *workers)


def read_all(broker: str, topic: str) -> list[Entry]:
    """Return every message of a topic."""

    async def read() -> list[Entry]:
        return [e async for e in read_topic(broker, TOPICS[topic], from_start=True, follow=False)]

    return asyncio.run(read())


def stream_of(broker: str, topic: str = "profiles") -> str:
    """Return the stream of a topic's log, as rows that were counted of it carry it."""

    async def asked() -> str:
        name = TOPICS[topic].name
        return "/".join([await cluster_id(broker), name, (await topic_ids(broker, [name]))[name]])

    return asyncio.run(asked())


def stored_samples(store: Store, service: str) -> int:
    """Return how many samples of a service the store has counted."""
    return int(store.series(SeriesQuery("gcpu", service, START, START + SPAN_S, 60.0)).totals.sum())


def assert_counted(store: Store, load: Load) -> None:
    """Check totals, every subroutine and every stack against the load, to the unit."""
    matrix = store.series(SeriesQuery("gcpu", load.service, START, START + SPAN_S, 60.0))
    assert int(matrix.totals.sum()) == load.samples, f"{int(matrix.totals.sum())} counted of {load.samples}"
    counted = {n: int(c) for n, c in zip(matrix.names, matrix.samples.sum(axis=1), strict=True) if c}
    wrong = {name: (counted.get(name), n) for name, n in load.by_subroutine.items() if counted.get(name) != n}
    assert counted == load.by_subroutine, f"counted, sent: {wrong}"
    stacks = store.counts(
        StackQuery(load.service, (START, START + SPAN_S / 2), (START + SPAN_S / 2, START + SPAN_S))
    )
    assert int(stacks.before.sum() + stacks.after.sum()) == load.samples
