"""Which log was counted, and up to where: topics made anew, a second set, a restored store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from aiokafka.admin import AIOKafkaAdminClient

from loadgen.kafka.cluster import KafkaCluster
from pipeline.codec.inputs import encode_change
from pipeline.errors import BrokerUnavailable
from pipeline.kafka import apply_topics, require_topic_ids, topic_ids
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from pipeline.storage.schema import EVER
from pipeline.topics import load_topics
from tests.e2e.worker_process import (
    START,
    TOPICS,
    BrokerUrl,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    publish,
    publish_load,
    read_all,
    stored_samples,
    wait_done,
    wait_until,
)
from tests.support.builders import build_change

pytestmark = pytest.mark.e2e


@pytest.fixture
def url(kafka_cluster: Callable[..., KafkaCluster]) -> BrokerUrl:
    started = kafka_cluster(1)
    asyncio.run(apply_topics(started.url, TOPICS))
    return BrokerUrl(started.url, idempotent=True)


@pytest.fixture
def dsn(store_dsn: str) -> str:
    """A database of its own."""
    return f"{store_dsn}/logs_{uuid4().hex}"


@pytest.fixture
def store(dsn: str) -> Iterator[Store]:
    with closing(open_store(dsn)) as opened:
        opened.migrate()
        yield opened


def make_anew(url: str, topic: str) -> None:
    """Delete a topic and make it again, as `smidgen topics apply` does."""

    async def go() -> None:
        before = await topic_ids(url, [topic])
        admin = AIOKafkaAdminClient(bootstrap_servers=url)
        await admin.start()
        try:
            await admin.delete_topics([topic])
        finally:
            await admin.close()
        while (await topic_ids(url, [topic])) == before:
            await asyncio.sleep(0.2)
        await apply_topics(url, TOPICS)
        assert (await topic_ids(url, [topic]))[topic] not in before.values()

    asyncio.run(go())


def count(url: str, dsn: str, ends: dict[int, int]) -> str:
    """Run a worker until all is committed, and return its log."""
    with WorkerProcess(url, dsn, "aggregate") as worker:
        worker.wait_ready()
        wait_done(url, ends, worker)
        assert worker.stop() == 0
        return worker.log


def recount(url: str, dsn: str, store: Store, *loads: Load) -> None:
    """Run a worker, for which all is committed already, until loads are in the store."""
    with WorkerProcess(url, dsn, "aggregate") as worker:
        for load in loads:
            wait_until(
                lambda load=load: stored_samples(store, load.service) == load.samples,  # type: ignore[misc]
                f"{load.service} counted",
                worker,
            )
        assert worker.stop() == 0
        assert "reading from there again" in worker.log


def test_every_topic_has_an_id_and_a_missing_one_is_said(url: BrokerUrl) -> None:
    ids = asyncio.run(topic_ids(url, ["profiles", "metrics", "nope"]))
    assert ids.keys() == {"profiles", "metrics"}
    assert len({*ids.values()}) == 2
    assert all(len(one) == 32 for one in ids.values())
    with pytest.raises(BrokerUnavailable, match="does not say which topic nope is"):
        asyncio.run(require_topic_ids(url, ["profiles", "nope"], patience_s=0.5))


def test_a_topic_that_was_made_anew_is_counted_from_its_start(
    url: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    """Its offsets begin at 0 again, far below those that the store has of the topic before it."""
    first, second = (build_load(f"{service_name}-{n}", size, seed=n) for n, size in ((1, 120), (2, 60)))
    count(url, dsn, publish_load(url, first))
    make_anew(url, "profiles")
    count(url, dsn, publish_load(url, second))
    assert_counted(store, first)
    assert_counted(store, second)
    logs = {row["topic_id"] for row in store.rows("logs", None, *EVER) if row["topic"] == "profiles"}
    assert len(logs) == 2


def test_a_worker_stops_when_its_topic_is_made_anew(
    url: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    first, second = (build_load(f"{service_name}-{n}", size, seed=n) for n, size in ((1, 120), (2, 60)))
    with WorkerProcess(url, dsn, "aggregate") as worker:
        worker.wait_ready()
        wait_done(url, publish_load(url, first), worker)
        make_anew(url, "profiles")
        wait_until(lambda: worker.process.poll() is not None, "the worker to stop")
        assert worker.process.wait() == 1
        assert "topic profiles was made anew: start the worker again" in worker.log
        assert "Traceback" not in worker.log
    count(url, dsn, publish_load(url, second))
    assert_counted(store, first)
    assert_counted(store, second)


def test_two_sets_of_topics_share_a_database(
    url: BrokerUrl, dsn: str, store: Store, service_name: str, tmp_path: Path
) -> None:
    """Each has offsets of its own."""
    named = yaml.safe_load(Path("topics.yaml").read_text())
    named["profiles"]["name"] = "profiles-b"
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(named))
    others = load_topics(tmp_path / "b.yaml")
    asyncio.run(apply_topics(url, others))
    load = build_load(service_name, 80)
    ends = publish_load(url, load)
    count(url, dsn, ends)
    with WorkerProcess(url, dsn, "aggregate", more=["--topics", str(tmp_path / "b.yaml")]) as worker:
        worker.wait_ready()
        assert worker.stop() == 0
    logs = {row["broker_topic"]: row["stream"] for row in store.rows("logs", None, *EVER)}
    assert logs["profiles"] != logs["profiles-b"]
    assert_counted(store, load)


def test_a_store_that_was_restored_is_brought_up_from_where_it_is(
    url: BrokerUrl, dsn: str, store: Store, store_dsn: str, service_name: str
) -> None:
    """Kafka's commit is at the end; the database is the one before the second half, and then an empty one."""
    first, second = (build_load(f"{service_name}-{n}", 60, seed=n) for n in (1, 2))
    change = build_change("c1", service=first.service)
    publish(url, [(first.service.encode(), encode_change(change))], "changes")
    halfway = publish_load(url, first)
    count(url, dsn, halfway)
    other = f"{store_dsn}/logs_{uuid4().hex}"
    with closing(open_store(other)) as elsewhere:
        elsewhere.migrate()
        recount(url, other, elsewhere, first)  # an empty one: everything again
        assert_counted(elsewhere, first)
        assert len(elsewhere.rows("changes", first.service, *EVER)) == 1
        count(url, other, publish_load(url, second))
        assert_counted(elsewhere, second)
    recount(url, dsn, store, second)  # the first one, which knows nothing of what came since
    assert_counted(store, first)
    assert_counted(store, second)


def test_what_left_no_rows_is_not_read_again(
    url: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    """Dead letters at the end of a partition are past it; nobody has to see them twice."""
    load = build_load(service_name, 40)
    publish_load(url, load)
    publish(url, [(f"{service_name}/h{n}".encode(), b"no profile") for n in range(12)])
    ends = publish(url, [(f"{service_name}/h{n}".encode(), b"no profile") for n in range(12)])
    count(url, dsn, ends)
    log = count(url, dsn, ends)
    assert "reading from there again" not in log
    assert len(read_all(url, "dead-letters")) == 24
    assert stored_samples(store, service_name) == load.samples


def test_a_log_that_ends_early_stops_the_worker(
    url: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    """As after a broker was restored, and the store was not: the next messages would look counted."""
    ends = publish_load(url, build_load(service_name, 40))
    count(url, dsn, ends)
    stream = next(row["stream"] for row in store.rows("logs", None, *EVER) if row["topic"] == "profiles")
    partition, end = next(iter(ends.items()))
    row = {"stream": stream, "topic": "profiles", "partition": partition, "time": START, "last_offset": 5000}
    store.insert("positions", {name: [value] for name, value in row.items()})
    with WorkerProcess(url, dsn, "aggregate") as worker:
        wait_until(lambda: worker.process.poll() is not None, "the worker to stop")
        assert worker.process.wait() == 1
        log = worker.log
    text = f"profiles partition {partition} ends at offset {end}, and the store has counted up to 5001"
    assert text in log
    assert "Traceback" not in log
