"""Rows of every store by time, service, columns and id, unchanged; a later row replaces an earlier one."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.model import Unjudged
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.inspection import Lacking, inspect_store
from pipeline.storage.interface import RowQuery, RowTable, Store
from tests.contract.rows import NASTY, T0, Columns, change


def test_a_later_row_replaces_the_earlier_one(store: Store, service_name: str) -> None:
    store.insert("changes", change(service_name, "1", T0 + 10, title="draft"))
    store.insert("changes", change(service_name, "2", T0))
    store.insert("changes", change(service_name, "1", T0 + 10, title="final", gates=["g"]))
    found = store.rows(RowQuery("changes", service_name, T0, T0 + 60))
    assert [(row["id"], row["title"]) for row in found] == [("2", "change 2"), ("1", "final")]
    assert found[1] == {
        **{"id": "1", "service": service_name, "time": T0 + 10, "title": "final", "author": "Ada"},
        **{"summary": "", "files": ["a.py", "b.py"], "subroutines": ["a.f"], "gates": ["g"], "content": ""},
        **{"expected": "", "routes": ""},
    }


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [(0, 30, ["0", "1", "2"]), (0, 20, ["0", "1"]), (10, 10.001, ["1"]), (10.001, 20, []), (30, 60, [])],
)
def test_rows_are_those_with_a_time_in_the_span(
    store: Store, service_name: str, start: float, end: float, wanted: list[str]
) -> None:
    for number in range(3):
        store.insert("changes", change(service_name, str(number), T0 + 10 * number))
    found = store.rows(RowQuery("changes", service_name, T0 + start, T0 + end))
    assert [row["id"] for row in found] == wanted


def test_rows_of_every_service(store: Store, service_name: str) -> None:
    for service in (f"{service_name}-a", f"{service_name}-b"):
        store.insert("changes", change(service, "one", T0))
    every = [row["service"] for row in store.rows(RowQuery("changes", None, T0, T0 + 1, equal={"id": "one"}))]
    assert {f"{service_name}-a", f"{service_name}-b"} <= set(every)


def test_rows_where_columns_equal_values(store: Store, service_name: str) -> None:
    for number, author in enumerate(NASTY):
        store.insert("changes", change(service_name, str(number), T0, author=author, title="t"))
    for number, author in enumerate(NASTY):
        found = store.rows(
            RowQuery("changes", service_name, T0, T0 + 1, equal={"author": author, "title": "t"})
        )
        assert [(row["id"], row["author"]) for row in found] == [(str(number), author)]
    assert store.rows(RowQuery("changes", service_name, T0, T0 + 1, equal={"title": "t'"})) == []
    with pytest.raises(ValueError, match="no column"):
        store.rows(RowQuery("changes", service_name, T0, T0 + 1, equal={"1 = 1 OR title": "t"}))


def test_regressions_scans_and_memory_come_back_as_given(store: Store, service_name: str) -> None:
    who = {"service": service_name, "workload": "live"}
    what = {"metric_kind": "subroutine", "metric": "a.f"}
    rows: dict[Any, dict[str, Any]] = {
        "regressions": {
            **{"id": "r1", **who, **what, "time": T0, "detected_time": T0 + 3600.125},
            **{"before": 0.01, "after": 0.015, "delta": 0.005, "p_value": 1e-300, "event": '{"é": "\'"}'},
        },
        "scans": {**who, "time": T0, "series": 2000, "candidates": 3, "unstable_names": 4},
        "unjudged": {
            **{**who, "time": T0, "code": "windows_empty"},
            **{"series": 20, "value": 4.0, "bound": 3.5},
        },
        "memory": {
            **{"stage": "filter", **who, **what, "kind": "short_term", "time": T0 + 0.001},
            **{"before": 0.0, "after": 1.0, "scan_end": T0 + 7200, "regression": "r1"},
            "change_time_interval": [T0 - 60.0, T0 + 60.0],
        },
    }
    for table, row in rows.items():
        for _ in range(2):
            store.insert(table, {name: [value] for name, value in row.items()}, token=service_name)
        assert store.rows(RowQuery(table, service_name, T0, T0 + 1, equal={"workload": "live"})) == [row]


def test_what_is_said_of_a_metric_last_counts(store: Store, service_name: str) -> None:
    for unit in ("ms", "s"):
        row = {"service": service_name, "metric": "latency", "time": T0, "unit": unit}
        row |= {"kind": "latency", "direction": "up"}
        store.insert("metric_metadata", {name: [value] for name, value in row.items()})
    assert store.rows(RowQuery("metric_metadata", service_name, T0, T0 + 1)) == [row]


def test_each_state_of_a_delivery_is_a_row(store: Store, service_name: str) -> None:
    row = {"id": "d1", "service": service_name, "time": T0, "event": "e", "regression": "r"}
    row |= {"target": "chat", "manner": "single", "state": "waiting", "partition": 3, "due_time": T0 + 1.5}
    row |= {"changed_time": 0.0, "thread": "", "detail": "", "content": '{"é": "\'"}'}
    for state in ("sent", "waiting", "waiting"):
        store.insert("alerts", {name: [value] for name, value in {**row, "state": state}.items()})
    found = store.rows(RowQuery("alerts", service_name, T0, T0 + 1))
    assert sorted(one["state"] for one in found) == ["sent", "waiting"]
    assert row in found


def test_names_come_back_as_given(store: Store, service_name: str) -> None:
    row: Columns = {
        **{"log": [service_name], "service": [service_name], "time": [T0]},
        **{"first": [7], "hashes": [[2**64 - 1, 0, 5]], "offsets": [[2**62, 7, 9]], "digest": [2**64 - 1]},
    }
    store.insert("names", row)
    store.insert("names", row)
    store.insert("names", {**row, "log": ["another log"]})
    (found,) = store.rows(RowQuery("names", None, T0, T0 + 1, equal={"log": service_name}))
    assert {name: [value] for name, value in found.items()} == row


def test_names_of_two_digests_are_two_rows(store: Store, service_name: str) -> None:
    row: Columns = {
        **{"log": [service_name], "service": [service_name], "time": [T0]},
        **{"first": [7], "hashes": [[1]], "offsets": [[7]], "digest": [1]},
    }
    store.insert("names", row)
    store.insert("names", {**row, "hashes": [[1, 2]], "offsets": [[7, 8]], "digest": [2]})
    found = store.rows(RowQuery("names", None, T0, T0 + 1, equal={"log": service_name}))
    assert sorted(len(names["hashes"]) for names in found) == [1, 2]


UPDATE: dict[str, Any] = {
    **{"id": "u1", "type": "resolved", "regression": "r1", "workload": "live"},
    **{"metric_kind": "subroutine", "metric": "a.f", "time": T0},
    **{"before": 0.01, "after": 0.015, "level": 0.0101, "share_remaining": 0.02, "event": '{"é": "\'"}'},
}
LINE: dict[str, Any] = {
    **{"id": "c0ffee", "workload": "live", "time": T0, "scan_start": T0 - 50.0},
    **{"analysis_start": T0 - 20.0, "analysis_end": T0 - 5.0},
    **{"metric_kind": "subroutine", "metric": "a.f", "kind": "short_term", "change_time": T0 - 12.0},
    **{"before": 0.01, "after": 0.015, "p_value": 1e-300, "statistic": 40.5},
    **{"step": "went_away", "value": 0.25, "bound": 0.5, "reason": "it's gone", "passed": "[]"},
    **{"code": "returned", "subjects": ["cart", "c0ffee"]},
    **{"domains": "[]", "change_time_interval": [T0 - 14.0, T0 - 11.5]},
}


@pytest.mark.parametrize(("table", "given"), [("updates", UPDATE), ("ledger", LINE)])
def test_updates_and_ledger_come_back_as_given(
    store: Store, service_name: str, table: RowTable, given: dict[str, Any]
) -> None:
    row = {**given, "service": service_name}
    for workload in ("draft", "live"):
        columns = {name: [value] for name, value in {**row, "workload": workload}.items()}
        store.insert(table, columns, token=service_name + workload)
    assert store.rows(RowQuery(table, service_name, T0, T0 + 1, equal={"metric": "a.f"})) == [row]


def test_rows_whose_id_begins_so(store: Store, service_name: str) -> None:
    for number in ("c0ffee11", "c0ffee12", "C0FFEE13", "c0%"):
        columns = {name: [value] for name, value in {**LINE, "service": service_name, "id": number}.items()}
        store.insert("ledger", columns)

    def found(prefix: str) -> list[str]:
        return [
            row["id"] for row in store.rows(RowQuery("ledger", service_name, T0, T0 + 1, id_prefix=prefix))
        ]

    assert found("c0ffee") == ["c0ffee11", "c0ffee12"]
    assert found("c0ffee12") == ["c0ffee12"]
    assert found("c0%") == ["c0%"]
    with pytest.raises(ValueError, match="no column 'id'"):
        store.rows(RowQuery("scans", service_name, T0, T0 + 1, id_prefix="c0"))


def test_rows_of_chosen_columns(store: Store, service_name: str) -> None:
    for number in range(2):
        row = {**LINE, "service": service_name, "id": f"c0ffee{number}", "time": T0 + 1 - number}
        store.insert("ledger", {name: [value] for name, value in row.items()})
    found = store.rows(
        RowQuery("ledger", service_name, T0, T0 + 2, columns=("step", "id"), equal={"metric": "a.f"})
    )
    assert found == [
        {"time": T0, "id": "c0ffee1", "step": "went_away"},
        {"time": T0 + 1, "id": "c0ffee0", "step": "went_away"},
    ]
    with pytest.raises(ValueError, match="no column 'colour'"):
        store.rows(RowQuery("ledger", service_name, T0, T0 + 2, columns=("colour",)))


def test_migrating_again_changes_nothing(sql_store: ClickHouseStore, service_name: str) -> None:
    sql_store.insert("updates", {n: [v] for n, v in {**UPDATE, "service": service_name}.items()})
    sql_store.migrate()
    assert len(sql_store.rows(RowQuery("updates", service_name, T0, T0 + 1))) == 1


def test_a_store_says_which_services_could_not_be_judged(
    shared_store: Store, store_dsn: str, service_name: str
) -> None:
    whose: dict[str, list[Any]] = {
        "service": [service_name] * 2,
        "workload": ["live", "live"],
        "time": [T0, T0 + 5],
    }
    shared_store.insert("scans", {**whose, "series": [8, 8], "candidates": [0, 0]})
    numbers: dict[str, list[Any]] = {"series": [8, 8], "value": [2.0, 1.0], "bound": [3.0, 3.0]}
    shared_store.insert("unjudged", {**whose, "code": ["windows_empty"] * 2, **numbers})
    later: dict[str, list[Any]] = {"service": [f"{service_name}-well"], "workload": ["live"], "series": [8]}
    shared_store.insert("scans", {**later, "time": [T0 + 5], "candidates": [0]})
    few: dict[str, list[Any]] = {"code": ["no_history"], "value": [0.1], "bound": [0.5]}
    shared_store.insert("unjudged", {**later, **few, "time": [T0]})
    found = [one for one in inspect_store(store_dsn).unjudged if one.service.startswith(service_name)]
    assert found == [Lacking(service_name, "live", Unjudged("windows_empty", 8, 1.0, 3.0), scans=2, made=2)]
