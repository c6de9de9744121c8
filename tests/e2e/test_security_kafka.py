"""Smidgen against Apache Kafka with TLS, logins and rights, over certificates made here."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ClusterAuthorizationFailedError, TopicAuthorizationFailedError
from aiokafka.protocol.admin import CreateAclsRequest

from agents.broker import publish_once
from loadgen.kafka.cluster import KafkaCluster, ScramUser
from loadgen.kafka.jars import Jars
from pipeline.broker import Broker, check
from pipeline.codec.inputs import encode_profile
from pipeline.config import load_settings
from pipeline.errors import BrokerUnavailable, ConfigError
from pipeline.model import Outgoing
from pipeline.runtime.admin import apply_topics
from pipeline.runtime.identity import admin_client
from pipeline.runtime.publisher import Publisher
from pipeline.runtime.reader import read_topic
from pipeline.storage.interface import Store
from tests.certificates import Authority
from tests.e2e.worker_process import (
    TOPICS,
    BrokerUrl,
    WorkerProcess,
    assert_counted,
    build_load,
    publish_load,
    stored_samples,
    wait_until,
)

pytestmark = pytest.mark.timeout(900)  # several processes each, on a machine that may be busy

SECRET = "a-password-nobody-sees"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required {};"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
LOGINS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "plain.sasl.jaas.config": PLAIN.format(
        f'user_smidgen-aggregate="{SECRET}" user_smidgen-agent="{SECRET}"'
    ),
    "scram-sha-256.sasl.jaas.config": SCRAM,
    "scram-sha-512.sasl.jaas.config": SCRAM,
}
RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # whoever comes over the plain listener, which only this test knows
}
DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
STAGES = ("aggregate", "detect", "filter", "dedup", "rootcause")
USERS = ("agent", "exporter", "changes", *STAGES, "subscriber", "operator")

Environment = Mapping[str, str]


def keystore(authority: Authority, name: str, **issued: str | int) -> dict[str, str]:
    """Return the properties of a listener that shows a new certificate."""
    certificate = authority.issue(name, **issued)  # type: ignore[arg-type]
    return {
        **{"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificate.both)},
        **{"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.certificate)},
    }


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(kafka_jars: Jars, authority: Authority) -> Iterator[KafkaCluster]:
    """A broker with TLS, logins, and the rights that docs/security.md gives."""
    users = [
        ScramUser(f"smidgen-{user}", SECRET, f"SCRAM-SHA-{bits}") for user in USERS for bits in ("256", "512")
    ]
    listener = {**keystore(authority, "broker"), **LOGINS}
    with KafkaCluster(
        security_protocol="SASL_SSL",
        listener_properties=listener,
        properties=RIGHTS,
        scram=users,
        jars=kafka_jars,
    ) as cluster:
        asyncio.run(apply_topics(cluster.plain_url, TOPICS))
        asyncio.run(grant(cluster.plain_url, documented_rights()))
        yield cluster


@pytest.fixture(autouse=True)
def no_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SMIDGEN_")]:
        monkeypatch.delenv(name)


def login(authority: Authority, user: str, *, password: str = SECRET, **more: str) -> dict[str, str]:
    """Return the environment of a user of the secured broker."""
    given = {"broker_ca": str(authority.certificate), "sasl_username": f"smidgen-{user}"}
    given |= {"broker_security": "sasl_ssl", "sasl_password": password, **more}
    return {f"SMIDGEN_{key.upper()}": value for key, value in given.items() if value}


def connection(broker: str, environ: Environment) -> Broker:
    return Broker.of(load_settings({"broker": broker}, environ=environ))


def smidgen(environ: Environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=400, check=False
    )


# ResourceType, AclOperation and ResourcePatternType of Kafka's protocol.
RESOURCES = {"--topic": 2, "--group": 3, "--cluster": 4}
OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Describe": 8, "DescribeConfigs": 10}
LITERAL, ALLOW, ANY_HOST = 3, 3, "*"

Right = tuple[str, str, int, str]
"""Principal, operation, type of resource, its name."""


def documented_rights() -> list[Right]:
    """Return the rights that docs/security.md gives: its lines for kafka-acls.sh, loops unrolled."""
    text = DOCUMENT.read_text(encoding="utf-8")
    lines = re.findall(r"^acl (--allow-principal .+)$", text, re.MULTILINE)
    for names, body in re.findall(r"^for stage in ([\w ]+); do\n  acl (.+)\ndone$", text, re.MULTILINE):
        lines += [body.replace("$stage", name) for name in names.split()]
    rights = []
    for line in lines:
        words = line.replace("'", "").split()
        given = list(zip(words[::2], words[1::2], strict=True))
        principals = [value for flag, value in given if flag == "--allow-principal"]
        operations = [value for flag, value in given if flag == "--operation"]
        places = [(RESOURCES[flag], value) for flag, value in given if flag in RESOURCES]
        rights += [(p, o, kind, name) for p in principals for o in operations for kind, name in places]
    return rights


async def grant(broker: str, rights: list[Right]) -> None:
    async with admin_client(broker) as client:
        for principal, operation, kind, name in rights:
            answer = await client._send_request(
                CreateAclsRequest(kind, name, LITERAL, principal, ANY_HOST, OPERATIONS[operation], ALLOW)
            )
            assert [code for code, _ in answer.creation_responses] == [0]


def documented_topics(user: str) -> tuple[set[str], set[str]]:
    """Return what the table of docs/security.md lets a user write and read."""
    text = DOCUMENT.read_text(encoding="utf-8")
    row = re.search(rf"^\| `smidgen-{user}` \|[^|]*\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    assert row, user
    writes, reads = ({name.strip() for name in cell.split(",") if name.strip()} for cell in row.groups())
    return writes, reads


async def may_write(broker: Broker, topic: str) -> bool:
    async with AIOKafkaProducer(**broker.arguments(), enable_idempotence=True) as producer:
        try:
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

    def test_an_operator_creates_and_checks_topics(self, secured: KafkaCluster, authority: Authority) -> None:
        done = smidgen(login(authority, "operator"), "topics", "apply", "--broker", secured.url)
        assert (done.returncode, done.stdout) == (0, "nothing to do\n"), done.stderr
        done = smidgen(login(authority, "agent"), "topics", "apply", "--broker", secured.url)
        assert done.returncode == 2, done.stdout
        assert len(done.stderr.splitlines()) == 1


def commands(broker: str, store: str, folder: Path) -> dict[str, tuple[str, ...]]:
    """Return one command for each way in which Smidgen connects to Kafka."""
    (folder / "stacks.txt").write_text("main;work 1\n")
    (folder / "services.yaml").write_text(
        "repositories: {a/b: {forge: github, secret_env: HOOK, deploys: [{branch: main, service: s}]}}\n"
    )
    flags = ("--broker", broker)
    return {
        "worker": ("worker", "aggregate", *flags, "--store", store),
        "topics": ("topics", "check", *flags),
        "events": ("events", "tail", "--no-follow", *flags),
        "import": ("agent", "import", str(folder / "stacks.txt"), "--service", "shop", *flags),
        "run": ("agent", "run", "--service", "shop", *flags, "--", sys.executable, "-c", "print('ran')"),
    }


WAYS = ("worker", "topics", "events", "import", "run")


def assert_refused(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    assert text in done.stderr
    assert SECRET not in done.stderr


class TestRefusals:
    @pytest.mark.parametrize("way", WAYS)
    def test_a_wrong_password(
        self, secured: KafkaCluster, authority: Authority, store_dsn: str, tmp_path: Path, way: str
    ) -> None:
        environ = login(authority, "operator", password=SECRET + "!")
        command = commands(secured.url, store_dsn, tmp_path)[way]
        assert_refused(smidgen(environ, *command), "refuses the user 'smidgen-operator' or its password")

    @pytest.mark.parametrize("way", WAYS)
    def test_a_broker_that_nobody_vouches_for(
        self, secured: KafkaCluster, authority: Authority, store_dsn: str, tmp_path: Path, way: str
    ) -> None:
        other = Authority(tmp_path, "another")
        environ = login(authority, "operator", broker_ca=str(other.certificate))
        command = commands(secured.url, store_dsn, tmp_path)[way]
        assert_refused(
            smidgen(environ, *command), "its certificate is not trusted: unable to get local issuer"
        )

    @pytest.mark.parametrize("way", WAYS)
    def test_a_missing_file(
        self, secured: KafkaCluster, authority: Authority, store_dsn: str, tmp_path: Path, way: str
    ) -> None:
        environ = login(authority, "operator", broker_ca="gone.pem")
        command = commands(secured.url, store_dsn, tmp_path)[way]
        assert_refused(smidgen(environ, *command), "broker_ca: gone.pem: No such file")

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            ({"sasl_username": "nobody"}, "refuses the user 'nobody' or its password"),
            ({"sasl_mechanism": "plain", "sasl_username": "x"}, "refuses the user 'x' or its password"),
            (
                {"broker_security": "plaintext", "broker_ca": "", "sasl_username": "", "sasl_password": ""},
                "wants an encrypted connection: broker_security should be ssl",
            ),
            (
                {"broker_security": "sasl_plaintext", "broker_ca": ""},
                "wants an encrypted connection: broker_security should be sasl_ssl",
            ),
            (
                {"broker_security": "ssl", "sasl_username": "", "sasl_password": ""},
                "hangs up: perhaps it asks for a login (broker_security)",
            ),
        ],
        ids=["no such user", "no such user of PLAIN", "in the clear", "not encrypted", "not logged in"],
    )
    def test_whatever_does_not_fit_is_named(
        self, secured: KafkaCluster, authority: Authority, given: dict[str, str], text: str
    ) -> None:
        broker = connection(secured.url, login(authority, "operator", **given))
        assert text in str(asyncio.run(check(broker)))

    def test_a_login_where_nobody_logs_in(self, secured: KafkaCluster, authority: Authority) -> None:
        environ = login(authority, "operator", broker_security="sasl_plaintext", broker_ca="")
        found = asyncio.run(check(connection(secured.plain_url, environ)))
        assert isinstance(found, ConfigError)
        assert "lets nobody log in there: broker_security should be plaintext" in str(found)

    @pytest.mark.parametrize(
        ("issued", "text"),
        [
            ({"days": -1}, "its certificate is not trusted: certificate has expired"),
            ({"hosts": "DNS:kafka.example"}, "its certificate is not trusted: IP address mismatch"),
        ],
        ids=["expired", "another host"],
    )
    def test_a_certificate_that_does_not_hold(
        self,
        kafka_cluster: Callable[..., KafkaCluster],
        authority: Authority,
        issued: dict[str, str | int],
        text: str,
    ) -> None:
        cluster = kafka_cluster(
            security_protocol="SSL", listener_properties=keystore(authority, "x", **issued)
        )
        environ = login(authority, "", broker_security="ssl", sasl_username="", password="")
        done = smidgen(environ, "topics", "check", "--broker", cluster.url)
        assert_refused(done, text)

    def test_a_worker_repeats_and_says_why_when_it_is_locked_out(
        self, secured: KafkaCluster, authority: Authority, caplog: pytest.LogCaptureFixture
    ) -> None:
        """As after a change of passwords: what is to be published waits, and nothing is lost."""

        async def publish() -> None:
            give_up = asyncio.Event()
            environ = login(authority, "aggregate", password="changed-by-now")
            publisher = Publisher(connection(secured.url, environ), TOPICS, idempotent=True)
            message = Outgoing("windows", "shop", b"{}")
            task = asyncio.ensure_future(publisher.publish([message], give_up))
            while "trying again" not in caplog.text and not task.done():
                await asyncio.sleep(0.05)
            give_up.set()
            assert await task is False
            await publisher.stop()

        asyncio.run(asyncio.wait_for(publish(), 60))
        assert "refuses the user 'smidgen-aggregate' or its password" in caplog.text
        assert "changed-by-now" not in caplog.text


class TestOtherListeners:
    def test_certificates_on_both_sides(
        self,
        kafka_cluster: Callable[..., KafkaCluster],
        authority: Authority,
        shared_store: Store,
        store_dsn: str,
        service_name: str,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        listener = {**keystore(authority, "mutual"), "ssl.client.auth": "required"}
        cluster = kafka_cluster(security_protocol="SSL", listener_properties=listener)
        asyncio.run(apply_topics(cluster.plain_url, TOPICS))
        nameless = login(authority, "", broker_security="ssl", sasl_username="", password="")
        done = smidgen(nameless, "topics", "check", "--broker", cluster.url)
        assert_refused(done, "wants a certificate of ours that it trusts (broker_cert)")
        stranger = Authority(tmp_path, "another").issue("stranger")
        environ = {**nameless, "SMIDGEN_BROKER_CERT": str(stranger.both)}
        done = smidgen(environ, "topics", "check", "--broker", cluster.url)
        assert_refused(done, "wants a certificate of ours that it trusts (broker_cert)")
        own = authority.issue("aggregate", key_password=SECRET)
        environ = {**nameless, "SMIDGEN_BROKER_CERT": str(own.certificate)}
        environ |= {"SMIDGEN_BROKER_KEY": str(own.key), "SMIDGEN_BROKER_KEY_PASSWORD": SECRET}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        load = build_load(service_name, 20)
        publish_load(cluster.plain_url, load)
        with WorkerProcess(BrokerUrl(cluster.url, idempotent=True), store_dsn, "aggregate") as worker:
            wait_until(
                lambda: stored_samples(shared_store, service_name) == load.samples, "all samples", worker
            )
            assert worker.stop() == 0, worker.log
            assert SECRET not in worker.log
        assert_counted(shared_store, load)

    def test_a_login_without_encryption(
        self, kafka_cluster: Callable[..., KafkaCluster], authority: Authority
    ) -> None:
        cluster = kafka_cluster(
            security_protocol="SASL_PLAINTEXT",
            listener_properties=LOGINS,
            scram=[ScramUser("smidgen-operator", SECRET, "SCRAM-SHA-256")],
        )
        given = {"broker_security": "sasl_plaintext", "broker_ca": "", "sasl_mechanism": "scram-sha-256"}
        environ = login(authority, "operator", **given)
        done = smidgen(environ, "topics", "apply", "--broker", cluster.url)
        assert done.returncode == 0, done.stderr
        assert "profiles: created" in done.stdout
        broker = connection(cluster.url, {**environ, "SMIDGEN_SASL_MECHANISM": "scram-sha-512"})
        assert "or its password" in str(asyncio.run(check(broker)))
