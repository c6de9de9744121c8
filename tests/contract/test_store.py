"""What every store must do: chDB in this process, ClickHouse's HTTP interface, and plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import clickhouse_connect
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.model import FloatArray
from pipeline.storage.interface import COUNTED, RowTable, Store, Table
from tests.contract.rows import (
    MINUTE,
    NASTY,
    STREAM,
    T0,
    Columns,
    change,
    gcpu,
    metrics,
    place,
    stacks,
    total_samples,
    totals,
)


def ask(dsn: str, sql: str) -> Any:
    """Ask the engine itself, past the store."""
    client = clickhouse_connect.get_client(dsn=dsn)
    try:
        return client.command(sql)
    finally:
        client.close()


# Counts


def test_series_come_back_sorted_with_counts_on_their_windows(store: Store, service_name: str) -> None:
    store.insert(
        "gcpu", gcpu(service_name, [("b.g", T0, 1), ("a.f", T0 + MINUTE, 2), ("b.g", T0 + MINUTE, 3)])
    )
    store.insert("gcpu", {**gcpu(service_name, [("/checkout", T0, 4)]), "kind": ["endpoint"]})
    store.insert("totals", totals(service_name, [(T0, 10), (T0 + 2 * MINUTE, 20)]))
    found = store.series("gcpu", service_name, T0, T0 + 3 * MINUTE, MINUTE)
    assert found.kinds == ("endpoint", "subroutine", "subroutine")
    assert found.names == ("/checkout", "a.f", "b.g")
    np.testing.assert_array_equal(found.samples, [[4, 0, 0], [0, 2, 0], [1, 3, 0]])
    np.testing.assert_array_equal(found.totals, [10, 0, 20])
    assert (found.start, found.resolution_s) == (T0, MINUTE)
    assert found.samples.dtype == found.totals.dtype == np.float64


def test_counts_add_up_over_blocks_partitions_and_late_data(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1), ("a.f", T0 + MINUTE, 1)], offset=5))
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 10)], offset=6))
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 100)], partition=1, offset=6))
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1000)], stream="stream-b", offset=6))
    found = store.series("gcpu", service_name, T0, T0 + 2 * MINUTE, MINUTE)
    np.testing.assert_array_equal(found.samples, [[1111, 1]])


@pytest.mark.parametrize(
    ("start", "end", "resolution", "wanted"),
    [
        pytest.param(0, 6, 1, [1, 2, 4, 8, 16, 32], id="as stored"),
        pytest.param(0, 6, 2, [3, 12, 48], id="two windows each"),
        pytest.param(1, 5, 2, [6, 24], id="aligned to start, not to the clock"),
        pytest.param(0, 5, 2, [3, 12, 16], id="last one cut by end"),
        pytest.param(-2, 2, 2, [0, 3], id="before the first"),
        pytest.param(5, 7, 1, [32, 0], id="after the last"),
        pytest.param(3, 3, 1, [], id="no window at all"),
    ],
)
def test_windows_are_aligned_to_start(
    store: Store, service_name: str, start: int, end: int, resolution: int, wanted: list[float]
) -> None:
    counts = [(T0 + j * MINUTE, 2**j) for j in range(6)]
    store.insert("gcpu", gcpu(service_name, [("a.f", window, samples) for window, samples in counts]))
    store.insert("totals", totals(service_name, counts))
    found = store.series("gcpu", service_name, T0 + start * MINUTE, T0 + end * MINUTE, resolution * MINUTE)
    assert found.totals.tolist() == wanted
    assert found.samples.tolist() == ([wanted] if wanted else [])


def test_a_resolution_below_a_second_keeps_its_windows(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, [("a.f", T0 + 0.25 * j, j + 1) for j in range(4)]))
    found = store.series("gcpu", service_name, T0, T0 + 1, 0.25)
    assert found.samples.tolist() == [[1, 2, 3, 4]]


def test_services_do_not_mix(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]))
    store.insert("gcpu", gcpu(service_name + "2", [("a.f", T0, 10), ("a.g", T0, 10)]))
    assert store.series("gcpu", service_name, T0, T0 + MINUTE, MINUTE).samples.tolist() == [[1]]


def test_a_repeated_token_adds_nothing(store: Store, service_name: str) -> None:
    block = gcpu(service_name, [("a.f", T0, 1), ("a.g", T0, 2)])
    token = f"{service_name}-1"
    for _ in range(3):
        store.insert("gcpu", block, token=token)
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 100)]), token=token)
    assert total_samples(store, service_name) == 3
    store.insert("gcpu", block, token=f"{service_name}-2")
    assert total_samples(store, service_name) == 6


@pytest.mark.parametrize("table", COUNTED)
def test_a_token_belongs_to_one_table(store: Store, service_name: str, table: Table) -> None:
    blocks: dict[str, Columns] = {
        "totals": totals(service_name, [(T0, 1)], offset=7),
        "gcpu": gcpu(service_name, [("a.f", T0, 1)], offset=7),
        "stacks": {**stacks(service_name, [(("a",), T0, 1)]), **place(1, offset=7)},
        "metrics": {**metrics(service_name, [("latency", T0, 1.0)]), **place(1, offset=7)},
    }
    stream = f"stream-{service_name}"
    for name in COUNTED:
        store.insert(name, {**blocks[name], "stream": [stream]}, token=service_name)
    assert store.last_offsets(table, stream, "profiles", [0]) == {0: 7}


def test_equal_rows_without_a_token_are_two_facts(store: Store, service_name: str) -> None:
    for _ in range(2):
        store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]))
    assert total_samples(store, service_name) == 2


def test_a_large_insert_is_one_part(sql_store: Store, dsn: str, service_name: str) -> None:
    rows = 1_200_000  # ClickHouse's own settings cut a block at about a million rows
    block = gcpu(service_name, [(f"module.function_{i % 5000}", T0 + i // 5000, 1) for i in range(rows)])
    parts = "FROM system.parts WHERE table = 'gcpu' AND database = 'default'"
    before = int(ask(dsn, f"SELECT max(max_block_number) {parts}"))
    sql_store.insert("gcpu", block, token=service_name)
    # As they were written, merged since or not.
    written = f"{parts} AND min_block_number = max_block_number AND min_block_number > {before}"
    assert ask(dsn, f"SELECT count(), sum(rows) {written}") == ["1", str(rows)]
    found = sql_store.series("gcpu", service_name, T0, T0 + rows // 5000, rows // 5000)
    assert found.samples.tolist() == [[rows // 5000]] * 5000


def test_an_insert_of_no_rows_is_nothing(store: Store, service_name: str) -> None:
    store.insert("gcpu", gcpu(service_name, []), token=service_name)
    store.insert("gcpu", gcpu(service_name, [("a.f", T0, 1)]), token=service_name)
    assert total_samples(store, service_name) == 1


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        pytest.param(lambda c: c.pop("topic"), "missing columns: topic", id="missing"),
        pytest.param(lambda c: c.update(host=["h"]), "unknown columns: host", id="unknown"),
        pytest.param(lambda c: c.update(samples=[1, 2]), "samples=2", id="lengths"),
    ],
)
def test_wrong_columns_are_named(
    store: Store, service_name: str, spoil: Callable[[Columns], None], text: str
) -> None:
    columns = gcpu(service_name, [("a.f", T0, 1)])
    spoil(columns)
    with pytest.raises(ValueError, match=text):
        store.insert("gcpu", columns)


def test_numpy_columns_are_welcome(store: Store, service_name: str) -> None:
    columns = gcpu(service_name, [("a.f", T0, 1), ("a.f", T0 + MINUTE, 2)])
    kinds = {"window": np.float64, "samples": np.int64, "partition": np.int32, "last_offset": np.int64}
    columns.update({name: np.array(columns[name], kind) for name, kind in kinds.items()})
    store.insert("gcpu", columns)
    assert total_samples(store, service_name) == 3


def test_names_are_kept_to_the_letter(store: Store, service_name: str) -> None:
    for service in (f"{service_name}{nasty}" for nasty in NASTY):
        store.insert("gcpu", gcpu(service, [(name, T0, 1 + i) for i, name in enumerate(NASTY)]))
        found = store.series("gcpu", service, T0, T0 + MINUTE, MINUTE)
        assert found.names == tuple(sorted(NASTY, key=str.encode))
        assert dict(zip(found.names, found.samples[:, 0], strict=True)) == {
            name: 1 + i for i, name in enumerate(NASTY)
        }


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    blocks=st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a.f", "a.g", "b.h"]), st.integers(0, 5), st.integers(0, 2**40)),
            min_size=1,
            max_size=12,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_split_into_blocks_sums_to_the_same_matrix(
    store: Store, blocks: list[list[tuple[str, int, int]]]
) -> None:
    service = f"split-{uuid4().hex}"
    wanted: dict[str, FloatArray] = {}
    for number, block in enumerate(blocks):
        store.insert(
            "gcpu", gcpu(service, [(name, T0 + w * MINUTE, n) for name, w, n in block], partition=number)
        )
        for name, window, samples in block:
            wanted.setdefault(name, np.zeros(6))[window] += samples
    found = store.series("gcpu", service, T0, T0 + 6 * MINUTE, MINUTE)
    assert found.names == tuple(sorted(wanted))
    np.testing.assert_array_equal(found.samples, [wanted[name] for name in found.names])


# Offsets


def test_last_offsets_are_kept_for_each_stream_topic_and_partition(store: Store, service_name: str) -> None:
    stream = f"stream-{service_name}"
    for partition, offset in ((0, 5), (0, 9), (0, 7), (3, 0)):
        store.insert(
            "gcpu",
            gcpu(service_name, [("a.f", T0, 1)], partition=partition, offset=offset, stream=stream),
        )
    store.insert("totals", totals(service_name, [(T0, 1)], partition=0, offset=99, stream=stream))
    assert store.last_offsets("gcpu", stream, "profiles", [0, 1, 3]) == {0: 9, 3: 0}
    assert store.last_offsets("gcpu", stream, "profiles", [3]) == {3: 0}
    assert store.last_offsets("gcpu", stream, "profiles", []) == {}
    assert store.last_offsets("gcpu", stream, "metrics", [0]) == {}
    assert store.last_offsets("gcpu", stream + "'", "profiles", [0]) == {}
    assert store.last_offsets("totals", stream, "profiles", [0, 3]) == {0: 99}


def test_usage_is_what_totals_counted_of_a_partition(store: Store, service_name: str) -> None:
    def use(
        window: float,
        messages: int,
        stacks: int,
        *,
        partition: int = 3,
        service: str = "",
        topic: str = "profiles",
    ) -> None:
        rows = totals(service or service_name, [(window, 5)], partition=partition, stream=service_name)
        rows |= {"topic": [topic], "messages": [messages], "stacks": [stacks]}
        rows |= {"refused_messages": [9], "refused_samples": [99]}
        store.insert("totals", rows)

    other = f"{service_name}-{NASTY[0]}"
    start = T0 // 300 * 300
    use(start, 1, 10)
    use(start + 299, 2, 20)
    use(start + 300, 4, 40)
    use(start + 600, 0, 0)  # refused messages alone
    use(start + 900, 8, 80)  # after the span
    use(start + 300, 100, 1000, topic=f"replay/profiles/{'a' * 32}")
    use(start + 300, 200, 2000, topic="replay/metrics/a")
    use(start, 16, 160, partition=4)
    use(start, 32, 320, service=other)
    use(start, 64, 640, service=f"{service_name}-unasked")
    many = [f"{service_name}-{i}-{'x' * 100}" for i in range(200)]
    asked = [service_name, other, *many]
    assert store.usage(service_name, "profiles", 3, asked, (start, start + 900), 300.0) == {
        (service_name, start): (3, 30),
        (service_name, start + 300): (104, 1040),
        (other, start): (32, 320),
    }
    assert store.usage("another log", "profiles", 3, asked, (start, start + 900), 300.0) == {}
    assert store.usage(service_name, "metrics", 3, asked, (start, start + 900), 300.0) == {
        (service_name, start + 300): (200, 2000)  # of a replay
    }
    assert store.usage(service_name, "profiles", 3, [], (start, start + 900), 300.0) == {}


def test_names_come_back_as_given(store: Store, service_name: str) -> None:
    row: Columns = {
        **{"log": [service_name], "service": [service_name], "time": [T0]},
        **{"first": [7], "hashes": [[2**64 - 1, 0, 5]], "offsets": [[2**62, 7, 9]]},
    }
    store.insert("names", {**row, "hashes": [[1]], "offsets": [[7]]})
    store.insert("names", row)
    store.insert("names", {**row, "log": ["another log"]})
    (found,) = store.rows("names", None, T0, T0 + 1, log=service_name)
    assert {name: [value] for name, value in found.items()} == row


def test_merging_parts_changes_nothing(sql_store: Store, dsn: str, service_name: str) -> None:
    stream = f"stream-{service_name}"
    for offset in range(4):
        block = gcpu(service_name, [("a.f", T0, 1), ("a.g", T0 + MINUTE, 2)], offset=offset, stream=stream)
        sql_store.insert("gcpu", block, token=f"{service_name}-{offset}")
    ask(dsn, "OPTIMIZE TABLE gcpu FINAL")
    assert total_samples(sql_store, service_name) == 12
    assert sql_store.last_offsets("gcpu", stream, "profiles", [0]) == {0: 3}
    sql_store.insert("gcpu", block, token=f"{service_name}-3")
    assert total_samples(sql_store, service_name) == 12


def test_a_table_without_offsets_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="changes does not keep offsets"):
        store.last_offsets("changes", STREAM, "changes", [0])


# Service-level metrics


def test_metrics_are_means_with_nan_where_nothing_was_measured(store: Store, service_name: str) -> None:
    points = [
        ("latency", T0, 1.0),
        ("latency", T0 + 59.9, 2.0),
        ("latency", T0 + 125, -4.5),
        ("rps", T0, 7.0),
    ]
    store.insert("metrics", metrics(service_name, points))
    store.insert("metrics", metrics(service_name, [("version", T0, 3.0)], setup=1))
    found = store.series("service", service_name, T0, T0 + 3 * MINUTE, MINUTE)
    assert (found.kinds, found.names) == (("service", "service"), ("latency", "rps"))
    nan = float("nan")
    np.testing.assert_array_equal(found.samples, [[1.5, nan, -4.5], [7.0, nan, nan]])
    np.testing.assert_array_equal(found.totals, [1, 1, 1])


def test_setup_metrics_are_a_source_of_their_own(store: Store, service_name: str) -> None:
    store.insert("metrics", metrics(service_name, [("latency", T0, 1.0)]))
    points = [("version", T0, 3.0), ("version", T0 + MINUTE, 5.0), ("share", T0, 0.5)]
    store.insert("metrics", metrics(service_name, points, setup=1))
    found = store.series("setup", service_name, T0, T0 + 2 * MINUTE, MINUTE)
    assert (found.kinds, found.names) == (("service", "service"), ("share", "version"))
    np.testing.assert_array_equal(found.samples, [[0.5, np.nan], [3.0, 5.0]])
    asked = store.series("setup", service_name, T0, T0 + MINUTE, MINUTE, [("service", "version")])
    assert (asked.names, asked.samples.tolist()) == (("version",), [[3.0]])


@pytest.mark.parametrize("source", ["gcpu", "service", "setup"])
def test_an_unknown_service_has_no_series(store: Store, service_name: str, source: Any) -> None:
    found = store.series(source, service_name, T0, T0 + 3 * MINUTE, MINUTE)
    assert (found.kinds, found.names, found.samples.shape) == ((), (), (0, 3))
    np.testing.assert_array_equal(found.totals, np.zeros(3) if source == "gcpu" else np.ones(3))


# Few series of many


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        pytest.param([("subroutine", "a.g"), ("subroutine", "a.f")], ["a.f", "a.g"], id="in order"),
        pytest.param([("subroutine", "a.f"), ("subroutine", "a.f")], ["a.f"], id="asked for twice"),
        pytest.param([("endpoint", "a.f"), ("service", "a.f")], [], id="of another kind"),
        pytest.param([("subroutine", "z"), ("subroutine", "a.late")], [], id="without data in the span"),
        pytest.param([], [], id="none"),
        pytest.param([("subroutine", name) for name in NASTY], sorted(NASTY, key=str.encode), id="nasty"),
        pytest.param(
            [("subroutine", f"a.{i}.{'x' * 100}") for i in range(100)] + [("subroutine", "a.g")],
            ["a.g"],
            id="more than a URL holds",
        ),
        pytest.param(
            [("subroutine", "λ" * 4000), ("subroutine", "a.f")],
            ["a.f", "λ" * 4000],
            id="a name too long for it",
        ),
    ],
)
def test_only_named_series_are_read(
    store: Store, service_name: str, names: list[tuple[str, str]], wanted: list[str]
) -> None:
    held = ["a.f", "a.g", "b.h", "λ" * 4000, *NASTY]
    store.insert("gcpu", gcpu(service_name, [(name, T0, 1 + i) for i, name in enumerate(held)]))
    store.insert("gcpu", gcpu(service_name, [("a.late", T0 + 5 * MINUTE, 1)]))
    store.insert("totals", totals(service_name, [(T0, 100)]))
    found = store.series("gcpu", service_name, T0, T0 + 2 * MINUTE, MINUTE, names)
    assert list(found.names) == wanted
    assert found.samples[:, 0].tolist() == [1 + held.index(name) for name in wanted]
    assert (found.samples.shape, found.totals.tolist()) == ((len(wanted), 2), [100, 0])


def test_only_named_metrics_are_read(store: Store, service_name: str) -> None:
    points = [("latency", T0, 1.0), ("rps", T0, 7.0), ("errors", T0, 0.5)]
    store.insert("metrics", metrics(service_name, points))
    names = [("service", "rps"), ("service", "latency"), ("subroutine", "errors")]
    found = store.series("service", service_name, T0, T0 + MINUTE, MINUTE, names)
    assert (found.names, found.samples.tolist()) == (("latency", "rps"), [[1.0], [7.0]])


# Stacks


def test_stacks_count_in_the_spans_that_hold_their_whole_window(store: Store, service_name: str) -> None:
    f, g = ("main", "a.f"), ("main", "a.g", "a.größe 🙂")
    windows = [(f, 0, 1), (f, 600, 2), (g, 600, 4), (f, 1200, 8), (g, 1800, 16), (f, 2400, 32)]
    store.insert("stacks", stacks(service_name, [(stack, T0 + at, n) for stack, at, n in windows[:3]]))
    store.insert("stacks", stacks(service_name, [(stack, T0 + at, n) for stack, at, n in windows[3:]]))
    found = store.stacks(service_name, (T0 - 1, T0 + 1799), (T0 + 1200, T0 + 2400))
    counts = {
        stack: (before, after)
        for stack, before, after in zip(found.stacks, found.before, found.after, strict=True)
    }
    # The window at 1200 reaches one second beyond the first span; the one at 2400 starts after the second.
    assert counts == {f: (3, 8), g: (4, 16)}
    assert (found.total_before, found.total_after) == (7, 24)


def test_stack_windows_know_their_own_width(store: Store, service_name: str) -> None:
    store.insert("stacks", stacks(service_name, [(("a",), T0, 1), (("a",), T0 + 1, 2)], width=1))
    found = store.stacks(service_name, (T0, T0 + 1), (T0 + 1, T0 + 2))
    assert (found.before.tolist(), found.after.tolist()) == ([1], [2])


def test_an_unknown_service_has_no_stacks(store: Store, service_name: str) -> None:
    found = store.stacks(service_name, (T0, T0 + 600), (T0 + 600, T0 + 1200))
    assert (found.stacks, found.before.shape, found.after.shape) == ((), (0,), (0,))
    assert (found.total_before, found.total_after) == (0, 0)


# Rows with an identity


def test_a_later_row_replaces_the_earlier_one(store: Store, service_name: str) -> None:
    store.insert("changes", change(service_name, "1", T0 + 10, title="draft"))
    store.insert("changes", change(service_name, "2", T0))
    store.insert("changes", change(service_name, "1", T0 + 10, title="final", gates=["g"]))
    found = store.rows("changes", service_name, T0, T0 + 60)
    assert [(row["id"], row["title"]) for row in found] == [("2", "change 2"), ("1", "final")]
    assert found[1] == {
        **{"id": "1", "service": service_name, "time": T0 + 10, "title": "final", "author": "Ada"},
        **{"summary": "", "files": ["a.py", "b.py"], "subroutines": ["a.f"], "gates": ["g"], "content": ""},
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
    found = store.rows("changes", service_name, T0 + start, T0 + end)
    assert [row["id"] for row in found] == wanted


def test_rows_of_every_service(store: Store, service_name: str) -> None:
    for service in (f"{service_name}-a", f"{service_name}-b"):
        store.insert("changes", change(service, "one", T0))
    every = [row["service"] for row in store.rows("changes", None, T0, T0 + 1, id="one")]
    assert {f"{service_name}-a", f"{service_name}-b"} <= set(every)


def test_rows_where_columns_equal_values(store: Store, service_name: str) -> None:
    for number, author in enumerate(NASTY):
        store.insert("changes", change(service_name, str(number), T0, author=author, title="t"))
    for number, author in enumerate(NASTY):
        found = store.rows("changes", service_name, T0, T0 + 1, author=author, title="t")
        assert [(row["id"], row["author"]) for row in found] == [(str(number), author)]
    assert store.rows("changes", service_name, T0, T0 + 1, title="t'") == []
    with pytest.raises(ValueError, match="no column"):
        store.rows("changes", service_name, T0, T0 + 1, **{"1 = 1 OR title": "t"})


def test_regressions_scans_and_memory_come_back_as_given(store: Store, service_name: str) -> None:
    who = {"service": service_name, "workload": "live"}
    what = {"metric_kind": "subroutine", "metric": "a.f"}
    rows: dict[Any, dict[str, Any]] = {
        "regressions": {
            **{"id": "r1", **who, **what, "time": T0, "detected_time": T0 + 3600.125},
            **{"before": 0.01, "after": 0.015, "delta": 0.005, "p_value": 1e-300, "event": '{"é": "\'"}'},
        },
        "scans": {**who, "time": T0, "series": 2000, "candidates": 3},
        "memory": {
            **{"stage": "filter", **who, **what, "kind": "short_term", "time": T0 + 0.001},
            **{"before": 0.0, "after": 1.0, "scan_end": T0 + 7200, "regression": "r1"},
        },
    }
    for table, row in rows.items():
        for _ in range(2):
            store.insert(table, {name: [value] for name, value in row.items()}, token=service_name)
        assert store.rows(table, service_name, T0, T0 + 1, workload="live") == [row]


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
    **{"domains": "[]"},
}


@pytest.mark.parametrize(("table", "given"), [("updates", UPDATE), ("ledger", LINE)])
def test_updates_and_ledger_come_back_as_given(
    store: Store, service_name: str, table: RowTable, given: dict[str, Any]
) -> None:
    row = {**given, "service": service_name}
    for workload in ("draft", "live"):
        columns = {name: [value] for name, value in {**row, "workload": workload}.items()}
        store.insert(table, columns, token=service_name + workload)
    assert store.rows(table, service_name, T0, T0 + 1, metric="a.f") == [row]


def test_rows_whose_id_begins_so(store: Store, service_name: str) -> None:
    for number in ("c0ffee11", "c0ffee12", "C0FFEE13", "c0%"):
        columns = {name: [value] for name, value in {**LINE, "service": service_name, "id": number}.items()}
        store.insert("ledger", columns)

    def found(prefix: str) -> list[str]:
        return [row["id"] for row in store.rows("ledger", service_name, T0, T0 + 1, id_prefix=prefix)]

    assert found("c0ffee") == ["c0ffee11", "c0ffee12"]
    assert found("c0ffee12") == ["c0ffee12"]
    assert found("c0%") == ["c0%"]
    with pytest.raises(ValueError, match="no column 'id'"):
        store.rows("scans", service_name, T0, T0 + 1, id_prefix="c0")


def test_migrating_again_changes_nothing(sql_store: Store, service_name: str) -> None:
    sql_store.insert("updates", {n: [v] for n, v in {**UPDATE, "service": service_name}.items()})
    sql_store.migrate()
    assert len(sql_store.rows("updates", service_name, T0, T0 + 1)) == 1
