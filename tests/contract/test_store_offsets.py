"""What every store tells of a partition: the last offset of each table, and what was used."""

from __future__ import annotations

import pytest

from pipeline.storage.interface import Store
from tests.contract.rows import NASTY, STREAM, T0, gcpu, totals


def test_last_offsets_are_kept_for_each_stream_topic_and_partition(store: Store, service_name: str) -> None:
    stream = f"stream-{service_name}"
    for partition, offset in ((0, 5), (0, 9), (0, 7), (3, 0)):
        store.insert(
            "gcpu",
            gcpu(service_name, [("a.f", T0, 1)], partition=partition, offset=offset, stream=stream),
        )
    store.insert("totals", totals(service_name, [(T0, 1)], partition=0, offset=99, stream=stream))
    assert store.last_offsets("gcpu", stream, "profiles", [0, 1, 3]) == {0: 9, 3: 0}
    assert store.last_offsets("gcpu", stream, "profiles", [3]) == {3: 0}
    assert store.last_offsets("gcpu", stream, "profiles", []) == {}
    assert store.last_offsets("gcpu", stream, "metrics", [0]) == {}
    assert store.last_offsets("gcpu", stream + "'", "profiles", [0]) == {}
    assert store.last_offsets("totals", stream, "profiles", [0, 3]) == {0: 99}


def test_usage_is_what_totals_counted_of_a_partition(store: Store, service_name: str) -> None:
    def use(
        window: float,
        messages: int,
        stacks: int,
        *,
        partition: int = 3,
        service: str = "",
        topic: str = "profiles",
    ) -> None:
        rows = totals(service or service_name, [(window, 5)], partition=partition, stream=service_name)
        rows |= {"topic": [topic], "messages": [messages], "stacks": [stacks]}
        rows |= {"refused_messages": [9], "refused_samples": [99]}
        store.insert("totals", rows)

    other = f"{service_name}-{NASTY[0]}"
    start = T0 // 300 * 300
    use(start, 1, 10)
    use(start + 299, 2, 20)
    use(start + 300, 4, 40)
    use(start + 600, 0, 0)  # refused messages alone
    use(start + 900, 8, 80)  # after the span
    use(start + 300, 100, 1000, topic="profiles-of-another")
    use(start + 300, 200, 2000, topic="a/metrics")
    use(start, 16, 160, partition=4)
    use(start, 32, 320, service=other)
    use(start, 64, 640, service=f"{service_name}-unasked")
    many = [f"{service_name}-{i}-{'x' * 100}" for i in range(200)]
    asked = [service_name, other, *many]
    assert store.usage(service_name, "profiles", 3, asked, (start, start + 900), 300.0) == {
        (service_name, start): (3, 30),
        (service_name, start + 300): (4, 40),
        (other, start): (32, 320),
    }
    assert store.usage("another log", "profiles", 3, asked, (start, start + 900), 300.0) == {}
    assert store.usage(service_name, "metrics", 3, asked, (start, start + 900), 300.0) == {}
    assert store.usage(service_name, "profiles", 3, [], (start, start + 900), 300.0) == {}


def test_a_table_without_offsets_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="changes does not keep offsets"):
        store.last_offsets("changes", STREAM, "changes", [0])
