"""Counts where tables, noted positions, logs and erased services disagree about what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from pipeline.model import Record
from pipeline.model.errors import StoreUnavailable
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.interface import COUNTED, SeriesQuery, Store
from tests.contract.test_takeover import START, assert_counted, records, stage
from tests.support.builders import build_profile
from tests.support.open_faults import open_fault


def delete(store: Store, table: str, condition: str) -> None:
    assert isinstance(store, ClickHouseStore)
    store._client.command(f"ALTER TABLE {table} DELETE WHERE {condition} SETTINGS mutations_sync = 2")


def counted(store: Store, service: str) -> int:
    return int(store.series(SeriesQuery("gcpu", service, START, START + 3600, 60.0)).totals.sum())


def read_on(store: Store, stream: str, log: Sequence[Record]) -> None:
    """Handle what a new worker reads of a log: all from where the store says that reading goes on."""
    successor = stage(store, stream)
    if rest := log[successor.stored_up_to("profiles", [0])[0] :]:
        successor.handle(rest)


@open_fault("44.2", "reading goes on where totals end, so a table that lost rows never gets them back")
def test_a_table_that_lost_rows_counts_them_again(shared_store: Store, service_name: str) -> None:
    log = records(service_name, 0, 30)
    for first in (0, 10, 20):
        stage(shared_store, service_name).handle(log[first : first + 10])
    delete(shared_store, "gcpu", f"service = '{service_name}' AND last_offset > 19")
    read_on(shared_store, service_name, log)
    assert_counted(shared_store, service_name, 300)


class SlowStore:
    """A store where each row of an INSERT takes ``row_s`` until the INSERT begins."""

    def __init__(self, store: Store, row_s: float) -> None:
        self._store = store
        self._row_s = row_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def insert(self, *arguments: Any, **named: Any) -> None:
        if "asked_at" in named:
            named["asked_at"] -= self._row_s * len(arguments[1]["partition"])
        self._store.insert(*arguments, **named)


@open_fault("44.3", "a batch whose INSERT comes later than 30 s is repeated whole, and refused each time")
def test_a_batch_that_is_too_slow_is_counted_in_smaller_parts(shared_store: Store, service_name: str) -> None:
    batch = [
        replace(record, payload=replace(record.payload, start=START + 300 * n, end=START + 300 * n + 1))
        for n, record in enumerate(records(service_name, 0, 12))
    ]
    slow = stage(SlowStore(shared_store, 5.0), service_name)
    for _ in range(10):
        with suppress(StoreUnavailable):
            slow.handle(batch)
    assert counted(shared_store, service_name) == 120


@open_fault("44.6", "the last row of a position is read, not the highest: dead letters are read again")
def test_a_worker_that_stood_still_takes_no_position_back(store: Store, service_name: str) -> None:
    for last in (999, 9):  # the successor's note, then that of the worker that stood still
        stage(store, service_name).passed("profiles", {0: last})
    assert stage(store, service_name).stored_up_to("profiles", [0]) == {0: 1000}


@open_fault("44.6", "positions come from the rows of the last messages, which were erased with the service")
def test_an_erased_service_stays_erased(shared_store: Store, service_name: str) -> None:
    leaver = f"{service_name}-leaver"
    log = [*records(service_name, 0, 10), *records(leaver, 10, 20)]
    stage(shared_store, service_name).handle(log[:10])
    stage(shared_store, service_name).handle(log[10:])
    for table in COUNTED:
        delete(shared_store, table, f"service = '{leaver}'")
    read_on(shared_store, service_name, log)
    assert counted(shared_store, leaver) == 0


@open_fault("44.6", "the id of a profile is known in its own log and partition only")
@pytest.mark.parametrize(
    ("stream", "partition"), [("second", 0), ("first", 7)], ids=["a topic made anew", "more partitions"]
)
def test_a_profile_that_is_published_again_counts_once(stream: str, partition: int) -> None:
    store: Any = ArrayStore()
    profile = build_profile({"m;a": 10}, service="shop", start=START, id="file 1")
    stage(store, "first").handle([Record("profiles", 0, 0, profile)])
    stage(store, stream).handle([Record("profiles", partition, 0, profile)])
    assert counted(store, "shop") == 10
