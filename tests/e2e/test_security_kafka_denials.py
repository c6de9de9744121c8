"""Requests that a secured Apache Kafka refuses, and the one line in which each command reports the reason."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.engines.kafka.cluster import KafkaCluster
from pipeline.kafka import Publisher, check_connection
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError
from tests.e2e.secured_kafka import SECRET, assert_refused, connection, keystore, login, smidgen
from tests.e2e.worker_process import TOPICS
from tests.support.certificates import Authority

pytestmark = [
    pytest.mark.timeout(900),  # several processes each, on a machine that may be busy
    pytest.mark.usefixtures("no_other_settings"),
]


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


class TestDenials:
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
        assert text in str(asyncio.run(check_connection(broker)))

    def test_a_login_where_nobody_logs_in(self, secured: KafkaCluster, authority: Authority) -> None:
        environ = login(authority, "operator", broker_security="sasl_plaintext", broker_ca="")
        found = asyncio.run(check_connection(connection(secured.plain_url, environ)))
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

        asyncio.run(asyncio.wait_for(publish(), 240))
        assert "refuses the user 'smidgen-aggregate' or its password" in caplog.text
        assert "changed-by-now" not in caplog.text
