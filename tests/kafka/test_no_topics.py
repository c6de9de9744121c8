"""Commands before ``smidgen topics apply``, on a Kafka that would make any topic it is asked about."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadgen.engines.kafka.cluster import ClusterSettings, KafkaCluster
from loadgen.engines.kafka.jars import Jars
from pipeline.cli import run
from pipeline.kafka import admin_client, apply_topics
from pipeline.settings.topics import Topics
from tests.e2e.worker_process import TOPICS

pytestmark = pytest.mark.e2e

SOON_S = 90.0
"""Far less than the minutes for which a client asks again about a topic that is not there."""


@pytest.fixture(scope="module")
def url(kafka_jars: Jars) -> Iterator[str]:
    generous = {"auto.create.topics.enable": "true", "num.partitions": "3"}
    with KafkaCluster(settings=ClusterSettings(jars=kafka_jars, properties=generous)) as cluster:
        yield cluster.url


def topics_of(url: str) -> set[str]:
    async def asked() -> list[str]:
        async with admin_client(url) as client:
            return list(await client.list_topics())

    return {name for name in asyncio.run(asked()) if not name.startswith("__")}


def test_doctor_says_what_to_do_where_topics_are_of_another_kind(
    kafka_cluster: Callable[..., KafkaCluster], store_dsn: str, capfd: pytest.CaptureFixture[str]
) -> None:
    url = kafka_cluster().url
    narrow = {name: topic.model_copy(update={"partitions": 2}) for name, topic in TOPICS.items()}
    wide = narrow["feedback"].model_copy(update={"partitions": 9})
    asyncio.run(apply_topics(url, Topics({**narrow, "feedback": wide})))
    begun = time.monotonic()
    assert run(["doctor", "--broker", url, "--store", store_dsn, "--json"]) == 1
    taken = time.monotonic() - begun
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    found = [line for line in lines if line["check"] == "topics"]
    assert {(line["status"], line["advice"]) for line in found} == {
        ("fail", "smidgen topics apply"),
        ("fail", "write what it has into topics.yaml, or make it anew if it is empty"),
    }
    assert f"profiles: 2 partitions instead of {TOPICS['profiles'].partitions}" in [
        line["detail"] for line in found
    ]
    by_check = {line["check"]: line["status"] for line in lines}
    assert [by_check[check] for check in ("lag of aggregate", "dead letters", "agents")] == [
        "warn",
        "ok",
        "warn",
    ]
    assert taken < SOON_S


BUSY = "import time\nwhile time.process_time() < 2: pass"
"""A program that lives long enough to be sampled: of one that ends at once there is nothing to send."""

COMMANDS = {
    "doctor": (["doctor", "--store", "{store}"], 1, "profiles: missing"),
    "dlq list": (["dlq", "list"], 2, "topic dead-letters is missing"),
    "dlq replay": (["dlq", "replay"], 2, "topic dead-letters is missing"),
    "events tail": (["events", "tail", "--timeout", "2s"], 2, "topic regressions is missing"),
    "topics check": (["topics", "check"], 1, "profiles: missing"),
    "agent import": (["agent", "import", "p.txt", "--service", "s"], 2, "no topic profiles"),
    "agent run": (["agent", "run", "--service", "s", "--", "{python}", "-c", BUSY], 1, "not confirmed"),
    "mute": (["mute", "--service", "s", "--until", "1d", "--owner", "me"], 2, "no topic feedback"),
    "worker": (["worker", "aggregate", "--store", "{store}"], 2, "topic profiles is missing"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), COMMANDS.values(), ids=COMMANDS.keys())
def test_no_command_makes_a_topic(
    url: str,
    store_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.txt").write_text("main;work 10\n")
    given = [one.format(store=store_dsn, python=sys.executable) for one in arguments]
    at = given.index("--") if "--" in given else len(given)  # what follows is the program's own
    begun = time.monotonic()
    assert run([*given[:at], "--broker", url, *given[at:]]) == code
    taken = time.monotonic() - begun
    out, err = capfd.readouterr()
    assert message in out + err
    assert topics_of(url) == set()
    assert taken < SOON_S
