"""Apache Kafka itself as the tests run it: where it comes from, and what its brokers survive."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from loadgen.engines.kafka import jars
from loadgen.engines.kafka.cluster import KafkaCluster
from loadgen.engines.kafka.probe import free_ports
from pipeline.model.errors import BrokerUnavailable, ConfigError
from tests.e2e.worker_process import wait_until

COMPOSE = Path(__file__).parents[2] / "docker-compose.yml"

Start = Callable[..., KafkaCluster]


def script(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_it_is_the_version_that_is_deployed() -> None:
    image = yaml.safe_load(COMPOSE.read_text())["services"]["kafka"]["image"]
    assert image.partition("@")[0] == f"apache/kafka:{jars.kafka_version()}"


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(ConfigError, match="needs java and mvn, which cannot be found"):
        jars.kafka_jars(tmp_path / "cache")
    script(tmp_path, "java", "")
    with pytest.raises(ConfigError, match="needs mvn, which cannot be found"):
        jars.kafka_jars(tmp_path / "cache")


def test_a_failed_fetch_is_reported_and_leaves_nothing_that_looks_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    script(tmp_path, "java", "")
    script(tmp_path, "mvn", "echo '[INFO] begins'; echo '[ERROR] no such artifact'; exit 1")
    cache = tmp_path / "cache"
    with pytest.raises(ConfigError, match=r"could not fetch Apache Kafka: \[ERROR\] no such artifact"):
        jars.kafka_jars(cache)
    script(tmp_path, "mvn", 'for word; do folder="${word#-DoutputDirectory=}"; done; touch "$folder/a.jar"')
    assert [jar.name for jar in jars.kafka_jars(cache).folder.glob("*.jar")] == ["a.jar"]
    script(tmp_path, "mvn", "exit 1")
    assert jars.kafka_jars(cache).classpath.endswith("a.jar"), "fetched once"


@pytest.mark.kafka_all
@pytest.mark.e2e
def test_a_port_that_was_taken_meanwhile_is_given_up(
    kafka_cluster: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as occupied:

        def ports(host: str, count: int) -> Sequence[int]:
            found = free_ports(host, count)
            asked.append(count)
            return [occupied.getsockname()[1], *found[1:]] if len(asked) == 1 else found

        monkeypatch.setattr("loadgen.engines.kafka.cluster.free_ports", ports)
        cluster = kafka_cluster()
    assert asked == [3, 3]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", cluster.url)


@pytest.mark.e2e
def test_a_broker_that_cannot_start_says_why(kafka_cluster: Start) -> None:
    with pytest.raises(BrokerUnavailable, match="Invalid value x for configuration num.network.threads"):
        kafka_cluster(properties={"num.network.threads": "x"})


@pytest.mark.kafka_all
@pytest.mark.e2e
def test_one_of_three_is_suspended_killed_and_started_again(kafka_cluster: Start) -> None:
    cluster = kafka_cluster(3)
    pids = cluster.pids
    cluster.pause(1)
    cluster.wait_gone(1)
    cluster.resume(1)
    cluster.wait_ready()
    assert cluster.pids == pids
    cluster.kill(1)
    assert cluster.pids == (pids[0], 0, pids[2])
    with pytest.raises(ValueError, match="broker 1 is not running"):
        cluster.pause(1)
    cluster.restart(1)
    assert "Kafka Server started" in cluster.log(1)
    with pytest.raises(ValueError, match="broker 1 is still running"):
        cluster.restart(1)
    os.kill(cluster.pids[2], signal.SIGKILL)
    with pytest.raises(BrokerUnavailable, match="Kafka broker 2 ended: "):
        cluster.wait_ready(2)
    folder = cluster.folder(0)
    cluster.stop()
    assert not folder.exists()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "all processes gone")
