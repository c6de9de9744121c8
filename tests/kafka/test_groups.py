"""Consumer groups of Apache Kafka: workers that die, partitions that move, and lag that is right."""

from __future__ import annotations

import re
import threading
import urllib.request
from collections.abc import Callable

import pytest

from pipeline.storage.interface import Store
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    FailingStore,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    stored_samples,
    wait_done,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_one_of_two_workers_is_killed(
    kafka_broker: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    """SIGKILL while both have partitions and one is in the middle of an INSERT."""
    loads = [build_load(service_name, 80, seed=seed) for seed in (1, 2, 3)]
    running: list[WorkerProcess] = []

    def fault(number: int) -> Callable[[bool], None] | None:
        def kill(done: bool) -> None:
            if done:
                running[0].kill()

        return kill if number == 20 else None

    publish_load(kafka_broker, loads[0])
    with (
        FailingStore(store_dsn, fault) as failing,
        WorkerProcess(kafka_broker, failing.url, "aggregate", batch_size=5) as one,
    ):
        running.append(one)
        with WorkerProcess(kafka_broker, store_dsn, "aggregate", batch_size=5) as two:
            two.wait_ready()
            publish_load(kafka_broker, loads[1])
            ends = publish_load(kafka_broker, loads[2])
            wait_until(lambda: one.process.poll() is not None, "the kill", two)
            assert one.process.returncode == -9, one.log
            assert stored_samples(shared_store, service_name) < sum(load.samples for load in loads)
            wait_done(kafka_broker, ends, two)
            assert two.stop() == 0
            assert "reading from there again" not in one.log + two.log, "the store was never behind"
    assert_counted(shared_store, Load(service_name, tuple(p for load in loads for p in load.profiles)))


def lag(worker: WorkerProcess) -> int:
    """Return how far the worker says it is behind on profiles; -1 while it knows not all."""
    (address,) = re.findall(r"health: (http://\S+)", worker.log)[:1]
    with urllib.request.urlopen(f"{address.rstrip('/')}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = re.findall(r'^\w*lag_messages\{[^}]*topic="profiles"[^}]*\} (\d+)', text, re.MULTILINE)
    return sum(map(int, found)) if len(found) == TOPICS["profiles"].partitions else -1


def test_lag_is_what_is_not_done_yet(
    kafka_broker: BrokerUrl, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    """0 when all is done, also after a restart; with the store away all, fetched or not."""
    first, second = (build_load(service_name, count, seed=count) for count in (60, 600))
    away = threading.Event()
    health = ("--health", "127.0.0.1:0")
    ends = publish_load(kafka_broker, first)
    with WorkerProcess(kafka_broker, store_dsn, "aggregate", more=health) as worker:
        wait_done(kafka_broker, ends, worker)
        wait_until(lambda: lag(worker) == 0, "no lag", worker)
        assert worker.stop() == 0
    with (
        FailingStore(store_dsn, lambda _: "refused" if away.is_set() else None) as failing,
        WorkerProcess(kafka_broker, failing.url, "aggregate", more=health) as worker,
    ):
        worker.wait_ready()
        wait_until(lambda: lag(worker) == 0, "no lag, though there are 60 old messages", worker)
        away.set()
        ends = publish_load(kafka_broker, second)
        wait_until(lambda: lag(worker) == len(second.profiles), "a lag of all that came", worker)
        away.clear()
        wait_done(kafka_broker, ends, worker)
        wait_until(lambda: lag(worker) == 0, "no lag again", worker)
        assert worker.stop() == 0
    assert_counted(shared_store, Load(service_name, (*first.profiles, *second.profiles)))
