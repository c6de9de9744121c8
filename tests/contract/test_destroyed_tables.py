"""Emptied, thinned, doubled or missing tables: the fault suite's comparison sees each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from uuid import uuid4

import pytest

from loadgen.bench.faults.check import Differences, compare
from loadgen.bench.faults.load import Load, Shape, build_load
from loadgen.bench.faults.truth import ROW_TABLES
from loadgen.engines.clickhouse.server import ClickHouseServer
from pipeline.messages.events import encode_event
from pipeline.model.errors import ConfigError
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_store
from pipeline.storage.interface import COUNTED
from tests.support.counted_loads import add_rows, count_load
from tests.support.open_faults import open_fault

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def load() -> Load:
    return build_load(Shape(windows=120, hosts=4), 1)


@pytest.fixture(scope="module")
def counted(clickhouse: ClickHouseServer, load: Load) -> Iterator[ClickHouseStore]:
    name = f"destroyed_{uuid4().hex[:8]}"
    with closing(open_store(clickhouse.url)) as server:
        server._client.command(f"CREATE DATABASE {name}")
    with closing(open_store(f"{clickhouse.url}/{name}")) as store:
        store.migrate()
        count_load(store, load)
        yield store
        store._client.command(f"DROP DATABASE {name} SYNC")


@pytest.fixture
def store(counted: ClickHouseStore, load: Load) -> ClickHouseStore:
    for table in ROW_TABLES:
        counted._client.command(f"TRUNCATE TABLE {table}")
    add_rows(counted, load)
    return counted


def found(store: ClickHouseStore, load: Load) -> Differences:
    return compare(store, load.truth, [encode_event(event) for event in load.truth.events])[0]


def test_what_nobody_destroyed_has_no_differences(store: ClickHouseStore, load: Load) -> None:
    assert not found(store, load).any, found(store, load)


def assert_seen_one_by_one(store: ClickHouseStore, load: Load, statements: Mapping[str, str]) -> None:
    """Check that each statement makes its table differ, beside those of the statements before it."""
    damaged: set[str] = set()
    for table, statement in statements.items():
        store._client.command(statement)
        damaged.add(table)
        assert found(store, load).tables.keys() == damaged


def test_a_table_that_is_emptied_is_seen(store: ClickHouseStore, load: Load) -> None:
    filled = [table for table in ROW_TABLES if table != "updates"]
    assert_seen_one_by_one(store, load, {table: f"TRUNCATE TABLE {table}" for table in filled})


def test_rows_that_are_gone_or_changed_are_seen(store: ClickHouseStore, load: Load) -> None:
    last = {t: f"(SELECT max(time) FROM {t})" for t in ("scans", "ledger", "regressions", "outcomes")}
    deletions = {
        table: f"ALTER TABLE {table} DELETE WHERE time = {time} SETTINGS mutations_sync = 1"
        for table, time in last.items()
    }
    assert_seen_one_by_one(store, load, deletions)


def test_rows_too_many_are_seen(store: ClickHouseStore, load: Load) -> None:
    replaced = {
        "regressions": "'another' AS id",
        "scans": "series + 1 AS series",
        "ledger": "concat(id, '-') AS id",
    }
    insertions = {
        table: f"INSERT INTO {table} SELECT * REPLACE ({value}) FROM {table} SETTINGS optimize_on_insert = 0"
        for table, value in replaced.items()
    }
    assert_seen_one_by_one(store, load, insertions)


@pytest.mark.parametrize("table", ["totals", "gcpu", "stacks", "strata_totals", "strata_stacks", "metrics"])
def test_counts_that_are_gone_or_doubled_are_seen(store: ClickHouseStore, load: Load, table: str) -> None:
    store._client.command(f"CREATE TABLE kept_{table} AS {table}")
    store._client.command(f"EXCHANGE TABLES {table} AND kept_{table}")
    assert found(store, load).any
    # As of now: what was inserted half a minute ago is too late for the table's constraint in_time.
    rows = f"SELECT * REPLACE (now() AS inserted) FROM kept_{table}"
    twice = f"INSERT INTO {table} {rows} SETTINGS insert_deduplicate = 0"
    for _ in range(2 if table != "metrics" else 0):  # a mean of equal points is that point
        store._client.command(twice)
    assert found(store, load).any
    store._client.command(f"EXCHANGE TABLES {table} AND kept_{table}")
    store._client.command(f"DROP TABLE kept_{table} SYNC")
    assert not found(store, load).any


@open_fault("44.20", "only sums by window are compared, of metrics means, and of strata_gcpu nothing")
@pytest.mark.parametrize("table", ["strata_gcpu", "metrics"])
def test_rows_that_are_counted_twice_are_seen(store: ClickHouseStore, load: Load, table: str) -> None:
    store._client.command(f"CREATE TABLE kept_{table} AS {table}")
    store._client.command(f"INSERT INTO kept_{table} SELECT * REPLACE (now() AS inserted) FROM {table}")
    store._client.command(
        f"INSERT INTO {table} SELECT * REPLACE (now() AS inserted) FROM kept_{table} "
        "SETTINGS insert_deduplicate = 0"
    )
    difference = found(store, load).any
    store._client.command(f"TRUNCATE TABLE {table}")
    store._client.command(f"INSERT INTO {table} SELECT * REPLACE (now() AS inserted) FROM kept_{table}")
    store._client.command(f"DROP TABLE kept_{table} SYNC")
    assert difference


@open_fault("44.20", "neither counts of subroutines by sender nor names of messages are compared")
@pytest.mark.parametrize("table", ["strata_gcpu", "names"])
def test_counts_by_sender_or_names_that_are_gone_are_seen(
    store: ClickHouseStore, load: Load, table: str
) -> None:
    store._client.command(f"CREATE TABLE empty_{table} AS {table}")
    store._client.command(f"EXCHANGE TABLES {table} AND empty_{table}")
    difference = found(store, load).any
    store._client.command(f"EXCHANGE TABLES {table} AND empty_{table}")
    store._client.command(f"DROP TABLE empty_{table} SYNC")
    assert difference


@open_fault("44.20", "no load has requests: nothing of them is counted, struck or compared")
def test_a_load_has_rows_of_every_counted_table(store: ClickHouseStore) -> None:
    sizes = {
        table: store._client.query(f"SELECT count() FROM {table}").result_rows[0][0] for table in COUNTED
    }
    assert all(sizes.values()), sizes


def test_a_table_that_is_gone_ends_the_comparison(store: ClickHouseStore, load: Load) -> None:
    store._client.command("RENAME TABLE scans TO scans_gone")
    with pytest.raises(ConfigError, match="scans|no such table"):
        found(store, load)
    store._client.command("RENAME TABLE scans_gone TO scans")
