"""Positions of a partition in every store: the last offset of each table, and its usage."""

from __future__ import annotations

from typing import Any

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from pipeline.model import Stratum
from pipeline.model.errors import StoreUnavailable
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.interface import COUNTED, CountTable, Extent, Store, UsageQuery
from tests.contract.rows import (
    LATE_S,
    MINUTE,
    NASTY,
    STREAM,
    T0,
    Columns,
    gcpu,
    metrics,
    offsets,
    position,
    requests,
    stacks,
    strata_gcpu,
    strata_stacks,
    strata_totals,
    totals,
)

HOST = Stratum(host="a")


def test_last_offsets_are_kept_for_each_stream_topic_and_partition(store: Store, service_name: str) -> None:
    stream = f"stream-{service_name}"
    for partition, offset in ((0, 5), (0, 9), (0, 7), (3, 0)):
        store.insert(
            "gcpu",
            gcpu(service_name, [("a.f", T0, 1)], partition=partition, offset=offset, stream=stream),
        )
    store.insert("totals", totals(service_name, [(T0, 1)], partition=0, offset=99, stream=stream))
    assert offsets(store, "gcpu", stream) == {0: 9, 3: 0}
    assert offsets(store, "gcpu", stream, "metrics") == {}
    assert offsets(store, "gcpu", stream + "'") == {}
    assert offsets(store, "totals", stream) == {0: 99}


@pytest.mark.parametrize("table", ["totals", "metrics"])
def test_extents_of_a_service_say_until_when_each_partition_has_data(
    store: Store, service_name: str, table: CountTable
) -> None:
    def block(service: str, time: float, **where: Any) -> Columns:
        if table == "totals":
            return totals(service, [(time, 1)], **where)
        return metrics(service, [("latency", time, 1.0)]) | position(1, **where)

    stream, other = f"stream-{service_name}", f"{service_name}-{NASTY[0]}"
    for time, partition, offset in ((T0, 0, 5), (T0 + 2 * MINUTE, 0, 6), (T0 + MINUTE, 0, 7), (T0, 3, 1)):
        store.insert(table, block(service_name, time, partition=partition, offset=offset, stream=stream))
    store.insert(table, block(other, T0 + 9 * MINUTE, offset=8, stream=stream))
    store.insert(table, {**block(service_name, T0, offset=2, stream=stream), "topic": ["metrics"]})
    assert store.extents([table], stream, service_name)[table] == {
        ("profiles", 0): Extent(7, T0 + 2 * MINUTE),
        ("profiles", 3): Extent(1, T0),
        ("metrics", 0): Extent(2, T0),
    }
    assert store.extents([table], stream, other)[table] == {("profiles", 0): Extent(8, T0 + 9 * MINUTE)}
    assert store.extents([table], stream)[table]["profiles", 0] == Extent(8)
    assert store.extents(["gcpu"], stream, service_name)["gcpu"] == {}
    assert store.extents([table], "another log", service_name)[table] == {}


def test_last_offsets_are_read_from_a_projection(sql_store: ClickHouseStore, service_name: str) -> None:
    sql_store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)], stream=service_name))
    sql_store._client.set_client_setting("force_optimize_projection", 1)
    assert sql_store.extents(["gcpu", "totals"], service_name)["gcpu"] == {("profiles", 0): Extent(0)}
    with pytest.raises(DatabaseError, match="force_optimize_projection"):
        sql_store.extents(["gcpu"], service_name, service_name)


def test_several_tables_answer_at_once(store: Store, service_name: str) -> None:
    stream = f"stream-{service_name}"
    store.insert("totals", totals(service_name, [(T0, 1)]) | {"stream": [stream], "last_offset": [4]})
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]) | {"stream": [stream], "last_offset": [7]})
    answer = store.extents(["gcpu", "stacks", "totals"], stream)
    assert answer == {
        "gcpu": {("profiles", 0): Extent(7)},
        "stacks": {},
        "totals": {("profiles", 0): Extent(4)},
    }
    assert store.extents([], stream) == {}


@pytest.mark.parametrize("table", COUNTED)
def test_rows_that_come_late_are_refused_whole(
    sql_store: Store, service_name: str, table: CountTable
) -> None:
    two = position(2, stream=service_name)
    block = {
        "totals": totals(service_name, [(T0, 1), (T0 + MINUTE, 1)]),
        "gcpu": gcpu(service_name, [("a.f", T0, 1), ("a.g", T0, 1)]),
        "stacks": stacks(service_name, [(("f",), T0, 1), (("g",), T0, 1)]),
        "strata_totals": strata_totals(service_name, [(HOST, T0, 1), (HOST, T0 + MINUTE, 1)]),
        "strata_gcpu": strata_gcpu(service_name, [("a.f", HOST, T0, 1), ("a.g", HOST, T0, 1)]),
        "strata_stacks": strata_stacks(service_name, [(("f",), HOST, T0, 1), (("g",), HOST, T0, 1)]),
        "metrics": metrics(service_name, [("latency", T0, 1.0), ("latency", T0 + MINUTE, 1.0)]),
        "requests": requests(service_name, [("v1", "GET /", 0, 1), ("v1", "GET /a", 0, 1)]),
    }[table] | two
    asked_at = sql_store.extents([table], service_name)[table].asked_at
    with pytest.raises(StoreUnavailable, match="in_time"):
        sql_store.insert(table, block, token="t", asked_at=asked_at - LATE_S - 1)
    assert sql_store.extents([table], service_name)[table] == {}
    sql_store.insert(table, block, token="t", asked_at=asked_at - LATE_S / 2)
    assert sql_store.extents([table], service_name)[table]["profiles", 0] == Extent(0)


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
    assert store.counts(UsageQuery(service_name, "profiles", 3, asked, (start, start + 900), 300.0)) == {
        (service_name, start): (3, 30),
        (service_name, start + 300): (4, 40),
        (other, start): (32, 320),
    }
    assert store.counts(UsageQuery("another log", "profiles", 3, asked, (start, start + 900), 300.0)) == {}
    assert store.counts(UsageQuery(service_name, "metrics", 3, asked, (start, start + 900), 300.0)) == {}
    assert store.counts(UsageQuery(service_name, "profiles", 3, [], (start, start + 900), 300.0)) == {}


def test_a_table_without_offsets_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="changes does not keep offsets"):
        store.extents(["changes"], STREAM)  # type: ignore[list-item]
