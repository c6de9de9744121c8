"""Where keys go: Kafka's default without shards, and with them nobody else moves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kafka import Broker, Packet, Producer, partition_of, partition_of_key, shard_lines
from pipeline.settings.topics import DEFAULT_PATH, Topics, load_topics

TOPICS = load_topics()
SHARDED = TOPICS.widened({"checkout": 4, "checkout/eu": 2})

services = st.sampled_from(["checkout", "checkout/eu", "checkouts", "shop", "a", "ünï"]) | st.text(min_size=1)
keys = st.builds(lambda service, host: f"{service}/{host}".encode(errors="replace"), services, st.text())


@given(key=keys | st.binary(), partitions=st.integers(1, 500))
def test_without_shards_a_key_goes_where_the_clients_default_puts_it(key: bytes, partitions: int) -> None:
    every = list(range(partitions))
    assert partition_of_key(key, partitions, {}) == DefaultPartitioner()(key, every, every)


@given(key=keys, partitions=st.integers(1, 50), widths=st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_one_more_shard_at_the_end_moves_nobody_else(key: bytes, partitions: int, widths: list[int]) -> None:
    """With as many partitions more as it takes: so keys of the shards before it stay, too."""
    before: dict[str, range] = {}
    first = partitions
    for service, width in zip(["a", "checkout", "shop"], widths, strict=False):
        after = {**before, service: range(first, first + width)}
        was, now = (
            partition_of_key(key, first, before),
            partition_of_key(key, first + width, after),
        )
        if key.split(b"/")[0] == service.encode():
            assert now in after[service]
        else:
            assert now == was
        before, first = after, first + width


@pytest.mark.parametrize(
    ("topic", "key", "expected"),
    [
        ("profiles", b"checkout/h1", range(12, 16)),
        ("profiles", b"checkout/eu/h1", range(16, 18)),
        ("metrics", b"checkout/latency", range(12, 16)),
        ("profiles", b"checkouts/h1", range(12)),
        ("profiles", b"shop/checkout/", range(12)),
        ("windows", b"checkout", range(6, 7)),
        ("regressions", b"checkout/eu", range(7, 8)),
        ("unique", b"shop", range(6)),
        ("changes", b"checkout", range(3)),
        ("dead-letters", b"checkout/h1", range(3)),
    ],
)
def test_a_shard_has_partitions_of_its_own(topic: str, key: bytes, expected: range) -> None:
    assert partition_of(Packet(topic, key, b""), SHARDED) in expected
    assert partition_of(Packet(topic, key, b""), SHARDED.of_fleet("blue.")) in expected


def test_hosts_of_a_shard_use_all_its_partitions() -> None:
    packets = [Packet("profiles", f"checkout/h{n}".encode(), b"") for n in range(100)]
    assert {partition_of(packet, SHARDED) for packet in packets} == set(range(12, 16))


def test_the_lines_name_every_partition_of_a_shard() -> None:
    assert shard_lines(TOPICS) == []
    assert shard_lines(SHARDED.of_fleet("b."))[0] == (
        "checkout has for itself: partitions 12 to 15 of b.profiles, b.metrics, b.requests; "
        "partition 6 of b.windows, b.change-points, b.filtered, b.unique, b.regressions"
    )


class Client:
    """Takes note of where it is to send, on a broker with some partitions."""

    def __init__(self, partitions: int) -> None:
        self.partitions = set(range(partitions))
        self.sent: list[int | None] = []

    async def partitions_for(self, topic: str) -> set[int]:
        return self.partitions

    async def send(self, topic: str, *, partition: int | None, **_: object) -> Any:
        self.sent.append(partition)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_exception(RuntimeError("not of interest"))
        return done


def sent(topics: Topics, partitions: int, *packets: Packet) -> list[int | None]:
    client = Client(partitions)
    producer = Producer(cast(Any, client), Broker(servers=("a:1",)), topics)

    async def send() -> None:
        with pytest.raises(RuntimeError):
            await producer.send_packets(packets)

    asyncio.run(send())
    return client.sent


def test_a_plain_producer_leaves_it_to_the_client_but_for_topics_with_shards() -> None:
    big, small = Packet("profiles", b"checkout/h1", b""), Packet("profiles", b"shop/h1", b"")
    assert sent(TOPICS, 12, big, small) == [None, None]
    wanted = [partition_of(packet, SHARDED) for packet in (big, small)]
    assert sent(SHARDED, 18, big, small, Packet("changes", b"shop", b"")) == [*wanted, None]
    assert sent(SHARDED, 12, big, small) == [None, wanted[1]], "the broker has none of its own yet"


def test_shards_stand_in_the_topics_file(tmp_path: Path) -> None:
    raw = yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8"))
    path = tmp_path / "topics.yaml"
    path.write_text(yaml.safe_dump(raw | {"shards": {"checkout": 4, "search": 1}}, sort_keys=False))
    topics = load_topics(path)
    assert dict(topics.reserved("metrics")) == {"checkout": range(12, 16), "search": range(16, 17)}
    assert dict(topics.reserved("filtered")) == {"checkout": range(6, 7), "search": range(7, 8)}
    assert {topics[name].partitions for name in topics.shared_key} == {8}
    assert topics["changes"].partitions == TOPICS["changes"].partitions
