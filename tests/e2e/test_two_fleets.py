"""Two fleets with the same services on one broker and one store: topic prefixes and databases apart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import pytest

from agents.publishing.broker import publish_once
from pipeline.cli import run
from pipeline.kafka import admin_client
from pipeline.kafka.admin import retried
from pipeline.messages.measurements import encode_profile
from pipeline.model import Outgoing
from pipeline.settings.config import Settings
from pipeline.settings.topics import Topics
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    Load,
    WorkerProcess,
    assert_counted,
    build_load,
    is_idempotent,
    read_all,
    stored_samples,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@dataclass(frozen=True, eq=False)
class Fleet:
    """One of them: its settings, its store, and what its agents sent."""

    settings: Settings
    store: Store
    load: Load

    @property
    def topic_flags(self) -> tuple[str, ...]:
        """What its commands that only need topics are given."""
        return ("--broker", self.settings.broker, "--topic-prefix", self.settings.topic_prefix)

    @property
    def flags(self) -> tuple[str, ...]:
        """What its other commands are given."""
        own = self.settings
        prefixes = ("--topic-prefix", own.topic_prefix, "--group-prefix", own.group_prefix)
        return ("--broker", own.broker, "--store", own.store, *prefixes)

    @property
    def topics(self) -> Topics:
        """Its topics."""
        return self.settings.read_topics()

    def send(self, *messages: Outgoing) -> None:
        """Publish as an agent does."""
        publish_once(messages, self.settings, self.topics)


def profiles(load: Load) -> list[Outgoing]:
    """Return the messages of a load."""
    return [Outgoing("profiles", f"{p.service}/{p.host}", encode_profile(p)) for p in load.profiles]


@pytest.fixture
def fleets(own_broker: BrokerUrl, store_dsn: str) -> Iterator[tuple[Fleet, Fleet]]:
    """Two fleets; the second one names its groups otherwise too."""
    service, made = f"service-{uuid4().hex[:12]}", []
    with ExitStack() as opened:
        for number, (prefix, groups) in enumerate((("blue.", ""), ("green.", "of-green.")), 1):
            dsn = f"{store_dsn}/fleet_{uuid4().hex[:12]}"
            settings = Settings(
                broker=own_broker,
                store=dsn,
                topic_prefix=prefix,
                group_prefix=groups,
                idempotent_producer=is_idempotent(own_broker),
            )
            store = opened.enter_context(closing(open_store(dsn)))
            store.migrate()
            made.append(Fleet(settings, store, build_load(service, 40 * number, seed=number)))
        yield made[0], made[1]


def counted(fleet: Fleet) -> bool:
    """Whether the store of a fleet has all that its agents sent, or more."""
    return stored_samples(fleet.store, fleet.load.service) >= fleet.load.samples


def topics_of(broker: str) -> set[str]:
    """Return the topics on a broker, without Kafka's own."""

    async def asked() -> set[str]:
        async with admin_client(broker) as client:
            return {name for name in await retried(client.list_topics) if not name.startswith("__")}

    return asyncio.run(asked())


@pytest.mark.kafka
def test_two_fleets_see_nothing_of_each_other(
    own_broker: BrokerUrl, fleets: tuple[Fleet, Fleet], capfd: pytest.CaptureFixture[str]
) -> None:
    def smidgen(*arguments: str) -> tuple[int, list[str]]:
        capfd.readouterr()
        code = run(list(arguments))
        return code, capfd.readouterr().out.splitlines()

    def dead_letters(fleet: Fleet) -> list[str]:
        code, lines = smidgen("dlq", "list", "--json", *fleet.topic_flags)
        assert code == 0
        return [json.loads(line)["topic"] for line in lines]

    def committed(fleet: Fleet) -> bool:
        code, lines = smidgen("stage", "show", "aggregate", "--json", *fleet.flags)
        assert code == 0
        found = [json.loads(line) for line in lines]
        done = sum(one["committed"] or 0 for one in found if one["topic"] == "profiles")
        assert done <= sent[fleet]
        return done == sent[fleet]

    blue, green = fleets
    for fleet in fleets:
        created = [f"{topic.name}: created" for topic in fleet.topics.values()]
        assert smidgen("topics", "apply", *fleet.topic_flags) == (0, created)
    sent = {fleet: len(fleet.load.profiles) for fleet in fleets}
    with ExitStack() as running:
        workers = []
        for fleet in fleets:
            more = fleet.flags[4:]
            worker = WorkerProcess(own_broker, fleet.settings.store, "aggregate", "detect", more=more)
            workers.append(running.enter_context(worker))
        for fleet in fleets:
            fleet.send(*profiles(fleet.load))
        blue.send(Outgoing("profiles", f"{blue.load.service}/h1", b"nothing"))
        sent[blue] += 1
        for worker in workers:
            worker.wait_ready()
        for fleet, worker in zip(fleets, workers, strict=True):
            wait_until(partial(counted, fleet), "all counted", worker)
            wait_until(partial(committed, fleet), "all committed", worker)
        assert [worker.stop() for worker in workers] == [0, 0]
    for fleet in fleets:
        assert_counted(fleet.store, fleet.load)
        findings = [json.loads(line) for line in smidgen("doctor", "--json", *fleet.flags)[1]]
        lag = {one["check"]: one["detail"] for one in findings if one["check"].startswith("lag of ")}
        assert lag["lag of aggregate"].endswith("profiles 0, metrics 0, requests 0, changes 0, feedback 0")
    assert dead_letters(blue) == ["blue.profiles"]
    assert dead_letters(green) == []

    head = dict.fromkeys(("specversion", "type", "source", "time"), "x")
    event = {**head, "id": "1", "data": {"service": blue.load.service, "metric": "m"}}
    blue.send(Outgoing("regressions", blue.load.service, json.dumps(event).encode()))
    tail = ("events", "tail", "--no-follow", "--json")
    assert len(smidgen(*tail, *blue.topic_flags)[1]) == 1
    assert smidgen(*tail, *green.topic_flags) == (0, [])
    names = {topic.name for fleet in fleets for topic in fleet.topics.values()}
    assert topics_of(own_broker) - {topic.name for topic in TOPICS.values()} == names
    assert [entry for name in TOPICS for entry in read_all(own_broker, name)] == []
