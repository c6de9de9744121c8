"""``smidgen topics`` on Apache Kafka: what is created, and which differences are reported."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from loadgen.engines.kafka.cluster import KafkaCluster
from pipeline.cli import run
from pipeline.settings.topics import DEFAULT_PATH
from tests.e2e.worker_process import TOPICS, wait_until
from tests.kafka.asking import add_partitions, alter, has_settings, partitions, settings

pytestmark = pytest.mark.e2e

Start = Callable[..., KafkaCluster]


def smidgen(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    capsys.readouterr()
    code = run(list(arguments))
    out, err = capsys.readouterr()
    return code, [*out.splitlines(), *err.splitlines()]


def test_one_broker_gets_topics_as_declared(
    kafka_cluster: Start, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """All of topics.yaml, with one topic that is compacted and one that is kept for ever."""
    compacted = DEFAULT_PATH.read_text().replace(
        "retention: 30d\n  cleanup: delete", "retention: 30d\n  cleanup: compact", 1
    )
    declared = tmp_path / "topics.yaml"
    declared.write_text(compacted)
    url = kafka_cluster().url
    where = ("--broker", url, "--topics", str(declared))
    names = [topic.name for topic in TOPICS.values()]

    assert smidgen(capsys, "topics", "check", *where) == (1, [f"{name}: missing" for name in names])
    assert smidgen(capsys, "topics", "apply", *where) == (0, [f"{name}: created" for name in names])
    assert smidgen(capsys, "topics", "check", *where) == (0, [])
    assert smidgen(capsys, "topics", "apply", *where) == (0, ["nothing to do"])

    for topic in TOPICS.values():
        found = settings(url, topic.name)
        assert len(partitions(url, topic.name)) == topic.partitions
        assert found["cleanup.policy"] == ("compact" if topic.name == "changes" else "delete")
        assert found["max.message.bytes"] == str(topic.max_message_bytes)
        assert found["min.insync.replicas"] == "1"
        assert found["message.timestamp.type"] == "LogAppendTime"
        assert found["unclean.leader.election.enable"] == "false"
    assert settings(url, "profiles")["retention.ms"] == "86400000"
    assert settings(url, "feedback")["retention.ms"] == "-1"


def test_every_difference_is_reported_and_nothing_is_altered(
    kafka_cluster: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    url = kafka_cluster().url
    where = ("--broker", url)
    assert smidgen(capsys, "topics", "apply", *where)[0] == 0
    add_partitions(url, "changes", 5)
    alter(url, "metrics", {"retention.ms": "1000", "cleanup.policy": "compact"})
    reported = [
        "metrics: cleanup.policy is compact instead of delete",
        "metrics: retention.ms is 1000 instead of 86400000",
        "metrics: max.message.bytes is 1048588 instead of 1048576",
        "metrics: message.timestamp.type is CreateTime instead of LogAppendTime",
        "changes: 5 partitions instead of 3",
    ]
    assert smidgen(capsys, "topics", "check", *where) == (1, reported)
    assert smidgen(capsys, "topics", "apply", *where) == (1, reported)
    assert settings(url, "metrics")["retention.ms"] == "1000"
    # Workers need the partitions; everything else may wait for a person.
    code, lines = smidgen(capsys, "worker", "aggregate", *where, "--store", "chdb://memory")
    assert (code, len(lines)) == (2, 1)
    assert "topic changes has 5 partitions instead of 3: see `smidgen topics check`" in lines[0]


def test_three_brokers_keep_three_replicas_of_which_two_must_have_a_message(
    kafka_cluster: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = kafka_cluster(3)
    where = ("--broker", cluster.url)
    assert smidgen(capsys, "topics", "apply", *where)[0] == 0
    assert smidgen(capsys, "topics", "check", *where) == (0, [])
    for topic in TOPICS.values():
        wait_until(partial(has_settings, cluster.url, topic.name, {}), f"{topic.name} on each broker")
        for partition in partitions(cluster.url, topic.name):
            assert sorted(partition["replicas"]) == [0, 1, 2]
        assert settings(cluster.url, topic.name)["min.insync.replicas"] == "2"

    alter(cluster.url, "windows", {**TOPICS["windows"].broker_config(), "min.insync.replicas": "1"})
    assert smidgen(capsys, "topics", "check", *where) == (
        1,
        [
            "windows: message.timestamp.type is CreateTime instead of LogAppendTime",
            "windows: min.insync.replicas is 1 instead of 2",
        ],
    )


@pytest.mark.kafka_all
def test_topics_that_were_made_while_a_broker_was_away_lack_replicas(
    kafka_cluster: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = kafka_cluster(3)
    where = ("--broker", cluster.url)
    cluster.shut_down(2)
    cluster.wait_gone(2)
    assert smidgen(capsys, "topics", "apply", *where)[0] == 0
    assert settings(cluster.url, "profiles")["min.insync.replicas"] == "1"
    cluster.restart(2)
    code, lines = smidgen(capsys, "topics", "check", *where)
    assert code == 1
    assert lines == [f"{topic.name}: replication 2 instead of 3" for topic in TOPICS.values()]


@pytest.mark.kafka_all
def test_a_topic_that_the_cluster_refuses_is_named(
    kafka_cluster: Start, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # Kafka takes _ and . for one another in its metrics, and refuses names that differ in nothing else.
    url = kafka_cluster().url
    for name, code in (("smidgen.scans", 0), ("smidgen_scans", 2)):
        declared = tmp_path / f"{name}.yaml"
        declared.write_text(DEFAULT_PATH.read_text().replace("name: filtered", f"name: {name}"))
        assert run(["topics", "apply", "--broker", url, "--topics", str(declared)]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert "topic smidgen_scans: Topic 'smidgen_scans' collides with existing topic" in line
