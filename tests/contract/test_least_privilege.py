"""Rights that each part of Smidgen needs in the store, tested on ClickHouse's own server with few rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from loadgen.engines.clickhouse.server import ClickHouseServer, ServerSettings, User, Xml
from pipeline.model.errors import ConfigError
from pipeline.storage import migrate
from pipeline.storage.connect import open_client, open_store
from pipeline.storage.inspection import inspect_store
from pipeline.storage.interface import RowQuery
from tests.contract.rows import STREAM, T0, gcpu, total_samples

SHIPPED = tuple(migrate.migrations())
MAKES = (
    "GRANT CREATE DATABASE, CREATE TABLE, ALTER TABLE, SELECT, INSERT ON smidgen.*",
    *(
        f"GRANT TABLE ENGINE ON {name}"
        for name in ("MergeTree", "AggregatingMergeTree", "ReplacingMergeTree")
    ),
)
USERS = (
    User("admin", "a", MAKES),
    User("worker", "w", ("GRANT SELECT, INSERT ON smidgen.*",)),
    User("reader", "r", ("GRANT SELECT ON smidgen.*",)),
    User("stranger", "s", ("GRANT SELECT ON other.*",)),
)

AS_PACKAGED: Xml = {
    "access_control_improvements": {
        "on_cluster_queries_require_cluster_grant": "true",
        "select_from_system_db_requires_grant": "true",
        "select_from_information_schema_requires_grant": "true",
        "table_engines_require_grant": "true",
    }
}
"""What the configuration in ClickHouse's packages asks for beyond the defaults."""

Dsn = Callable[[str], str]


@pytest.fixture(scope="module")
def server() -> Iterator[ClickHouseServer]:
    with ClickHouseServer(settings=ServerSettings(users=USERS, properties=AS_PACKAGED)) as running:
        yield running


@pytest.fixture
def dsn(server: ClickHouseServer) -> Dsn:
    """DSN of a user's, of a database without tables."""
    with closing(open_client(server.url)) as client:
        client.command("DROP DATABASE IF EXISTS smidgen SYNC")
    return lambda user: server.dsn(user, "smidgen")


def made(dsn: Dsn, last: int | None = None) -> None:
    with closing(open_client(dsn("admin"))) as client:
        migrate.apply(client, "smidgen", last=last)


def test_a_worker_needs_to_read_and_to_add_rows_alone(dsn: Dsn, service_name: str) -> None:
    made(dsn)
    with closing(open_store(dsn("worker"))) as store:
        store.migrate()
        block = gcpu(service_name, [("a.f", T0, 3)], offset=7)
        store.insert("gcpu", block, token="t")
        store.insert("gcpu", block, token="t", asked_at=store.extents(["gcpu"], STREAM)["gcpu"].asked_at)
        assert total_samples(store, service_name) == 3
        assert store.extents(["gcpu"], STREAM, service_name)["gcpu"]["profiles", 0].last_offset == 7


def test_no_statement_is_sent_where_nothing_is_missing(dsn: Dsn, monkeypatch: pytest.MonkeyPatch) -> None:
    made(dsn)
    with closing(open_client(dsn("worker"))) as client:
        monkeypatch.setattr(client, "command", lambda *_, **__: pytest.fail("a statement"))
        assert migrate.apply(client, "smidgen") == []


@pytest.mark.parametrize("there", [0, SHIPPED[-2].version], ids=["no database", "an older version"])
def test_a_worker_names_what_is_missing(dsn: Dsn, there: int) -> None:
    if there:
        made(dsn, last=there)
    with closing(open_store(dsn("worker"))) as store:
        with pytest.raises(ConfigError, match="run: smidgen store migrate") as raised:
            store.migrate()
        assert SHIPPED[-1].name in str(raised.value)
        assert "\n" not in str(raised.value)


def test_who_only_looks_needs_to_read_alone(dsn: Dsn, service_name: str) -> None:
    made(dsn)
    with closing(open_store(dsn("reader"))) as store:
        assert store.rows(RowQuery("regressions", service_name, T0, T0 + 1)) == []
        with pytest.raises(ConfigError, match=r"denies the user a right: INSERT\(.*\) ON smidgen.gcpu"):
            store.insert("gcpu", gcpu(service_name, [("a.f", T0, 3)]))


def test_the_doctor_needs_to_read_alone(dsn: Dsn) -> None:
    made(dsn, last=SHIPPED[-2].version)
    facts = inspect_store(dsn("reader"))
    assert (facts.missing, facts.free) == ((SHIPPED[-1].name,), None)


def test_a_stranger_learns_which_right_is_missing(dsn: Dsn, service_name: str) -> None:
    made(dsn)
    with (
        closing(open_store(dsn("stranger"))) as store,
        pytest.raises(ConfigError, match=r"denies the user a right: SELECT.* ON smidgen\."),
    ):
        store.rows(RowQuery("regressions", service_name, T0, T0 + 1))
