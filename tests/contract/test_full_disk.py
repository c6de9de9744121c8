"""A server without room: its empty answers are not taken for results without rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import numpy as np
import pytest
from clickhouse_connect.driver.query import QueryResult

from loadgen.bench.faults.disk import SmallDisk
from loadgen.engines.clickhouse.server import ClickHouseServer
from pipeline.model.errors import ConfigError, StoreUnavailable
from pipeline.storage.answers import whole_columns, whole_numbers, whole_rows
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_store


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    try:
        with SmallDisk() as made:
            yield made
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.e2e
def test_a_full_disk_is_no_store_without_rows(disk: SmallDisk) -> None:
    with ClickHouseServer(disk.path / "data") as server, closing(open_store(server.url)) as store:
        assert isinstance(store, ClickHouseStore)
        store.migrate()
        assert dict(store.extents(["totals"], "log")["totals"]) == {}
        assert disk.fill()
        with pytest.raises(StoreUnavailable):
            store.extents(["totals"], "log")
        with pytest.raises(StoreUnavailable):
            store.migrate()
        disk.free()
        assert dict(store.extents(["totals"], "log")["totals"]) == {}


class Client:
    """A driver whose answer has no rows."""

    def __init__(self, sent: dict[str, Any]) -> None:
        self.sent = sent

    def create_query_context(self, *_: Any, **__: Any) -> None:
        return None

    def query(self, **_: Any) -> Any:
        return type("Result", (), {"np_result": np.empty(0), "summary": self.sent})


@pytest.mark.parametrize("sent", [{}, {"result_rows": "0"}])
def test_an_answer_without_rows_may_be_whole(sent: dict[str, Any]) -> None:
    assert list(whole_rows(QueryResult([], summary=sent))) == []
    assert list(whole_columns(QueryResult([], summary=sent, column_oriented=True), 2)) == [[], []]
    assert len(whole_numbers(cast(Any, Client(sent)), "", {})) == 0


def test_an_answer_that_lacks_rows_is_none() -> None:
    sent = {"result_rows": "3"}
    with pytest.raises(StoreUnavailable, match="sent 3 rows, and 2 came: its disk may be full"):
        whole_rows(QueryResult([[1], [2]], summary=sent))
    with pytest.raises(StoreUnavailable, match="sent 3 rows, and 0 came"):
        whole_columns(QueryResult([], summary=sent), 1)
    with pytest.raises(StoreUnavailable, match="sent 3 rows, and 0 came"):
        whole_numbers(cast(Any, Client(sent)), "", {})
