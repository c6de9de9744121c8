"""Dead letters, partitions, addresses and drift: the small pure parts of the runtime."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from pipeline.commands.events import describe
from pipeline.kafka import Packet, bootstrap_servers, partition_of
from pipeline.kafka.topics import Actual, drift
from pipeline.model.errors import ConfigError
from pipeline.settings.topics import load_topics
from pipeline.telemetry.metrics import RepeatFilter, Telemetry
from pipeline.worker.dlq.writer import DeadLetterWriter, Rejected

TOPICS = load_topics()


@dataclass
class Collector:
    packets: list[Packet] = field(default_factory=list)

    async def publish_packets(self, packets: Sequence[Packet], give_up: asyncio.Event) -> bool:
        self.packets += packets
        return True


def dead_letter(rejected: Rejected) -> Packet:
    collector = Collector()
    dead_letters = DeadLetterWriter(collector, TOPICS, "aggregate", lambda: 0.0)
    asyncio.run(dead_letters.send([rejected], asyncio.Event()))
    return collector.packets[0]


def test_a_dead_letter_too_large_is_cut_and_says_so() -> None:
    limit = TOPICS["dead-letters"].max_message_bytes
    packet = dead_letter(Rejected("profiles", 3, 9, b"k", b"v" * (limit + 5), "too big"))
    size = len(packet.value) + sum(len(name) + len(value) for name, value in packet.headers)
    assert size + len(packet.key or b"") < limit
    assert dict(packet.headers)["truncated"] == str(limit + 5).encode()


def test_a_dead_letter_without_a_key_goes_to_the_partition_it_came_from() -> None:
    packet = dead_letter(Rejected("profiles", 4, 9, None, b"v", "bad"))
    assert packet.key is None
    assert partition_of(packet, TOPICS) == 4 % 3


def test_a_reason_of_any_length_fits() -> None:
    packet = dead_letter(Rejected("profiles", 0, 0, None, b"v", "x" * 100_000))
    assert len(dict(packet.headers)["reason"]) == 2000


@pytest.mark.parametrize(
    ("key", "murmur2"),
    # Hashes that Kafka's own tests state: another producer's default puts a key where we do.
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536)],
)
def test_keys_go_where_kafkas_default_partitioner_puts_them(key: bytes, murmur2: int) -> None:
    partitions = TOPICS["windows"].partitions
    assert partition_of(Packet("windows", key, b""), TOPICS) == (murmur2 & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize(
    ("broker", "servers"),
    [
        ("localhost:9092", ["localhost:9092"]),
        ("a:1, b:2,", ["a:1", "b:2"]),
        ("kafka://a:1", ["a:1"]),
        ("[::1]:9092", ["[::1]:9092"]),
    ],
)
def test_addresses(broker: str, servers: list[str]) -> None:
    assert bootstrap_servers(broker) == servers


@pytest.mark.parametrize(
    "broker", ["", ",", "host", "host:", ":9092", "host:abc", "host:0", "http://h:1", "h h:1"]
)
def test_malformed_addresses(broker: str) -> None:
    with pytest.raises(ConfigError, match=r"broker: should be host:port"):
        bootstrap_servers(broker)


def test_drift_names_each_difference_once() -> None:
    actual = {t.name: Actual(t.partitions, t.broker_config()) for t in TOPICS.values()}
    assert drift(TOPICS, actual) == []
    del actual["feedback"]
    actual["profiles"] = Actual(6, TOPICS["profiles"].broker_config())
    actual["windows"] = Actual(6, {"retention.ms": "1000", "cleanup.policy": "delete"})
    assert drift(TOPICS, actual) == [
        "profiles: 6 partitions instead of 12",
        "windows: retention.ms is 1000 instead of 86400000",
        "feedback: missing",
    ]


def test_a_summary_counts_since_the_last_one() -> None:
    telemetry = Telemetry("detect")
    telemetry.batch([1, 2, 3], [], ["bad"])
    telemetry.published(2, 1)
    telemetry.retried()
    assert telemetry.summary(7) == (
        "stage=detect messages=3 samples=0 published=2 dead_letters=2 left_out_messages=0 lost_messages=0 "
        "store_retries=1 lag=7"
    )
    assert telemetry.summary(None).startswith("stage=detect messages=0 samples=0")


def test_a_library_repeats_itself_once_in_a_while() -> None:
    repeats = RepeatFilter("aiokafka")

    def passes(name: str, text: str, created: float) -> bool:
        record = logging.makeLogRecord({"name": name, "msg": text, "created": created})
        return bool(repeats.filter(record))

    assert passes("aiokafka.conn", "down %s", 1000.0)
    assert not passes("aiokafka.conn", "down %s", 1029.0)
    assert passes("aiokafka.conn", "other", 1029.0)
    assert passes("aiokafka.conn", "down %s", 1031.0)
    assert [passes("pipeline.worker", "same", 1000.0) for _ in range(2)] == [True, True]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            {
                "metric": "shop.total",
                "metric_kind": "subroutine",
                "service": "shop",
                "workload": "live",
                "kind": "short_term",
                "change_time": "2026-01-31T12:00:00.000Z",
                "before": 0.0005,
                "after": 0.00055,
                "delta": 0.00005,
                "relative": 0.1,
                "group": [{"metric": "shop.cart"}],
                "root_causes": [
                    {"change": {"id": "abc", "title": "Round prices", "author": "Ada"}, "score": 0.9},
                    {"change": {"id": "def", "title": "Other"}, "score": 0.1},
                ],
            },
            [
                "shop.total  shop  live short-term",
                "  since 2026-01-31T12:00:00.000Z  0.0500% → 0.0550% of CPU  (+0.0050 points, +10.0%)",
                "  suspect abc Round prices by Ada  score 0.90, 1 more",
                "  with    shop.cart",
                "  id      1",
            ],
            id="whole",
        ),
        pytest.param(
            {"metric": "shop.total", "explanations": [{"metric": "cache.hits"}, {"metric": "queue"}]},
            ["shop.total  ?   ", "  since ?  ", "  no suspect", "  follows cache.hits", "  id      1"],
            id="explained by a set-up metric",
        ),
        pytest.param(
            {"metric": "p99", "metric_kind": "service", "before": 0, "after": 2.5, "delta": 2.5},
            ["p99  ?   ", "  since ?  0 → 2.5  (+2.5, new)", "  no suspect", "  id      1"],
            id="with little in it",
        ),
    ],
)
def test_events_for_people(data: dict[str, object], expected: list[str]) -> None:
    assert [line.plain for line in describe({"id": "1", "data": data})] == expected


FOLLOWED: dict[str, object] = {
    "metric": "shop.total",
    "metric_kind": "subroutine",
    "service": "shop",
    "workload": "live",
    "regression": "c0ffee",
    "change_time": "2026-01-31T12:00:00.000Z",
    "before": 0.0005,
    "after": 0.00055,
}


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        pytest.param(
            "updated",
            {"level": 0.0006, "share_remaining": 2.0, "grown": {"metric": "shop.total"}},
            [
                "shop.total  shop  live update: escalated",
                "  since 2026-01-31T12:00:00.000Z  0.0600% of CPU, 200% of the rise from 0.0500% to 0.0550%",
                "  of      c0ffee",
                "  id      1",
            ],
            id="escalated",
        ),
        pytest.param(
            "updated",
            {
                "level": 0.0006,
                "share_remaining": 2.0,
                "grown": {"metric": "shop.cart"},
                "metric_kind": "service",
            },
            [
                "shop.total  shop  live update: escalated",
                "  since 2026-01-31T12:00:00.000Z"
                "  0.0006, 200% of the change from 0.0005 to 0.00055  by shop.cart",
                "  of      c0ffee",
                "  id      1",
            ],
            id="a member of its group has escalated",
        ),
        pytest.param(
            "updated",
            {
                "level": 0.00055,
                "share_remaining": 1.0,
                "grown": None,
                "joined": [{"metric": "shop.cart"}],
                "joined_size": 1,
            },
            [
                "shop.total  shop  live update: joined by shop.cart",
                "  since 2026-01-31T12:00:00.000Z  0.0550% of CPU, as reported",
                "  of      c0ffee",
                "  id      1",
            ],
            id="a series has joined",
        ),
        pytest.param(
            "resolved",
            {
                "level": 0.0005,
                "share_remaining": 0.0,
                "resolved_by": [{"id": "abc", "title": "Revert", "author": "Ada"}],
            },
            [
                "shop.total  shop  live is resolved",
                "  since 2026-01-31T12:00:00.000Z  0.0500% of CPU, 0% of the rise from 0.0500% to 0.0550%",
                "  of      c0ffee",
                "  fix     abc Revert by Ada",
                "  id      1",
            ],
            id="resolved",
        ),
        pytest.param(
            "resolved",
            {"before": "?"},
            [
                "shop.total  shop  live is resolved",
                "  since 2026-01-31T12:00:00.000Z  ",
                "  of      c0ffee",
                "  id      1",
            ],
            id="resolved, with little in it",
        ),
    ],
)
def test_what_became_of_it_for_people(kind: str, data: dict[str, object], expected: list[str]) -> None:
    event = {"id": "1", "type": f"smidgen.regression.{kind}", "data": {**FOLLOWED, **data}}
    assert [line.plain for line in describe(event)] == expected
