"""Rollups: reads with them equal reads without, late samples included."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.model import SeriesKey, SeriesMatrix
from pipeline.storage import gcpu_series
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_client
from pipeline.storage.gcpu_series import slices
from pipeline.storage.interface import SeriesQuery, Store
from tests.contract.rows import MINUTE, NASTY, gcpu, totals

START = 1_700_000_400.0  # a whole ten minutes
WIDTH = 10 * MINUTE
END = START + 6 * WIDTH

Block = list[tuple[str, int, int]]  # name, minute, samples


def add(store: Store, service: str, block: Block, number: int, **where: Any) -> None:
    """Insert a block as aggregate does, totals last."""
    token = f"{service}-{number}-{where.get('partition', 0)}"
    rows = [(name, START + minute * MINUTE, samples) for name, minute, samples in block]
    store.insert("gcpu", gcpu(service, rows, offset=number, **where), token=f"gcpu-{token}")
    in_all = [(window, 2 * samples) for _, window, samples in rows]
    store.insert("totals", totals(service, in_all, offset=number, **where), token=f"totals-{token}")


def same(found: SeriesMatrix, wanted: SeriesMatrix) -> None:
    assert found.series == wanted.series
    np.testing.assert_array_equal(found.samples, wanted.samples)
    np.testing.assert_array_equal(found.totals, wanted.totals)


def rolled_up(dsn: str, service: str) -> int:
    """Return how many windows of a service have a rollup."""
    sql = "SELECT uniqExact(width_s, window) FROM gcpu_rollup WHERE service = {s:String} AND kind = ''"
    with closing(open_client(dsn)) as client:
        return int(client.query(sql, {"s": service}).result_rows[0][0])


BLOCKS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from(["a.f", "a.g", "b.h"]), st.integers(0, 59), st.integers(1, 2**30)),
            min_size=1,
            max_size=8,
        ),
        st.integers(0, 2),  # partition
        st.booleans(),  # it comes twice
        st.sampled_from([None, (0, 6), (0, 3), (2, 6)]),  # windows that are rolled up then
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("store", ["server"], indirect=True)  # one engine: the tests below try all stores
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(blocks=BLOCKS)
def test_series_are_the_same_with_rollups_and_without(
    store: Store, blocks: list[tuple[Block, int, bool, tuple[int, int] | None]]
) -> None:
    service, plain = f"rollup-{uuid4().hex}", ArrayStore()
    for number, (block, partition, twice, rolled) in enumerate(blocks):
        for _ in range(1 + twice):
            add(store, service, block, number, partition=partition)
        add(plain, service, block, number, partition=partition)
        if rolled is not None:
            store.series(
                SeriesQuery(
                    "gcpu",
                    service,
                    START + rolled[0] * WIDTH,
                    START + rolled[1] * WIDTH,
                    WIDTH,
                    names=(),
                    rolls_up=True,
                )
            )
        for names in (None, [SeriesKey("subroutine", "a.g")]):
            span = (START, END, WIDTH)
            same(
                store.series(SeriesQuery("gcpu", service, *span, names)),
                plain.series(SeriesQuery("gcpu", service, *span, names)),
            )


@pytest.mark.parametrize(
    ("start", "end", "width"),
    [
        pytest.param(START, END, WIDTH, id="as rolled up"),
        pytest.param(START + WIDTH, END - WIDTH, WIDTH, id="a part"),
        pytest.param(START, END - MINUTE, WIDTH, id="the last one is cut"),
        pytest.param(START + MINUTE, END, WIDTH, id="aligned otherwise"),
        pytest.param(START, END, 2 * WIDTH, id="of another width"),
        pytest.param(START - 2 * WIDTH, END + 2 * WIDTH, WIDTH, id="beyond both ends"),
    ],
)
def test_other_windows_are_not_read_from_rollups(
    store: Store, service_name: str, start: float, end: float, width: float
) -> None:
    plain = ArrayStore()
    block = [(name, minute, 1 + minute) for name in ("a.f", "a.g") for minute in range(60)]
    for one in (store, plain):
        add(one, service_name, block, 0)
    store.series(SeriesQuery("gcpu", service_name, START, END, WIDTH, names=(), rolls_up=True))
    same(
        store.series(SeriesQuery("gcpu", service_name, start, end, width)),
        plain.series(SeriesQuery("gcpu", service_name, start, end, width)),
    )


def test_what_is_rolled_up_is_read_from_the_rollup(
    sql_store: ClickHouseStore, dsn: str, service_name: str
) -> None:
    add(sql_store, service_name, [("a.f", 1, 3), ("a.f", 11, 4)], 0)
    sql_store.series(
        SeriesQuery("gcpu", service_name, START, START + 2 * WIDTH, WIDTH, names=(), rolls_up=True)
    )
    assert rolled_up(dsn, service_name) == 2
    with closing(open_client(dsn)) as client:  # a mark that only the rollup has
        client.command(
            "INSERT INTO gcpu_rollup SELECT * REPLACE (samples + 90 AS samples) FROM gcpu_rollup"
            " WHERE service = {s:String} AND kind != ''",
            {"s": service_name},
        )
        client.command("OPTIMIZE TABLE gcpu_rollup FINAL")
    found = sql_store.series(SeriesQuery("gcpu", service_name, START, START + 2 * WIDTH, WIDTH))
    assert found.samples.tolist() == [[93, 94]]
    add(sql_store, service_name, [("a.f", 12, 1)], 1)  # late
    found = sql_store.series(SeriesQuery("gcpu", service_name, START, START + 2 * WIDTH, WIDTH))
    assert found.samples.tolist() == [[93, 5]]


def test_a_rollup_that_was_cut_off_is_not_read(
    sql_store: ClickHouseStore, dsn: str, service_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(sql_store, service_name, [("a.f", 1, 3), ("a.g", 1, 4)], 0)
    run, statements = sql_store._gcpu._run, []

    def once(sql: str, values: Any) -> None:
        statements.append(sql)
        if len(statements) > 1:
            raise ConnectionError
        run(sql, values)

    monkeypatch.setattr(gcpu_series, "MOST_CELLS", 1)  # a query for each series
    monkeypatch.setattr(sql_store._gcpu, "_run", once)
    with pytest.raises(ConnectionError):
        sql_store.series(
            SeriesQuery("gcpu", service_name, START, START + WIDTH, WIDTH, names=(), rolls_up=True)
        )
    assert rolled_up(dsn, service_name) == 0
    found = sql_store.series(SeriesQuery("gcpu", service_name, START, START + WIDTH, WIDTH))
    assert (found.names, found.samples.tolist()) == (("a.f", "a.g"), [[3], [4]])
    monkeypatch.setattr(sql_store._gcpu, "_run", run)
    sql_store.series(SeriesQuery("gcpu", service_name, START, START + WIDTH, WIDTH, names=(), rolls_up=True))
    assert sql_store.series(
        SeriesQuery("gcpu", service_name, START, START + WIDTH, WIDTH)
    ).samples.tolist() == [[3], [4]]


def test_nothing_is_rolled_up_twice(sql_store: ClickHouseStore, service_name: str) -> None:
    add(sql_store, service_name, [("a.f", 1, 3)], 0)
    sql_store.series(SeriesQuery("gcpu", service_name, START, END, WIDTH, names=(), rolls_up=True))
    sql_store._gcpu._run = lambda sql, values: pytest.fail("a statement")
    sql_store.series(SeriesQuery("gcpu", service_name, START, END, WIDTH, names=(), rolls_up=True))


@pytest.mark.parametrize("most", [1, 7, 10**6])
def test_many_series_come_in_slices(
    store: Store, service_name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gcpu_series, "MOST_CELLS", most)
    names = [*NASTY, *(f"m.f{number}" for number in range(20)), "x" * 900, "x" * 901]
    plain = ArrayStore()
    for one in (store, plain):
        add(one, service_name, [(name, 10 * (i % 6), 1 + i) for i, name in enumerate(names)], 0)
        one.insert("gcpu", {**gcpu(service_name, [("/checkout", START, 5)]), "kind": ["endpoint"]})
    span = (service_name, START, END, WIDTH)
    wanted = plain.series(SeriesQuery("gcpu", *span))
    same(store.series(SeriesQuery("gcpu", *span)), wanted)
    store.series(SeriesQuery("gcpu", *span, names=(), rolls_up=True))
    same(store.series(SeriesQuery("gcpu", *span)), wanted)


def test_no_query_returns_more_than_a_slice(
    sql_store: ClickHouseStore, service_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gcpu_series, "MOST_CELLS", 60)
    names = [f"m.f{number:02d}" for number in range(40)]
    add(sql_store, service_name, [(name, minute, 1) for name in names for minute in range(0, 60, 10)], 0)
    numbers, sizes = sql_store._gcpu._numbers, []

    def counted(sql: str, values: Any) -> Any:
        found = numbers(sql, values)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(sql_store._gcpu, "_numbers", counted)
    assert sql_store.series(SeriesQuery("gcpu", service_name, START, END, WIDTH)).samples.sum() == 240
    sql_store.series(SeriesQuery("gcpu", service_name, START, END, WIDTH, names=(), rolls_up=True))
    assert sql_store.series(SeriesQuery("gcpu", service_name, START, END, WIDTH)).samples.sum() == 240
    assert max(sizes) == 60


def test_slices_are_cut_where_a_short_text_divides() -> None:
    keys = [SeriesKey("subroutine", name) for name in ("a", "ab", "b" * 150, "b" * 151, "ca", "cb")]
    cut = [(one.first, one.last, one.values["first"], one.values["beyond"]) for one in slices(keys, 1)]
    assert cut == [(0, 1, "", "ab"), (1, 2, "ab", "b"), (2, 4, "b", "c"), (4, 5, "c", "cb"), (5, 6, "cb", "")]
