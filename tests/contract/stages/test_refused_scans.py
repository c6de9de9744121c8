"""A scan that the store refuses: it stops no other service, and it is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.model import Progress, Record, SeriesMatrix
from pipeline.model.errors import QueryRefused
from pipeline.stages.abilities import handle_whole
from pipeline.storage.interface import RowQuery, SeriesQuery, Store
from pipeline.storage.schema import EVER
from tests.contract.stages.test_stage_failures import START, build
from tests.contract.stages.test_stage_failures import records as profile_records
from tests.support.builders import build_profile


class RefusingStore:
    """A store that refuses to read the series of one service, though not its totals alone."""

    def __init__(self, store: Store, service: str) -> None:
        self._store = store
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def series(self, query: SeriesQuery) -> SeriesMatrix:
        if query.service == self._service and query.names != ():
            raise QueryRefused("memory limit exceeded")
        return self._store.series(query)


def filled(store: Store, service: str, stream: str) -> list[Record]:
    """Count some time of a service, and return its progress."""
    profiles = [
        build_profile({"main;work": 5}, service=service, start=START + at, end=START + at + 1)
        for at in range(200)
    ]
    assert handle_whole(build("aggregate", store, stream), profile_records(profiles))
    return [Record("windows", 0, 0, Progress(service, "profiles", 0, START + 200, START))]


def test_a_refused_scan_is_named_left_out_and_not_tried_again(store: Store, service_name: str) -> None:
    progress = filled(store, service_name, service_name)
    detect = build("detect", RefusingStore(store, service_name), service_name)
    ends = set()
    for _ in range(100):
        with pytest.raises(QueryRefused, match=f"the scan of {service_name} by live that ends at 2023-11-1"):
            detect.handle(progress)
        detect.left_out(progress[0])
        ends = {row["time"] for row in store.rows(RowQuery("scans", service_name, *EVER))}
        if not detect.unfinished:
            break
    assert len(ends) > 1
    assert detect.handle(progress) == []
    rows = store.rows(RowQuery("unjudged", service_name, *EVER))
    assert {row["code"] for row in rows} == {"store_refused"}
    assert {row["time"] for row in rows} == ends

    again = build("detect", store, service_name)  # started anew, with a store that has memory now
    assert handle_whole(again, progress) == []
    later = [Record("windows", 0, 1, Progress(service_name, "profiles", 0, START + 500, START))]
    assert handle_whole(again, later)


def test_other_services_are_scanned(store: Store, service_name: str) -> None:
    other = f"{service_name}-other"
    batch = [*filled(store, service_name, service_name), *filled(store, other, other)]
    detect = build("detect", RefusingStore(store, service_name), service_name)
    with pytest.raises(QueryRefused):
        handle_whole(detect, batch)
    assert handle_whole(detect, batch[1:])
    scans = store.rows(RowQuery("scans", other, *EVER))
    assert all(isinstance(row["time"], float) for row in scans)
    assert scans
    assert not store.rows(RowQuery("scans", service_name, *EVER))
