"""A small service beside a large one that lags: its messages do not wait for the large backlog."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from pipeline.embedded.broker import EmbeddedBroker
from pipeline.kafka import Packet, Producer, ProducerOptions, apply_topics, as_broker
from pipeline.messages.measurements import encode_profile
from pipeline.settings.topics import DEFAULT_PATH, load_topics
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from tests.e2e.worker_process import START, BrokerUrl, FailingStore, WorkerProcess, stored_samples, wait_until
from tests.support.builders import build_profile

pytestmark = pytest.mark.e2e

BACKLOG = 1500


def test_a_small_service_does_not_wait_for_a_backlog_in_other_partitions(
    store_dsn: str, shared_store: Store, service_name: str, tmp_path: Path
) -> None:
    """The large one fills all partitions but the reserved one, with messages of which one fetch has all."""
    raw = yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8"))
    path = tmp_path / "topics.yaml"
    path.write_text(yaml.safe_dump(raw | {"shards": {service_name: 1}}), encoding="utf-8")
    topics, large = load_topics(path), f"{service_name}-large"

    def message(service: str, number: int) -> Packet:
        profile = build_profile({"main;work": 1}, service=service, host=f"h{number}", start=START)
        return Packet("profiles", f"{service}/h{number}".encode(), encode_profile(profile))

    async def send(url: str, *packets: Packet) -> None:
        producer = await Producer.open(as_broker(url), topics, ProducerOptions(idempotent=False))
        try:
            await producer.send_packets(packets)
        finally:
            await producer.close()

    sent = threading.Event()
    backlog: list[float] = []  # samples of the large one when the small one's is there
    looking = threading.Lock()

    def fault(number: int) -> Callable[[bool], None]:
        def look(done: bool) -> None:
            if not done:
                sent.wait(240 if number > 10 else 0)  # the backlog waits for the small one
                return
            if backlog or not sent.is_set():
                return
            with looking, closing(open_store(store_dsn)) as store:
                if not backlog and stored_samples(store, service_name) == 1:
                    backlog.append(stored_samples(store, large))

        return look

    with EmbeddedBroker() as broker, FailingStore(store_dsn, fault) as failing:
        asyncio.run(apply_topics(broker.url, topics))
        asyncio.run(send(broker.url, *(message(large, number) for number in range(BACKLOG))))
        url = BrokerUrl(broker.url, idempotent=False)
        with WorkerProcess(url, failing.url, "aggregate", more=("--topics", str(path))) as worker:
            wait_until(lambda: stored_samples(shared_store, large) > 0, "the backlog begun", worker)
            asyncio.run(send(broker.url, message(service_name, 0)))
            sent.set()
            wait_until(lambda: bool(backlog), "the small one", worker)
    assert backlog[0] < BACKLOG / 2
