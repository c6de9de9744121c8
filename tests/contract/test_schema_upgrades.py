"""Migrations while workers of former versions run: inserts of these workers still work."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, cast
from uuid import uuid4

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client

from pipeline.storage import migrate
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_store
from pipeline.storage.inspection import inspect_store
from pipeline.storage.interface import Extent, RowQuery, RowTable, SeriesQuery, StackQuery, Store, Table
from pipeline.storage.schema import COLUMNS

SHIPPED = list(migrate.migrations())
VERSIONS = [migration.version for migration in SHIPPED]
WHEN = 1_700_000_000.0

SAFE = (
    re.compile(r"CREATE TABLE IF NOT EXISTS \w+"),
    re.compile(r"ALTER TABLE \w+ ADD (COLUMN|PROJECTION|INDEX) IF NOT EXISTS"),
    re.compile(r"ALTER TABLE \w+ (MODIFY SETTING|MATERIALIZE PROJECTION|MODIFY TTL)"),
    # To workers that leave ``inserted`` out it is now.
    re.compile(r"ALTER TABLE \w+ ADD CONSTRAINT IF NOT EXISTS \w+ CHECK nowInBlock\(\) <= inserted \+ "),
    re.compile(r"ALTER TABLE \w+ MODIFY ORDER BY"),  # ClickHouse takes no more than new columns at its end
)
"""What may be done to tables that workers of the version before use."""


@pytest.fixture
def database(store_dsn: str) -> Iterator[tuple[Client, str, str]]:
    """A client, the name of a new database, and its DSN."""
    name = f"upgrade_{uuid4().hex}"
    with closing(clickhouse_connect.get_client(dsn=store_dsn, autogenerate_session_id=False)) as client:
        client.command(f"CREATE DATABASE {name}")
        client.database = name
        yield client, name, f"{store_dsn}/{name}"
        client.command(f"DROP DATABASE {name}")


@pytest.mark.parametrize("migration", SHIPPED, ids=lambda migration: migration.name)
def test_a_migration_only_adds_and_may_be_repeated(migration: migrate.Migration) -> None:
    for statement in migration.statements:
        code = "\n".join(line for line in statement.splitlines() if not line.startswith("--")).strip()
        for part in re.split(r",\s*(?=(?:ADD|MODIFY)\b)", code):
            whole = part if part.startswith(("CREATE", "ALTER")) else f"ALTER TABLE x {part}"
            assert any(pattern.match(whole) for pattern in SAFE), whole


Columns = dict[str, str]
"""Columns that an insert gives, with their types: those without a default."""


def tables_of(client: Client) -> dict[Table, Columns]:
    """Return the columns of every table."""
    rows = client.query(
        "SELECT table, name, type FROM system.columns"
        " WHERE database = currentDatabase() AND default_kind = '' ORDER BY table, position"
    ).result_rows
    tables: dict[Table, Columns] = {}
    for table, name, type_ in rows:
        if table in COLUMNS:
            tables.setdefault(cast("Table", table), {})[str(name)] = str(type_)
    return tables


def value_of(type_: str, *, text: str = "x", moment: float = int(WHEN * 1000)) -> Any:
    """A value of a column's type; the driver takes moments in milliseconds."""
    inner = type_
    while outer := re.fullmatch(r"(?:SimpleAggregateFunction\(\w+, |LowCardinality\()(.*)\)", inner):
        inner = outer[1]
    values: dict[str, Any] = {
        "String": text,
        "Float64": 0.5,
        "DateTime64": moment,
        "Array(String": ["x"],
        "Array": [1],
        "Map(Int16": {1: 1},
    }
    return next((value for name, value in values.items() if inner.startswith(name)), 1)


def former_columns(client: Client, name: str) -> dict[Table, list[Columns]]:
    """Migrate version by version; return the columns that workers of any version insert, by table."""
    former: dict[Table, list[Columns]] = {}
    for version in VERSIONS:
        migrate.apply(client, name, last=version)
        for table, columns in tables_of(client).items():
            if columns not in former.setdefault(table, []):
                former[table].append(columns)
        if version == VERSIONS[0]:
            assert {"totals", "gcpu", "stacks", "metrics", "changes", "regressions"} <= set(former)
    return former


def test_inserts_of_every_former_version_work_after_all_migrations(database: tuple[Client, str, str]) -> None:
    client, name, dsn = database
    former = former_columns(client, name)
    with closing(open_store(dsn)) as store:
        store.migrate()
        for turn in range(max(map(len, former.values()))):
            for table, versions in former.items():
                columns = versions[min(turn, len(versions) - 1)]
                row = [value_of(type_, text=f"x{turn}") for type_ in columns.values()]
                client.insert(table, [row], list(columns), column_type_names=list(columns.values()))
            assert_readable(store, f"x{turn}", former, turn + 1)


def assert_readable(store: Store, service: str, tables: Iterable[Table], turns: int) -> None:
    """Check that the present code reads the rows, and fills what the inserts left out."""
    span = (WHEN - 60, WHEN + 60)
    assert store.series(SeriesQuery("gcpu", service, *span, 60.0)).totals.sum() == 1
    assert store.series(SeriesQuery("setup", service, *span, 60.0)).samples.size
    assert store.counts(StackQuery(service, span, span)).stacks == (("x",),)
    assert store.extents(["totals"], service)["totals"] == {(service, 1): Extent(1)}
    for table in tables:
        if "time" in COLUMNS[table] and table != "metrics":
            has_service = "service" in COLUMNS[table]
            query = RowQuery(cast("RowTable", table), service if has_service else None, *span)
            assert len(store.rows(query)) == (1 if has_service else turns), table


def test_a_store_that_is_newer_than_the_code_is_used_and_reported(
    database: tuple[Client, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    client, name, dsn = database
    with closing(open_store(dsn)) as store:
        store.migrate()
        assert caplog.text == ""
        note: list[list[Any]] = [[9999], ["9999_future.sql"]]
        names, types = ["version", "name"], ["UInt32", "String"]
        client.insert("schema_migrations", note, names, column_type_names=types, column_oriented=True)
        client.command("ALTER TABLE totals ADD COLUMN future UInt8 DEFAULT 7")
        with caplog.at_level(logging.WARNING):
            store.migrate()
        assert f"(9999) than this version of Smidgen knows ({VERSIONS[-1]:04d}): going on" in caplog.text
        one: dict[str, list[Any]] = {
            column: [value_of(type_, moment=WHEN)] for column, type_ in COLUMNS["totals"].items()
        }
        store.insert("totals", one)
        assert store.series(SeriesQuery("gcpu", "x", WHEN - 60, WHEN + 60, 60.0)).totals.sum() == 1
    assert inspect_store(dsn).unknown == (9999,)


def test_several_commands_may_migrate_from_any_version_at_once(database: tuple[Client, str, str]) -> None:
    client, name, dsn = database
    migrate.apply(client, name, last=VERSIONS[1])
    before = tables_of(client)["changes"]
    failures: list[Exception] = []
    barrier = threading.Barrier(3)
    insert: Callable[[], object] = lambda: client.insert(  # noqa: E731
        "changes",
        [[value_of(t) for t in before.values()]],
        list(before),
        column_type_names=list(before.values()),
    )

    def upgrade() -> None:
        with closing(open_store(dsn)) as store:
            barrier.wait()
            try:
                store.migrate()
            except Exception as error:  # noqa: BLE001 - any failure is what is looked for
                failures.append(error)

    threads = [threading.Thread(target=upgrade) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        insert()  # a worker of the version before goes on meanwhile
    assert failures == []
    assert inspect_store(dsn).missing == ()
    with closing(open_store(dsn)) as store:
        assert isinstance(store, ClickHouseStore)
        assert store.rows(RowQuery("changes", "x", WHEN - 60, WHEN + 60))


def test_what_is_missing_is_reported_before_it_is_applied(database: tuple[Client, str, str]) -> None:
    client, name, dsn = database
    assert inspect_store(dsn).missing == tuple(migration.name for migration in SHIPPED)
    migrate.apply(client, name, last=VERSIONS[-2])
    facts = inspect_store(dsn, clock=lambda: 1000.0)
    assert facts.missing == (SHIPPED[-1].name,)
    assert facts.skew_s > 1e9, "against a clock that stands in 1970"
    assert facts.free
    assert all(0 < share <= 1 for share in facts.free.values())
