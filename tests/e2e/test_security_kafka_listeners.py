"""Apache Kafka with certificates on both sides, and with logins but no encryption."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.engines.kafka.cluster import KafkaCluster, ScramUser
from pipeline.kafka import apply_topics, check_connection
from pipeline.storage.interface import Store
from tests.e2e.secured_kafka import LOGINS, SECRET, assert_refused, connection, keystore, login, smidgen
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
from tests.support.certificates import Authority

pytestmark = [
    pytest.mark.timeout(900),  # several processes each, on a machine that may be busy
    pytest.mark.usefixtures("no_other_settings"),
]


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
        assert "or its password" in str(asyncio.run(check_connection(broker)))
