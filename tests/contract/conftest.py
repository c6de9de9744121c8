"""All kinds of stores: chDB in this process and behind the front, ClickHouse's own server, plain arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing

import pytest

from pipeline.storage.arrays import ArrayStore
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store


@pytest.fixture(scope="session")
def chdb_dsn() -> Iterator[str]:
    # chDB opens one path in a process; the session's one store keeps it open, so that opening is quick.
    with (
        tempfile.TemporaryDirectory(prefix="smidgen-chdb-") as folder,
        closing(open_store(dsn := f"chdb://{folder}")) as store,
    ):
        store.migrate()
        yield dsn


_DSNS = {"chdb": "chdb_dsn", "http": "store_dsn", "server": "clickhouse_dsn"}


@pytest.fixture(params=list(_DSNS))
def dsn(request: pytest.FixtureRequest) -> str:
    value: str = request.getfixturevalue(_DSNS[request.param])
    return value


@pytest.fixture(params=["http", "server"])
def server_dsn(request: pytest.FixtureRequest) -> str:
    """DSN of a store that several processes can use."""
    value: str = request.getfixturevalue(_DSNS[request.param])
    return value


@pytest.fixture(params=[*_DSNS, "arrays"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Any store; a test that also asks the engine itself takes ``sql_store``."""
    if request.param == "arrays":
        yield ArrayStore()
        return
    with closing(open_store(request.getfixturevalue(_DSNS[request.param]))) as opened:
        yield opened


@pytest.fixture
def sql_store(dsn: str) -> Iterator[ClickHouseStore]:
    """A store over SQL, reachable past the store by ``dsn``."""
    with closing(open_store(dsn)) as opened:
        yield opened
