"""Scans that are made and decided again, in every store over SQL."""

from __future__ import annotations

from uuid import uuid4

import pytest

from pipeline.messages.outcomes import ScanOutcome
from pipeline.messages.records import columns_of
from pipeline.model import Scan
from pipeline.stages.outcomes import Outcomes
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.interface import RowQuery
from pipeline.storage.schema import EVER
from tests.support.fleets import START

HOUR_S = 3600.0


AFTER_TWO = {("daily", 2), ("daily", 3), ("weekly", 2), ("weekly", 3)}


@pytest.mark.parametrize(
    ("dsn", "since", "workload", "gone"),
    [
        *(
            pytest.param(kind, START + 2 * HOUR_S, None, AFTER_TWO, id=kind)
            for kind in ("chdb", "http", "server")
        ),
        pytest.param(
            "server", START + 2 * HOUR_S, "daily", {("daily", 2), ("daily", 3)}, id="of one workload"
        ),
        pytest.param(
            "server",
            *(START - HOUR_S, "daily", {("daily", 1), ("daily", 2), ("daily", 3)}),
            id="but never the first",
        ),
        pytest.param("server", START + 9 * HOUR_S, None, set(), id="none"),
    ],
    indirect=["dsn"],
)
def test_scans_since(
    sql_store: ClickHouseStore, since: float, workload: str | None, gone: set[tuple[str, int]]
) -> None:
    mine, other = f"mine-{uuid4().hex}", f"other-{uuid4().hex}"
    every = {(name, hour) for name in ("daily", "weekly") for hour in range(4)}
    for service in (mine, other):
        rows = [
            {
                **{"service": service, "workload": name, "time": START + hour * HOUR_S},
                **{"series": 1, "candidates": 0, "unstable_names": 0},
            }
            for name, hour in every
        ]
        sql_store.insert("scans", columns_of(rows))
        for name, hour in every:
            Outcomes(sql_store, "filter").of(scan(service, name, hour), ScanOutcome)
    assert sql_store.count_scans(since, mine, workload) == len(gone)
    sql_store.forget_scans(since, mine, workload)
    assert scans(sql_store, mine) == every - gone
    assert scans(sql_store, other) == every
    assert sql_store.count_scans(since, mine, workload) == 0
    # What is made again is decided again, by every stage.
    assert decided_again(sql_store, mine, every) == gone
    assert decided_again(sql_store, other, every) == set()


def scans(store: ClickHouseStore, service: str) -> set[tuple[str, int]]:
    rows = store.rows(RowQuery("scans", service, *EVER))
    return {(row["workload"], round((row["time"] - START) / HOUR_S)) for row in rows}


def scan(service: str, workload: str, hour: int) -> Scan:
    end = START + hour * HOUR_S
    return Scan(service, workload, end - HOUR_S, end, end, end, series=1)


def decided_again(store: ClickHouseStore, service: str, every: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return which of some scans have no outcome."""
    again: set[tuple[str, int]] = set()
    for name, hour in every:

        def decide(one: tuple[str, int] = (name, hour)) -> ScanOutcome:
            again.add(one)
            return ScanOutcome()

        Outcomes(store, "filter").of(scan(service, name, hour), decide)
    return again
