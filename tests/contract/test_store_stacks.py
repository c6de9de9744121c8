"""Counts of stacks before and after a change, in every store."""

from __future__ import annotations

from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.interface import StackQuery, Store
from tests.contract.rows import T0, stacks


def test_stacks_count_in_the_spans_that_hold_their_whole_window(store: Store, service_name: str) -> None:
    f, g = ("main", "a.f"), ("main", "a.g", "a.größe 🙂")
    windows = [(f, 0, 1), (f, 600, 2), (g, 600, 4), (f, 1200, 8), (g, 1800, 16), (f, 2400, 32)]
    store.insert("stacks", stacks(service_name, [(stack, T0 + at, n) for stack, at, n in windows[:3]]))
    store.insert("stacks", stacks(service_name, [(stack, T0 + at, n) for stack, at, n in windows[3:]]))
    found = store.counts(StackQuery(service_name, (T0 - 1, T0 + 1799), (T0 + 1200, T0 + 2400)))
    counts = {
        stack: (before, after)
        for stack, before, after in zip(found.stacks, found.before, found.after, strict=True)
    }
    # The window at 1200 reaches one second beyond the first span; the one at 2400 starts after the second.
    assert counts == {f: (3, 8), g: (4, 16)}
    assert (found.total_before, found.total_after) == (7, 24)


def test_stack_windows_know_their_own_width(store: Store, service_name: str) -> None:
    store.insert("stacks", stacks(service_name, [(("a",), T0, 1), (("a",), T0 + 1, 2)], width=1))
    found = store.counts(StackQuery(service_name, (T0, T0 + 1), (T0 + 1, T0 + 2)))
    assert (found.before.tolist(), found.after.tolist()) == ([1], [2])


def test_an_unknown_service_has_no_stacks(store: Store, service_name: str) -> None:
    found = store.counts(StackQuery(service_name, (T0, T0 + 600), (T0 + 600, T0 + 1200)))
    assert (found.stacks, found.before.shape, found.after.shape) == ((), (0,), (0,))
    assert (found.total_before, found.total_after) == (0, 0)


def test_a_label_of_many_stacks_is_one_object(sql_store: ClickHouseStore, service_name: str) -> None:
    """Millions of elements have some thousands of labels, which take most of the room otherwise."""
    known = [("main", f"shop.page{number % 7}", f"shop.page{number}") for number in range(50)]
    sql_store.insert("stacks", stacks(service_name, [(stack, T0, 1) for stack in known]))
    found = sql_store.counts(StackQuery(service_name, (T0, T0 + 600), (T0 + 600, T0 + 1200))).stacks
    assert set(found) == set(known)
    assert len({id(label) for stack in found for label in stack}) == 51
