"""Tables in docs/tables.md: the columns exist, and the examples give the right numbers."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import clickhouse_connect
import pytest

from pipeline.storage.connect import open_store
from pipeline.storage.interface import Table
from pipeline.storage.schema import COLUMNS
from tests.contract.rows import STREAM, T0, totals

DOC = (Path(__file__).parents[2] / "docs" / "tables.md").read_text("utf-8")
EXAMPLES = re.findall(r"```sql\n(.*?)```", DOC, re.DOTALL)

Columns = dict[str, Any]


@pytest.fixture(scope="module")
def dsn(store_dsn: str) -> str:
    """A database with one service, ``shop``: 10 samples a window, 4 of them in the subroutine."""
    dsn = f"{store_dsn}/doc_{uuid4().hex}"
    window = time.time() // 600 * 600 - 600
    size = 3  # pieces of the same window, which have to be summed
    position = {"stream": ["x"] * size, "topic": ["profiles"] * size, "partition": [0] * size}
    shared: Columns = {**position, "last_offset": list(range(size)), "service": ["shop"] * size}
    counted: Columns = {**shared, "window": [window] * size}
    hit: Columns = {"kind": ["subroutine"] * size, "subroutine": ["shop.pricing.PriceList.total"] * size}
    frames: Columns = {"stack_id": [1] * size, "frames": [["main", "shop.pricing.PriceList.total"]] * size}
    latency: Columns = {"metric": ["latency_p50"] * size, "setup": [0] * size, "value": [1.0, 2.0, 6.0]}
    with closing(open_store(dsn)) as store:
        store.migrate()
        store.insert("totals", {**counted, "samples": [5, 3, 2]})
        store.insert("gcpu", {**counted, **hit, "samples": [2, 1, 1]})
        store.insert("stacks", {**counted, **frames, "samples": [2, 1, 1], "width_s": [600.0] * size})
        store.insert("metrics", {**shared, **latency, "time": [window] * size})
        texts: Columns = {name: [""] for name in ("author", "summary", "content")}
        lists: Columns = {name: [[]] for name in ("files", "subroutines", "gates")}
        change: Columns = {"id": ["c"], "service": ["shop"], "time": [window], "title": ["faster"]}
        for _ in range(2):
            store.insert("changes", {**change, **texts, **lists})
        levels: Columns = {"before": [0.1], "after": [0.15], "delta": [0.05], "p_value": [0.0]}
        what: Columns = {
            "metric_kind": ["subroutine"],
            "metric": ["shop.f"],
            "event": ["{}"],
            "workload": ["live"],
        }
        when: Columns = {
            "id": ["r"],
            "service": ["shop"],
            "time": [window + 1],
            "detected_time": [window + 2],
        }
        store.insert("regressions", {**when, **what, **levels})
    return dsn


@pytest.mark.parametrize(
    ("example", "wanted"),
    [
        pytest.param(0, [[0.4]], id="gcpu over time"),
        pytest.param(1, [["shop.pricing.PriceList.total", 0.4]], id="most expensive"),
        pytest.param(2, [["main;shop.pricing.PriceList.total", 4]], id="flame graph"),
        pytest.param(3, [[3.0]], id="metric"),
        pytest.param(4, [["deployed: faster"], ["regression: shop.f +5 % of the CPU"]], id="annotations"),
    ],
)
def test_examples_give_the_right_numbers(dsn: str, example: int, wanted: list[list[object]]) -> None:
    with closing(clickhouse_connect.get_client(dsn=dsn, autogenerate_session_id=False)) as client:
        rows = client.query(EXAMPLES[example]).result_rows
    without_time = 0 if len(rows[0]) == len(wanted[0]) else 1
    assert [list(row[without_time:]) for row in rows] == wanted


def test_counts_beyond_their_offsets_are_found(store_dsn: str) -> None:
    dsn = f"{store_dsn}/doc_{uuid4().hex}"
    with closing(open_store(dsn)) as store:
        store.migrate()
        for partition, last in ((0, 9), (1, 9), (1, 9)):  # the second block of partition 1 is a double
            rows = totals("shop", [(T0, 10)], partition=partition, offset=last)
            store.insert("totals", {**rows, "messages": [8], "refused_messages": [1]})
    with closing(clickhouse_connect.get_client(dsn=dsn, autogenerate_session_id=False)) as client:
        assert client.query(EXAMPLES[5]).result_rows == [(STREAM, "profiles", 1, 18, 10)]


def test_every_example_is_tried() -> None:
    assert len(EXAMPLES) == 6


@pytest.mark.parametrize("table", [name for name in COLUMNS if name != "memory"])
def test_every_column_is_described(dsn: str, table: Table) -> None:
    section = DOC.split(f"### {table}\n")[1].split("\n## ")[0].split("\n### ")[0]
    rows = re.findall(r"^- (`[a-z0-9_`, ]+`)", section + DOC.split("## Bookkeeping")[1], re.MULTILINE)
    names = {name.strip("` ") for row in rows for name in row.split(",")} | {"inserted"}
    with closing(clickhouse_connect.get_client(dsn=dsn, autogenerate_session_id=False)) as client:
        columns = client.query(
            "SELECT name FROM system.columns WHERE table = {table:String} AND database = currentDatabase()",
            {"table": table},
        ).result_columns[0]
    assert set(columns) <= names
    assert set(columns) == {*COLUMNS[table], "inserted"}
