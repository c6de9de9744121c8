"""Three brokers, three replicas: whatever dies while load is flowing, counts are right to the unit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from agents.publishing.broker import publish_once
from loadgen.engines.kafka.cluster import KafkaCluster
from pipeline.kafka import apply_topics
from pipeline.messages.measurements import encode_profile
from pipeline.model import Outgoing
from pipeline.settings.config import Settings
from pipeline.storage.interface import Store
from pipeline.worker.app import SESSION_TIMEOUT_S
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    stored_samples,
    wait_done,
    wait_until,
)
from tests.kafka.asking import ends, partitions

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Start = Callable[..., KafkaCluster]


@pytest.fixture
def cluster(kafka_cluster: Start) -> KafkaCluster:
    started = kafka_cluster(3)
    assert asyncio.run(apply_topics(started.url, TOPICS))[1] == []
    return started


@contextmanager
def flowing(url: str, loads: Sequence[Load]) -> Iterator[list[int]]:
    """Publish loads one after the other as an agent does; yields a list that grows with each one sent."""
    sent: list[int] = []
    failed: list[BaseException] = []

    def send() -> None:
        settings = Settings(broker=url)
        try:
            for number, load in enumerate(loads):
                messages = [
                    Outgoing("profiles", f"{p.service}/{p.host}", encode_profile(p)) for p in load.profiles
                ]
                publish_once(messages, settings, TOPICS)
                sent.append(number)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        thread.join(180)
    assert not failed, failed
    assert len(sent) == len(loads)


def leader(url: str, topic: str = "profiles", partition: int = 0) -> int:
    return int(partitions(url, topic)[partition]["leader"])


def test_the_leader_is_killed_while_load_is_flowing(
    cluster: KafkaCluster, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    url = BrokerUrl(cluster.url, idempotent=True)
    loads = [build_load(service_name, 40, seed=seed) for seed in range(12)]
    with WorkerProcess(url, store_dsn, "aggregate") as worker:
        worker.wait_ready()
        with flowing(url, loads) as sent:
            wait_until(lambda: len(sent) >= 2 and stored_samples(shared_store, service_name) > 0, "a flow")
            dead = leader(url)
            cluster.kill(dead)
            wait_until(lambda: leader(url) != dead, "another leader", worker)
        assert len(sent) == 12
        wait_done(url, ends(url, "profiles"), worker)
        assert worker.stop() == 0, worker.log
        assert "Traceback" not in worker.log
    assert_counted(shared_store, Load(service_name, tuple(p for load in loads for p in load.profiles)))


@pytest.mark.kafka_all
def test_a_frozen_broker_comes_back_as_a_follower(
    cluster: KafkaCluster, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    """Its clients know it as the leader of partitions, some of which have no committed offset."""
    url = BrokerUrl(cluster.url, idempotent=True)
    first, second = (build_load(service_name, 100, seed=seed) for seed in (1, 2))
    with WorkerProcess(url, store_dsn, "aggregate") as worker:
        publish_load(url, first)
        wait_done(url, ends(url, "profiles"), worker)
        frozen = leader(url)
        cluster.pause(frozen)
        cluster.wait_gone(frozen)
        time.sleep(1.5 * SESSION_TIMEOUT_S)  # so that the worker has to join its group again
        cluster.resume(frozen)
        resumed = time.monotonic()
        publish_load(url, second)
        wait_done(url, ends(url, "profiles"), worker)
        assert time.monotonic() - resumed < 120, worker.log
        assert worker.stop() == 0, worker.log
    assert_counted(shared_store, Load(service_name, (*first.profiles, *second.profiles)))


@pytest.mark.kafka_all
def test_each_broker_is_restarted_in_turn(
    cluster: KafkaCluster, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    """A rolling upgrade of the brokers, in order, with load all the time."""
    url = BrokerUrl(cluster.url, idempotent=True)
    loads = [build_load(service_name, 20, seed=seed) for seed in range(40)]
    with WorkerProcess(url, store_dsn, "aggregate") as worker:
        worker.wait_ready()
        with flowing(url, loads) as sent:
            for index in range(3):
                before = len(sent)
                wait_until(lambda before=before: len(sent) > before or len(sent) == 40, "a flow", worker)  # type: ignore[misc]
                cluster.shut_down(index)
                cluster.restart(index)
        wait_done(url, ends(url, "profiles"), worker)
        assert worker.stop() == 0, worker.log
    assert_counted(shared_store, Load(service_name, tuple(p for load in loads for p in load.profiles)))


@pytest.mark.kafka_all
def test_all_brokers_die_at_once_and_come_back(
    cluster: KafkaCluster, store_dsn: str, shared_store: Store, service_name: str
) -> None:
    url = BrokerUrl(cluster.url, idempotent=True)
    first, second = (build_load(service_name, 150, seed=seed) for seed in (1, 2))
    publish_load(url, first)
    with WorkerProcess(url, store_dsn, "aggregate", batch_size=5) as worker:
        wait_until(lambda: worker.messages > 0, "the worker at work", worker)
        for index in range(3):
            cluster.kill(index)
        cluster.restart(0, 1, 2)
        publish_load(url, second)
        wait_done(url, ends(url, "profiles"), worker)
        assert worker.stop() == 0, worker.log
    assert_counted(shared_store, Load(service_name, (*first.profiles, *second.profiles)))
