"""Stages on ClickHouse's own server and on plain arrays.

That all stores give the same answers is what the store's own contract shows, on each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from pipeline.storage.arrays import ArrayStore
from pipeline.storage.connect import open_store
from pipeline.storage.interface import Store


@pytest.fixture(params=["server", "arrays"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store that stages run on in production, or in a backtest."""
    if request.param == "arrays":
        yield ArrayStore()
        return
    with closing(open_store(request.getfixturevalue("clickhouse_dsn"))) as opened:
        yield opened
