"""Fixtures of the tests of a secured Apache Kafka: a broker, an authority, and no other settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.engines.kafka.cluster import ClusterSettings, KafkaCluster, ScramUser
from loadgen.engines.kafka.jars import Jars
from pipeline.kafka import apply_topics
from tests.e2e.secured_kafka import LOGINS, RIGHTS, SECRET, USERS, documented_rights, grant, keystore
from tests.e2e.worker_process import TOPICS
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Vouches for the certificates of a file's tests."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(kafka_jars: Jars, authority: Authority) -> Iterator[KafkaCluster]:
    """A broker with TLS, logins, and the rights that docs/security.md gives."""
    users = [
        ScramUser(f"smidgen-{user}", SECRET, f"SCRAM-SHA-{bits}") for user in USERS for bits in ("256", "512")
    ]
    listener = {**keystore(authority, "broker"), **LOGINS}
    settings = ClusterSettings(
        security_protocol="SASL_SSL",
        listener_properties=listener,
        properties=RIGHTS,
        scram=users,
        jars=kafka_jars,
    )
    with KafkaCluster(settings=settings) as cluster:
        asyncio.run(apply_topics(cluster.plain_url, TOPICS))
        asyncio.run(grant(cluster.plain_url, documented_rights()))
        yield cluster


@pytest.fixture
def no_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing in the environment or the current folder that Smidgen would read."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SMIDGEN_")]:
        monkeypatch.delenv(name)
