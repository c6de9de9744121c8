"""Connections to a store: its creation, and its failures."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from pipeline.embedded.stack import EmbeddedStore
from pipeline.model.errors import ConfigError, StoreUnavailable
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery, SeriesQuery, StackQuery, Store
from tests.contract.rows import MINUTE, STREAM, T0, gcpu, total_samples


def test_migrating_again_keeps_what_is_there(sql_store: ClickHouseStore, service_name: str) -> None:
    sql_store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]))
    sql_store.migrate()
    sql_store.migrate()
    assert total_samples(sql_store, service_name) == 1


def test_several_processes_may_migrate_a_new_database_at_once(server_dsn: str) -> None:
    dsn = f"{server_dsn}/fresh_{uuid4().hex}"
    failures: list[Exception] = []
    ready = threading.Barrier(4)

    def migrate() -> None:
        with closing(open_store(dsn)) as one:
            ready.wait()
            try:
                one.migrate()
            except Exception as error:  # noqa: BLE001 - any failure is what is looked for
                failures.append(error)

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(open_store(dsn)) as one:
        one.insert("gcpu", gcpu("s", [("a.f", T0, 1)]), token="t")
        assert total_samples(one, "s") == 1


def test_databases_do_not_mix(server_dsn: str, service_name: str) -> None:
    with (
        closing(open_store(f"{server_dsn}/db_{uuid4().hex}")) as one,
        closing(open_store(server_dsn)) as other,
    ):
        one.migrate()
        one.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]))
        assert (total_samples(one, service_name), total_samples(other, service_name)) == (1, 0)


def test_threads_may_share_a_store(store: Store, service_name: str) -> None:
    def insert(number: int) -> None:
        for offset in range(5):
            block = gcpu(service_name, [("a.f", T0, 1)], partition=number, offset=offset)
            store.insert("gcpu", block, token=f"{service_name}-{number}-{offset}")

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total_samples(store, service_name) == 20


def test_a_store_that_went_away_is_unavailable() -> None:
    with EmbeddedStore() as server:
        store = open_store(server.url)
        store.migrate()
    for call in (
        store.migrate,
        lambda: store.insert("gcpu", gcpu("s", [("a.f", T0, 1)]), token="t"),
        lambda: store.extents(["gcpu"], STREAM),
        lambda: store.series(SeriesQuery("gcpu", "s", T0, T0 + MINUTE, MINUTE)),
        lambda: store.counts(StackQuery("s", (T0, T0 + 1), (T0 + 1, T0 + 2))),
        lambda: store.rows(RowQuery("changes", "s", T0, T0 + 1)),
    ):
        with pytest.raises(StoreUnavailable, match="does not answer: Connection refused"):
            call()
    store.close()
    with pytest.raises(StoreUnavailable, match=f"{server.url} does not answer"):
        open_store(server.url)


def test_a_store_without_tables_says_what_to_do(server_dsn: str) -> None:
    with (
        closing(open_store(f"{server_dsn}/never_made")) as store,
        pytest.raises(ConfigError, match="smidgen store migrate"),
    ):
        store.rows(RowQuery("changes", "s", T0, T0 + 1))


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        pytest.param("ftp://host/db", "should begin with http://", id="scheme"),
        pytest.param("localhost:8123", "should begin with http://", id="no scheme"),
        pytest.param("http:///db", "has no host", id="no host"),
        pytest.param("http://host:port/", "port", id="port"),
        pytest.param("http://host/a/b", "one database name", id="path"),
        pytest.param("http://u:secret@host/?color=red", "unknown option 'color'", id="option"),
        pytest.param("http://host/?send_receive_timeout=0", "whole seconds, 1 or more", id="no seconds"),
        pytest.param("http://host/?connect_timeout=soon", "not 'soon'", id="not seconds"),
        pytest.param("chdb://", "chdb:///absolute/path", id="chdb nowhere"),
        pytest.param("chdb://relative/path", "chdb:///absolute/path", id="chdb relative"),
    ],
)
def test_a_wrong_dsn_is_one_clear_line(dsn: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as raised:
        open_store(dsn)
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_only_read_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder; smidgen store migrate"):
        open_store(f"chdb://{tmp_path}/none", existing=True)
    assert not (tmp_path / "none").exists()


def test_a_second_chdb_folder_in_one_process_is_refused(chdb_dsn: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chdb"):
        open_store(f"chdb://{tmp_path}")
