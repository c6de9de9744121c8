"""Every store there is: chDB in this process, and ClickHouse's HTTP interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store


@pytest.fixture(scope="session")
def chdb_dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    # chDB opens one path in a process; the session's one store keeps it open, so that opening is quick.
    dsn = f"chdb://{tmp_path_factory.mktemp('chdb')}"
    with closing(open_store(dsn)) as store:
        store.migrate()
        yield dsn


@pytest.fixture(params=["chdb", "http"])
def dsn(request: pytest.FixtureRequest) -> str:
    fixture = {"chdb": "chdb_dsn", "http": "store_dsn"}[request.param]
    value: str = request.getfixturevalue(fixture)
    return value


@pytest.fixture
def store(dsn: str) -> Iterator[Store]:
    with closing(open_store(dsn)) as opened:
        yield opened
