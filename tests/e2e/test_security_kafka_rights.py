"""Rights of users on a secured Apache Kafka: those that docs/security.md lists, and no more."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ClusterAuthorizationFailedError, TopicAuthorizationFailedError

from agents.publishing.broker import publish_once
from loadgen.engines.kafka.cluster import KafkaCluster
from pipeline.kafka import Broker, read_topic
from pipeline.messages.measurements import encode_profile
from pipeline.model import Outgoing
from pipeline.model.errors import BrokerUnavailable, ConfigError
from pipeline.settings.config import load_settings
from pipeline.storage.interface import Store
from tests.e2e.secured_kafka import (
    DOCUMENT,
    SECRET,
    STAGES,
    USERS,
    assert_refused,
    connection,
    login,
    smidgen,
)
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    WorkerProcess,
    assert_counted,
    build_load,
    stored_samples,
    wait_until,
)
from tests.support.certificates import Authority

pytestmark = [
    pytest.mark.timeout(900),  # several processes each, on a machine that may be busy
    pytest.mark.usefixtures("no_other_settings"),
]


def documented_topics(user: str) -> tuple[set[str], set[str]]:
    """Return what the table of docs/security.md lets a user write and read."""
    text = DOCUMENT.read_text(encoding="utf-8")
    row = re.search(rf"^\| `smidgen-{user}` \|[^|]*\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    assert row, user
    writes, reads = ({name.strip() for name in cell.split(",") if name.strip()} for cell in row.groups())
    return writes, reads


async def may_write(broker: Broker, topic: str) -> bool:
    try:  # who may write to no topic at all may not even start to
        async with AIOKafkaProducer(**broker.arguments(), enable_idempotence=True) as producer:
            await producer.send_and_wait(TOPICS[topic].name, b"{}", key=b"key")
    except (TopicAuthorizationFailedError, ClusterAuthorizationFailedError):
        return False
    return True


async def may_read(broker: Broker, topic: str) -> bool:
    try:
        async for _ in read_topic(broker, TOPICS[topic], from_start=False, follow=False):
            break
    except ConfigError as error:
        if not re.search("refuses the user|may not see it", str(error)):
            raise
        return False
    return True


class TestRights:
    @pytest.mark.parametrize("user", USERS)
    def test_a_user_may_do_what_the_document_says_and_no_more(
        self, secured: KafkaCluster, authority: Authority, user: str
    ) -> None:
        broker = connection(secured.url, login(authority, user))
        writes, reads = documented_topics(user)
        if user == "operator":
            writes = reads = set(TOPICS)

        async def look() -> tuple[set[str], set[str]]:
            wrote = {topic for topic in TOPICS if await may_write(broker, topic)}
            return wrote, {topic for topic in TOPICS if await may_read(broker, topic)}

        assert asyncio.run(look()) == (writes, reads)

    @pytest.mark.parametrize(
        "mechanisms",
        [{}, {"sasl_mechanism": "PLAIN"}],
        ids=["SCRAM-SHA-512", "PLAIN"],
    )
    def test_profiles_reach_the_store(
        self,
        secured: KafkaCluster,
        authority: Authority,
        mechanisms: dict[str, str],
        shared_store: Store,
        store_dsn: str,
        service_name: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        load = build_load(service_name, 40)
        agent = load_settings({"broker": secured.url}, environ=login(authority, "agent", **mechanisms))
        profiles = [Outgoing("profiles", f"{p.service}/{p.host}", encode_profile(p)) for p in load.profiles]
        publish_once(profiles, agent, TOPICS)
        for name, value in login(authority, "aggregate", **mechanisms).items():
            monkeypatch.setenv(name, value)
        with WorkerProcess(BrokerUrl(secured.url, idempotent=True), store_dsn, "aggregate") as worker:
            worker.wait_ready()
            wait_until(
                lambda: stored_samples(shared_store, service_name) == load.samples, "all samples", worker
            )
            assert worker.stop() == 0, worker.log
            assert SECRET not in worker.log
        assert_counted(shared_store, load)

    def test_every_stage_joins_its_group_with_its_own_rights(
        self,
        secured: KafkaCluster,
        authority: Authority,
        store_dsn: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        with ExitStack() as running:
            workers = []
            for stage in STAGES:
                for name, value in login(authority, stage).items():
                    monkeypatch.setenv(name, value)
                worker = WorkerProcess(BrokerUrl(secured.url, idempotent=True), store_dsn, stage)
                workers.append(running.enter_context(worker))
            for worker in workers:
                worker.wait_ready()
            for worker in workers:
                assert worker.stop() == 0, worker.log
                assert "uthorization" not in worker.log

    def test_an_agent_cannot_report_a_regression(self, secured: KafkaCluster, authority: Authority) -> None:
        settings = load_settings({"broker": secured.url}, environ=login(authority, "agent"))
        with pytest.raises(BrokerUnavailable, match="refuses the user 'smidgen-agent' a topic"):
            publish_once([Outgoing("regressions", "shop", b"{}")], settings, TOPICS)

    def test_a_stage_cannot_take_another_ones_work(
        self, secured: KafkaCluster, authority: Authority, store_dsn: str
    ) -> None:
        flags = ("--broker", secured.url, "--store", store_dsn)
        done = smidgen(login(authority, "detect"), "worker", "aggregate", *flags)
        assert_refused(done, "refuses the user 'smidgen-detect' its consumer group")

    def test_subscribers_read_events_and_nothing_else(
        self, secured: KafkaCluster, authority: Authority
    ) -> None:
        arguments = ("events", "tail", "--no-follow", "--broker", secured.url)
        done = smidgen(login(authority, "subscriber"), *arguments)
        assert (done.returncode, done.stdout) == (0, "")
        refused = smidgen(login(authority, "agent"), *arguments)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
        assert "may not see it" in refused.stderr

    def test_an_operator_moves_a_stage_of_which_no_worker_runs(
        self, secured: KafkaCluster, authority: Authority
    ) -> None:
        arguments = ("stage", "rewind", "filter", "--since", "1m", "--broker", secured.url)
        done = smidgen(login(authority, "operator"), *arguments)
        assert (done.returncode, done.stderr) == (0, ""), done
        # How many there are is up to the tests before.
        assert re.search(r"^filter reads \d+ messages? again$", done.stdout, re.MULTILINE), done

    def test_an_operator_creates_and_checks_topics(self, secured: KafkaCluster, authority: Authority) -> None:
        done = smidgen(login(authority, "operator"), "topics", "apply", "--broker", secured.url)
        assert (done.returncode, done.stdout) == (0, "nothing to do\n"), done.stderr
        done = smidgen(login(authority, "agent"), "topics", "apply", "--broker", secured.url)
        assert done.returncode == 2, done.stdout
        assert len(done.stderr.splitlines()) == 1
