"""Counts of a batch as rows of the tables, by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.counting.count import count_samples, stack_ids
from pipeline.counting.quota.admission import Refused
from pipeline.model import Profile, Record
from pipeline.stages.gather.counted_rows import COUNTED_COLUMNS
from pipeline.storage.interface import COUNTED, CountTable
from tests.support.builders import build_profile

T0 = 1_700_000_040.0  # a whole minute
LAST = {0: 17, 3: 29}
COLUMNS = {table: columns for step in COUNTED_COLUMNS for table, columns in step.items()}


def columns(table: CountTable, records: Sequence[Record]) -> Mapping[str, Sequence[Any]]:
    taken = [record for record in records if isinstance(record.payload, Profile)]
    counts = count_samples(
        [record.payload for record in taken],
        [record.partition for record in taken],
        window_s=60.0,
        stack_window_s=600.0,
    )
    return COLUMNS[table](counts, records, LAST, 60.0)


def rows(table: CountTable, records: Sequence[Record], *names: str) -> set[tuple[Any, ...]]:
    found = columns(table, records)
    return set(zip(*(found[name] for name in names), strict=True))


def record(payload: Profile | Refused, partition: int = 0) -> Record:
    return Record("profiles", partition, LAST[partition], payload)


FIRST = build_profile({"main;a": 3, "main;b": 2}, start=T0, end=T0 + 10)
NEXT = build_profile({"main;a": 4}, start=T0 + 60, end=T0 + 70, annotations=[("a", "endpoint", "/buy")])
OTHER = build_profile({"main;a": 5}, start=T0, end=T0 + 10)
RECORDS = [record(FIRST), record(NEXT), record(OTHER, 3)]


def test_totals_are_written_last() -> None:
    order = [table for step in COUNTED_COLUMNS for table in step]
    assert (order[-1], list(COUNTED_COLUMNS[-1])) == ("totals", ["totals"])
    assert sorted(order) == sorted(set(COUNTED) - {"metrics", "requests"})


def test_totals_say_what_was_counted_of_which_partition() -> None:
    names = ("service", "window", "partition", "last_offset", "samples", "messages", "stacks")
    assert rows("totals", RECORDS, *names) == {
        ("shop", T0, 0, 17, 5, 1, 2),
        ("shop", T0 + 60, 0, 17, 4, 1, 1),
        ("shop", T0, 3, 29, 5, 1, 1),
    }


def test_what_is_refused_is_counted_beside_it() -> None:
    refused = [record(Refused("shop", T0, T0 + 10, 70)), record(Refused("greedy", T0 + 50, T0 + 80, 9), 3)]
    names = ("service", "window", "partition", "samples", "messages", "refused_messages", "refused_samples")
    assert rows("totals", [*RECORDS, *refused], *names) == {
        ("shop", T0, 0, 5, 1, 1, 70),
        ("shop", T0 + 60, 0, 4, 1, 0, 0),
        ("shop", T0, 3, 5, 1, 0, 0),
        ("greedy", T0 + 60, 3, 0, 0, 1, 9),  # the middle of its interval lies in the second minute
    }


def test_series_have_a_row_a_window_and_partition() -> None:
    assert rows("gcpu", RECORDS, "kind", "subroutine", "window", "partition", "last_offset", "samples") == {
        ("subroutine", "main", T0, 0, 17, 5),
        ("subroutine", "a", T0, 0, 17, 3),
        ("subroutine", "b", T0, 0, 17, 2),
        ("subroutine", "main", T0 + 60, 0, 17, 4),
        ("subroutine", "a", T0 + 60, 0, 17, 4),
        ("endpoint", "/buy", T0 + 60, 0, 17, 4),
        ("subroutine", "main", T0, 3, 29, 5),
        ("subroutine", "a", T0, 3, 29, 5),
    }
    assert set(columns("gcpu", RECORDS)["service"]) == {"shop"}


def test_stacks_have_windows_of_their_own() -> None:
    window = T0 // 600 * 600
    plain, other, annotated = ("main", "a"), ("main", "b"), ("main", "endpoint=/buy", "a")
    ids = dict(zip((plain, other, annotated), stack_ids((plain, other, annotated)).tolist(), strict=True))
    assert rows("stacks", RECORDS, "stack_id", "frames", "window", "partition", "width_s", "samples") == {
        (ids[plain], plain, window, 0, 600.0, 3),
        (ids[other], other, window, 0, 600.0, 2),
        (ids[annotated], annotated, window, 0, 600.0, 4),
        (ids[plain], plain, window, 3, 600.0, 5),
    }


def test_a_batch_of_refused_messages_has_totals_alone() -> None:
    refused = [record(Refused("shop", T0, T0 + 10, 70))]
    assert rows("totals", refused, "samples", "refused_samples") == {(0, 70)}
    for table in ("gcpu", "stacks"):
        assert all(len(column) == 0 for column in columns(table, refused).values())
