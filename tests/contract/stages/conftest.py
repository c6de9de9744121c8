"""Stages on plain arrays, and where reading and writing count on ClickHouse's own server, too.

That all stores give the same answers is what the store's own contract shows, on each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from pipeline.storage.arrays import ArrayStore
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """The store of a backtest; with ``every_store`` that of production as well."""
    if getattr(request, "param", "arrays") == "arrays":
        yield ArrayStore()
        return
    with closing(open_store(request.getfixturevalue("clickhouse_dsn"))) as opened:
        yield opened
