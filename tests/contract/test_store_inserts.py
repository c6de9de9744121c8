"""Inserts into every store: each fact once, in one part, and no unknown column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clickhouse_connect
import numpy as np
import pytest

from pipeline.model import Stratum
from pipeline.storage.interface import COUNTED, SeriesQuery, Store
from tests.contract.rows import (
    MINUTE,
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
    total_samples,
    totals,
)


def ask(dsn: str, sql: str) -> Any:
    """Ask the engine itself, past the store."""
    client = clickhouse_connect.get_client(dsn=dsn)
    try:
        return client.command(sql)
    finally:
        client.close()


def test_a_repeated_token_adds_nothing(store: Store, service_name: str) -> None:
    block = gcpu(service_name, [("a.f", T0, 1), ("a.g", T0, 2)])
    token = f"{service_name}-1"
    for _ in range(3):
        store.insert("gcpu", block, token=token)
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 100)]), token=token)
    assert total_samples(store, service_name) == 3
    store.insert("gcpu", block, token=f"{service_name}-2")
    assert total_samples(store, service_name) == 6


def test_a_token_belongs_to_one_table(store: Store, service_name: str) -> None:
    blocks: dict[str, Columns] = {
        "totals": totals(service_name, [(T0, 1)], offset=7),
        "gcpu": gcpu(service_name, [("a.f", T0, 1)], offset=7),
        "stacks": {**stacks(service_name, [(("a",), T0, 1)]), **position(1, offset=7)},
        "strata_totals": strata_totals(service_name, [(Stratum(), 0, 1)], offset=7),
        "strata_gcpu": strata_gcpu(service_name, [("a.f", Stratum(), 0, 1)], offset=7),
        "strata_stacks": strata_stacks(service_name, [(("a",), Stratum(), 0, 1)], offset=7),
        "metrics": {**metrics(service_name, [("latency", T0, 1.0)]), **position(1, offset=7)},
        "requests": requests(service_name, [("v1", "GET /", 0, 1)], offset=7),
    }
    stream = f"stream-{service_name}"
    for name in COUNTED:
        store.insert(name, {**blocks[name], "stream": [stream]}, token=service_name)
    assert {table: offsets(store, table, stream) for table in COUNTED} == dict.fromkeys(COUNTED, {0: 7})


def test_equal_rows_without_a_token_are_two_facts(store: Store, service_name: str) -> None:
    for _ in range(2):
        store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]))
    assert total_samples(store, service_name) == 2


def test_a_large_insert_is_one_part(sql_store: Store, dsn: str, service_name: str) -> None:
    rows = 1_200_000  # ClickHouse's own settings cut a block at about a million rows
    block = gcpu(service_name, [(f"module.function_{i % 5000}", T0 + i // 5000, 1) for i in range(rows)])
    parts = "FROM system.parts WHERE table = 'gcpu' AND database = 'default'"
    before = int(ask(dsn, f"SELECT max(max_block_number) {parts}"))
    sql_store.insert("gcpu", block, token=service_name)
    # As they were written, merged since or not.
    written = f"{parts} AND min_block_number = max_block_number AND min_block_number > {before}"
    assert ask(dsn, f"SELECT count(), sum(rows) {written}") == ["1", str(rows)]
    found = sql_store.series(SeriesQuery("gcpu", service_name, T0, T0 + rows // 5000, rows // 5000))
    assert found.samples.tolist() == [[rows // 5000]] * 5000


def test_merging_parts_changes_nothing(sql_store: Store, dsn: str, service_name: str) -> None:
    stream = f"stream-{service_name}"
    for offset in range(4):
        block = gcpu(service_name, [("a.f", T0, 1), ("a.g", T0 + MINUTE, 2)], offset=offset, stream=stream)
        sql_store.insert("gcpu", block, token=f"{service_name}-{offset}")
    ask(dsn, "OPTIMIZE TABLE gcpu FINAL")
    assert total_samples(sql_store, service_name) == 12
    assert offsets(sql_store, "gcpu", stream) == {0: 3}
    sql_store.insert("gcpu", block, token=f"{service_name}-3")
    assert total_samples(sql_store, service_name) == 12


def test_an_insert_of_no_rows_is_nothing(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, []), token=service_name)
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]), token=service_name)
    assert total_samples(store, service_name) == 1


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        pytest.param(lambda c: c.pop("topic"), "missing columns: topic", id="missing"),
        pytest.param(lambda c: c.update(host=["h"]), "unknown columns: host", id="unknown"),
        pytest.param(lambda c: c.update(samples=[1, 2]), "samples=2", id="lengths"),
    ],
)
def test_wrong_columns_are_named(
    store: Store, service_name: str, spoil: Callable[[Columns], None], text: str
) -> None:
    columns = gcpu(service_name, [("a.f", T0, 1)])
    spoil(columns)
    with pytest.raises(ValueError, match=text):
        store.insert("gcpu", columns)


def test_numpy_columns_are_welcome(store: Store, service_name: str) -> None:
    columns = gcpu(service_name, [("a.f", T0, 1), ("a.f", T0 + MINUTE, 2)])
    kinds = {"window": np.float64, "samples": np.int64, "partition": np.int32, "last_offset": np.int64}
    columns.update({name: np.array(columns[name], kind) for name, kind in kinds.items()})
    store.insert("gcpu", columns)
    assert total_samples(store, service_name) == 3
