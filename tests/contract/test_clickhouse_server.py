"""ClickHouse's own server, as the tests and benchmarks run it."""

from __future__ import annotations

import os
import signal
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from loadgen.engines.clickhouse.server import ClickHouseServer, ServerSettings, User
from pipeline.model.errors import ConfigError, QueryRefused
from pipeline.storage.connect import open_client, open_store
from pipeline.storage.failures import translated
from tests.contract.rows import T0, gcpu, total_samples


def test_clickhouse_itself_answers(clickhouse: ClickHouseServer) -> None:
    with urllib.request.urlopen(clickhouse.url, b"SELECT currentUser()") as answer:
        assert answer.read() == b"default\n"
        assert answer.headers["X-ClickHouse-Exception-Tag"]  # which the embedded store's front does not send


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_what_it_confirmed_outlives_it(tmp_path: Path, number: signal.Signals) -> None:
    server = ClickHouseServer(tmp_path / "data")
    with server, closing(open_store(server.url)) as store:
        store.migrate()
        store.insert("gcpu", gcpu("s", [("a.f", T0, 3)]), token="t")
        if number == signal.SIGKILL:
            os.kill(server.pid, number)
    assert not server.running
    with server, closing(open_store(server.url)) as store:
        store.insert("gcpu", gcpu("s", [("a.f", T0, 3)]), token="t")  # its token is remembered
        assert total_samples(store, "s") == 3


def test_it_ends_a_query_before_the_driver_stops_waiting(clickhouse: ClickHouseServer) -> None:
    memory, row_by_row = {"max_memory_usage": 1 << 20}, {"max_block_size": 1}
    with closing(open_client(f"{clickhouse.url}?send_receive_timeout=10")) as client:
        with pytest.raises(QueryRefused, match="refuses: .*Timeout exceeded"), translated("it"):
            client.query("SELECT sleepEachRow(0.1) FROM numbers(3000)", settings=row_by_row)
        with pytest.raises(QueryRefused, match="refuses: .*memory limit"), translated("it"):
            client.query("SELECT groupArray(number) FROM numbers(10000000)", settings=memory)


def test_users_and_passwords_are_clickhouses_own() -> None:
    password = "p@ss/<&>:'"
    with ClickHouseServer(settings=ServerSettings(users=(User("ada", password),))) as server:
        with closing(open_store(server.dsn("ada"))) as store:
            store.migrate()
        with pytest.raises(ConfigError, match="refuses the user or its password"):
            open_store(server.dsn("ada").replace("ada:", "ada:not-"))


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with ClickHouseServer(tmp_path / "data"):
        second = ClickHouseServer(tmp_path / "data")
        with pytest.raises(ConfigError, match="the ClickHouse server did not start: .*already running"):
            second.start()
    assert not second.running
