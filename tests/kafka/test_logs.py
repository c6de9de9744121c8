"""Which log was counted, and up to where: topics made anew, a second set, a restored store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

import pytest
import yaml
from aiokafka.admin import AIOKafkaAdminClient

from pipeline.kafka import Broker, apply_topics, require_topic_ids, topic_ids
from pipeline.messages.inputs import encode_change
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.topics import load_topics
from pipeline.stages.base import Stage
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery, Store
from pipeline.storage.schema import EVER
from pipeline.worker.starts import LogWatch, Starts
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

SIZES = ((1, 60), (2, 30))
"""Number and messages of two loads; the offsets of the second one, on a topic made anew, end far earlier."""


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


def test_every_topic_has_an_id_and_a_missing_one_is_said(kafka_broker: BrokerUrl) -> None:
    ids = asyncio.run(topic_ids(kafka_broker, ["profiles", "metrics", "nope"]))
    assert ids.keys() == {"profiles", "metrics"}
    assert len({*ids.values()}) == 2
    assert all(len(one) == 32 for one in ids.values())
    with pytest.raises(BrokerUnavailable, match="does not say which topic nope is"):
        asyncio.run(require_topic_ids(kafka_broker, ["profiles", "nope"], patience_s=0.5))


def test_a_topic_that_was_made_anew_is_counted_from_its_start(
    kafka_broker: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    """Its offsets begin at 0 again, far below those that the store has of the topic before it."""
    first, second = (build_load(f"{service_name}-{n}", size, hosts=3, seed=n) for n, size in SIZES)
    count(kafka_broker, dsn, publish_load(kafka_broker, first))
    make_anew(kafka_broker, "profiles")
    count(kafka_broker, dsn, publish_load(kafka_broker, second))
    assert_counted(store, first)
    assert_counted(store, second)
    logs = {
        row["topic_id"] for row in store.rows(RowQuery("logs", None, *EVER)) if row["topic"] == "profiles"
    }
    assert len(logs) == 2


def test_a_worker_stops_when_its_topic_is_made_anew(
    kafka_broker: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    first, second = (build_load(f"{service_name}-{n}", size, hosts=3, seed=n) for n, size in SIZES)
    with WorkerProcess(kafka_broker, dsn, "aggregate") as worker:
        worker.wait_ready()
        wait_done(kafka_broker, publish_load(kafka_broker, first), worker)
        make_anew(kafka_broker, "profiles")
        wait_until(lambda: worker.process.poll() is not None, "the worker to stop")
        assert worker.process.wait() == 1
        assert "topic profiles was made anew: start the worker again" in worker.log
        assert "Traceback" not in worker.log
    count(kafka_broker, dsn, publish_load(kafka_broker, second))
    assert_counted(store, first)
    assert_counted(store, second)


def test_an_assignment_of_a_topic_made_anew_says_so(kafka_broker: BrokerUrl) -> None:
    """Its log is short, too, but has lost nothing."""
    ids = asyncio.run(topic_ids(kafka_broker, ["profiles"]))
    make_anew(kafka_broker, "profiles")

    stage = SimpleNamespace(name="aggregate", inputs=("profiles",), stored_up_to=lambda *_: {0: 5})

    async def assigned() -> None:
        broker = Broker((kafka_broker,))
        starts = Starts(cast(Stage, stage), TOPICS, broker, LogWatch(broker, ids), asyncio.Event())
        await starts.of([("profiles", 0)])

    with pytest.raises(ConfigError, match="topic profiles was made anew"):
        asyncio.run(assigned())


def test_two_sets_of_topics_share_a_database(
    kafka_broker: BrokerUrl, dsn: str, store: Store, service_name: str, tmp_path: Path
) -> None:
    """Each has offsets of its own."""
    named = yaml.safe_load(Path("topics.yaml").read_text())
    named["profiles"]["name"] = "profiles-b"
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(named))
    others = load_topics(tmp_path / "b.yaml")
    asyncio.run(apply_topics(kafka_broker, others))
    load = build_load(service_name, 40, hosts=3)
    ends = publish_load(kafka_broker, load)
    count(kafka_broker, dsn, ends)
    with WorkerProcess(kafka_broker, dsn, "aggregate", more=["--topics", str(tmp_path / "b.yaml")]) as worker:
        worker.wait_ready()
        assert worker.stop() == 0
    logs = {row["broker_topic"]: row["stream"] for row in store.rows(RowQuery("logs", None, *EVER))}
    assert logs["profiles"] != logs["profiles-b"]
    assert_counted(store, load)


def test_a_store_that_was_restored_is_brought_up_from_where_it_is(
    kafka_broker: BrokerUrl, dsn: str, store: Store, store_dsn: str, service_name: str
) -> None:
    """Kafka's commit is at the end; the database is the one before the second half, and then an empty one."""
    first, second = (build_load(f"{service_name}-{n}", 40, hosts=3, seed=n) for n in (1, 2))
    change = build_change("c1", service=first.service)
    publish(kafka_broker, [(first.service.encode(), encode_change(change))], "changes")
    halfway = publish_load(kafka_broker, first)
    count(kafka_broker, dsn, halfway)
    other = f"{store_dsn}/logs_{uuid4().hex}"
    with closing(open_store(other)) as elsewhere:
        elsewhere.migrate()
        recount(kafka_broker, other, elsewhere, first)  # an empty one: everything again
        assert_counted(elsewhere, first)
        assert len(elsewhere.rows(RowQuery("changes", first.service, *EVER))) == 1
        count(kafka_broker, other, publish_load(kafka_broker, second))
        assert_counted(elsewhere, second)
    recount(kafka_broker, dsn, store, second)  # the first one, which knows nothing of what came since
    assert_counted(store, first)
    assert_counted(store, second)


def test_what_left_no_rows_is_not_read_again(
    kafka_broker: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    """Dead letters at the end of a partition are past it; nobody has to see them twice."""
    load = build_load(service_name, 40, hosts=3)
    publish_load(kafka_broker, load)
    publish(kafka_broker, [(f"{service_name}/h{n}".encode(), b"no profile") for n in range(12)])
    ends = publish(kafka_broker, [(f"{service_name}/h{n}".encode(), b"no profile") for n in range(12)])
    count(kafka_broker, dsn, ends)
    log = count(kafka_broker, dsn, ends)
    assert "reading from there again" not in log
    assert len(read_all(kafka_broker, "dead-letters")) == 24
    assert stored_samples(store, service_name) == load.samples


def test_a_log_that_ends_early_stops_the_worker(
    kafka_broker: BrokerUrl, dsn: str, store: Store, service_name: str
) -> None:
    """As after a broker was restored, and the store was not: the next messages would look counted."""
    ends = publish_load(kafka_broker, build_load(service_name, 40, hosts=3))
    count(kafka_broker, dsn, ends)
    stream = next(
        row["stream"] for row in store.rows(RowQuery("logs", None, *EVER)) if row["topic"] == "profiles"
    )
    partition, end = next(iter(ends.items()))
    row = {"stream": stream, "topic": "profiles", "partition": partition, "time": START, "last_offset": 5000}
    store.insert("positions", {name: [value] for name, value in row.items()})
    with WorkerProcess(kafka_broker, dsn, "aggregate") as worker:
        wait_until(lambda: worker.process.poll() is not None, "the worker to stop")
        assert worker.process.wait() == 1
        log = worker.log
    text = f"profiles partition {partition} ends at offset {end}, and the store has counted up to 5001"
    assert text in log
    assert "Traceback" not in log
