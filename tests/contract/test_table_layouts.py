"""Tables on a cluster: the statements of `smidgen store migrate`, and ClickHouse's own reading of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from loadgen.engines.clickhouse.server import ClickHouseServer, ServerSettings, Xml
from pipeline.model.errors import ConfigError
from pipeline.storage import migrate
from pipeline.storage.connect import open_client, open_store
from pipeline.storage.layout import ONE_SERVER, TableLayout

REPLICAS = TableLayout("main", replicated=True)
STATEMENTS = [
    pytest.param(statement, id=f"{migration.version}-{number}")
    for migration in migrate.migrations()
    for number, statement in enumerate(migration.statements)
]
NO_ZOOKEEPER, DDL_ON_CLUSTER_OFF, BAD_ARGUMENTS = 225, 392, 36


@pytest.fixture(scope="module")
def server() -> Iterator[ClickHouseServer]:
    """A server that knows the cluster ``main``, but has no Keeper, so that nothing replicated can be made."""
    replica: Xml = {"replica": {"host": "127.0.0.1", "port": "9000"}}
    known: Xml = {"macros": {"replica": "a", "shard": "1"}, "remote_servers": {"main": {"shard": replica}}}
    with ClickHouseServer(settings=ServerSettings(properties=known)) as running:
        yield running


@pytest.fixture
def client(server: ClickHouseServer) -> Iterator[Client]:
    with closing(open_client(server.url)) as opened:
        yield opened


def test_one_server_gets_the_statements_as_they_are_shipped() -> None:
    for migration in migrate.migrations():
        assert tuple(map(ONE_SERVER.table, migration.statements)) == migration.statements


def test_a_table_on_a_cluster() -> None:
    sql = (
        "CREATE TABLE IF NOT EXISTS gcpu (\n    service String\n) ENGINE = AggregatingMergeTree\n"
        "ORDER BY service\nSETTINGS non_replicated_deduplication_window = 10000, other = 1"
    )
    assert REPLICAS.table(sql) == (
        "CREATE TABLE IF NOT EXISTS gcpu ON CLUSTER 'main' (\n    service String\n"
        ") ENGINE = ReplicatedAggregatingMergeTree\nORDER BY service\n"
        "SETTINGS replicated_deduplication_window = 10000, "
        "replicated_deduplication_window_seconds = 604800, other = 1"
    )
    alter = "ALTER TABLE gcpu ADD COLUMN IF NOT EXISTS a Int32"
    assert REPLICAS.table(alter) == "ALTER TABLE gcpu ON CLUSTER 'main' ADD COLUMN IF NOT EXISTS a Int32"
    assert TableLayout("main").table(sql).count("Replicated") == 0
    assert REPLICAS.database("CREATE DATABASE IF NOT EXISTS x") == (
        "CREATE DATABASE IF NOT EXISTS x ON CLUSTER 'main'"
    )


@pytest.mark.parametrize("sql", ["OPTIMIZE TABLE gcpu", "CREATE VIEW v AS SELECT 1", "DROP TABLE gcpu"])
def test_a_statement_that_no_layout_knows_is_refused(sql: str) -> None:
    with pytest.raises(ValueError, match="neither makes nor alters a table"):
        REPLICAS.table(sql)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_shipped_statement_goes_to_the_whole_cluster(client: Client, statement: str) -> None:
    rendered = REPLICAS.table(statement)
    assert "non_replicated" not in rendered
    with pytest.raises(DatabaseError) as raised:  # understood; the library has no queue of distributed DDL
        client.command(rendered)
    assert raised.value.code == DDL_ON_CLUSTER_OFF


@pytest.mark.parametrize("statement", [p for p in STATEMENTS if "CREATE TABLE" in str(p.values[0])])
def test_every_replicated_table_needs_keeper_and_nothing_else(client: Client, statement: str) -> None:
    engine = "\\1('/smidgen/{table}', '{replica}')"  # the default path goes with ON CLUSTER only
    rendered = TableLayout(replicated=True).table(statement)
    with pytest.raises(DatabaseError) as raised:
        client.command(_named(rendered, engine))
    assert raised.value.code == NO_ZOOKEEPER
    with pytest.raises(DatabaseError) as raised:
        client.command(rendered)
    assert raised.value.code == BAD_ARGUMENTS


def test_the_dsn_says_how_tables_are_made(server: ClickHouseServer) -> None:
    with closing(open_store(f"{server.url}/default?cluster=main&replicated=1")) as store:
        with pytest.raises(DatabaseError) as raised:
            store.migrate()
        assert raised.value.code == DDL_ON_CLUSTER_OFF


def test_replicas_confirm_in_turn_and_reads_see_what_counts(server: ClickHouseServer) -> None:
    names = ("insert_quorum", "insert_quorum_parallel", "select_sequential_consistency")
    asked = "SELECT " + ", ".join(f"toString(getSetting('{name}'))" for name in names)
    for options, wanted in (("?replicated=1", ("auto", "false", "1")), ("", ("0", "true", "0"))):
        with closing(open_client(f"{server.url}/default{options}")) as one:
            assert one.query(asked).result_rows == [wanted]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        *(
            (f"cluster={name}", "impossible name of a cluster")
            for name in ("a'b", "a b", "a%3B", "%60", "a%5C")
        ),
        ("replicated=yes", "replicated should be 0 or 1"),
    ],
)
def test_a_wrong_layout_is_one_clear_line(options: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        open_store(f"http://127.0.0.1:1/?{options}")


def _named(sql: str, engine: str) -> str:
    # What a table's engine is given itself comes after path and replica.
    sql = re.sub(r"(Replicated\w+)\((\w+)\)", rf"{engine[:-1]}, \2)", sql, count=1)
    return sql if "/smidgen/" in sql else re.sub(r"(Replicated\w+)", engine, sql, count=1)
