"""Shared parts of the tests of dead letters: a broken deploy, the commands, and the topics' messages."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from aiokafka import AIOKafkaProducer

from pipeline.cli import run
from pipeline.kafka import Entry
from tests.e2e import worker_process
from tests.e2e.worker_process import (
    TOPICS,
    Load,
    WorkerProcess,
    is_idempotent,
    publish_load,
    read_all,
    wait_done,
    wait_until,
)

BROKEN = """
import pipeline.messages.measurements as measurements
from pipeline.model.errors import InvalidMessage
good = measurements.decode_profile
def decode_profile(value, *, now=None):
    profile = good(value, now=now)
    if {condition}:
        raise InvalidMessage("counts: of a form that this version does not know")
    return profile
measurements.decode_profile = decode_profile

# As on a loaded machine: it commits late, and when it ends there is no time left for it.
import faust.transport.consumer as transport
import pipeline.worker.app as app
from pipeline.worker.service import Service
app.COMMIT_INTERVAL_S = 1e3
initialise = transport.Consumer.__init__
def seldom(self, *args, **kwargs):
    initialise(self, *args, **kwargs)
    self._commit_every = None
transport.Consumer.__init__ = seldom
shut_down = Service._shut_down
async def too_late(self, *args, **kwargs):
    return False
async def without_commit(self):
    transport.Consumer.commit = too_late
    await shut_down(self)
Service._shut_down = without_commit
"""
"""A deploy whose decoder refuses what it should take, and whose commits are late unless it asks for them."""


@contextmanager
def broken_worker(
    monkeypatch: pytest.MonkeyPatch, broker: str, store: str, condition: str, **settings: str
) -> Iterator[WorkerProcess]:
    with monkeypatch.context() as patch:
        patch.setattr(worker_process, "_MAIN", BROKEN.format(condition=condition) + worker_process._MAIN)
        for key, value in settings.items():
            patch.setenv(f"SMIDGEN_{key.upper()}", value)
        worker = WorkerProcess(broker, store, "aggregate")
    with worker:
        yield worker


def here(capfd: pytest.CaptureFixture[str], broker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which is quicker where nothing is killed."""
    flag = [] if is_idempotent(broker) or arguments[0] == "list" else ["--no-idempotent-producer"]
    capfd.readouterr()
    code = run(["dlq", *arguments, "--broker", broker, *flag])
    return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())


def dlq(broker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(broker, *arguments), capture_output=True, text=True, timeout=400, check=False
    )


def command(broker: str, *arguments: str, batch: int = 7) -> list[str]:
    flag = [] if is_idempotent(broker) or arguments[0] == "list" else ["--no-idempotent-producer"]
    main = f"""
from pipeline.worker.dlq import replay
from pipeline.cli import main
replay.MAX_DEAD_LETTERS = {batch}
replay.SESSION_S = 6.0  # the shortest that brokers allow: the next replay waits for it after a kill
main()
"""
    return [sys.executable, "-c", main, "dlq", *arguments, "--broker", broker, *flag]


def header(entry: Entry, name: str) -> str:
    return dict(entry.headers).get(name, b"").decode()


def dead_letters(broker: str) -> list[Entry]:
    return [entry for entry in read_all(broker, "dead-letters") if not header(entry, "receipt")]


def copies(broker: str, topic: str = "profiles") -> Counter[str]:
    """How often each dead letter stands on its topic again."""
    found = (header(entry, "replayed-from") for entry in read_all(broker, topic))
    return Counter(origin for origin in found if origin)


def wait_all_read(broker: str, worker: WorkerProcess, topic: str = "profiles") -> None:
    ends: dict[int, int] = {}
    for entry in read_all(broker, topic):
        ends[entry.partition] = max(ends.get(entry.partition, 0), entry.offset + 1)
    wait_done(broker, ends, worker, topic=topic)


def make_dead_letters(
    monkeypatch: pytest.MonkeyPatch, broker: str, store: str, loads: Sequence[Load]
) -> None:
    """Let a broken worker refuse every message of some loads."""
    for load in loads:
        publish_load(broker, load)
    with broken_worker(monkeypatch, broker, store, "True", dead_letter_limit="1") as worker:
        wait_until(
            lambda: len(dead_letters(broker)) == sum(len(load.profiles) for load in loads),
            "all dead letters",
            worker,
        )
        wait_all_read(broker, worker)
        assert worker.stop() == 0


async def write_dead_letters(broker: str, made: Sequence[tuple[bytes, bytes, dict[str, str]]]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    for key, value, headers in made:
        pairs = [(name, text.encode()) for name, text in headers.items()]
        await producer.send_and_wait(TOPICS["dead-letters"].name, value, key=key, headers=pairs)
    await producer.stop()
