"""A late INSERT of a partition's former owner: it doubles nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import numpy as np
import pytest

from pipeline.counting.quota.cardinality import hash_name
from pipeline.model import FloatArray, MetricPoints, Record
from pipeline.model.errors import StoreUnavailable
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.blocks import FRESH_S
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.arrays import ArrayStore
from pipeline.storage.clickhouse import ClickHouseStore
from pipeline.storage.connect import open_store
from pipeline.storage.interface import (
    COUNTED,
    CountTable,
    Extent,
    Extents,
    RowQuery,
    SeriesQuery,
    StackQuery,
    Store,
)
from pipeline.storage.schema import EVER
from tests.contract.rows import LATE_S
from tests.support.builders import build_profile

START = 1_700_000_000.0 // 3600 * 3600


class Frozen:
    """A store before whose n-th insert something happens: its user stood still there.

    With ``asleep_s`` it is the n-th insert of counts, and as if so much time had passed meanwhile.
    """

    def __init__(self, store: Store, at: int, meanwhile: Callable[[], None], asleep_s: float = 0.0) -> None:
        self._store = store
        self._left = at
        self._meanwhile = meanwhile
        self._asleep_s = asleep_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def insert(self, *arguments: Any, **named: Any) -> None:
        if self._asleep_s and "asked_at" not in named:
            self._store.insert(*arguments, **named)
            return
        self._left -= 1
        if self._left == 0:
            self._meanwhile()
            if self._asleep_s:
                named["asked_at"] -= self._asleep_s
        self._store.insert(*arguments, **named)


def records(service: str, first: int, end: int) -> Sequence[Record]:
    stacks = {"m;a": 10}
    return [
        Record("profiles", 0, n, build_profile(stacks, service=service, start=START))
        for n in range(first, end)
    ]


def stage(store: Store, stream: str, clock: Callable[[], float] = lambda: START + 9000) -> AggregateStage:
    return AggregateStage(
        store=store,
        clock=clock,
        streams=one_stream(stream),
        window_s=60.0,
        stack_window_s=300.0,
    )


def assert_counted(store: Store, service: str, samples: int) -> None:
    matrix = store.series(SeriesQuery("gcpu", service, START, START + 3600, 60.0))
    assert (matrix.totals.sum(), matrix.samples.sum(axis=1).tolist()) == (samples, [samples, samples])
    stacks = store.counts(StackQuery(service, (START, START + 1800), (START + 1800, START + 3600)))
    assert stacks.before.sum() == samples
    sender = build_profile({"m;a": 10}, service=service).sender.id
    by_stratum = store.counts(StackQuery(service, (START, START), (START, START + 3600), ([], [sender])))
    assert by_stratum.after.tolist() == [samples]


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("taken", [15, 20, 30])
def test_the_former_owner_comes_too_late(service_name: str, at: int, taken: int) -> None:
    """Frozen before any INSERT of its first or second batch, while another counts less, the same or more."""
    _come_too_late(ArrayStore(), service_name, at, taken)


@pytest.mark.parametrize(("at", "taken"), [(1, 30), (2, 20), (3, 15), (4, 30), (5, 20), (6, 15), (7, 30)])
def test_the_former_owner_comes_too_late_to_clickhouse(
    shared_store: Store, service_name: str, at: int, taken: int
) -> None:
    """Every INSERT, and another that counts less, the same or more: each with some of the others."""
    _come_too_late(shared_store, service_name, at, taken)


def _come_too_late(store: Store, service: str, at: int, taken: int) -> None:
    stage(store, service).handle(records(service, 0, 5))

    def take_over() -> None:
        stage(store, service).handle(records(service, 5, taken))

    frozen = stage(cast(Store, Frozen(store, at, take_over)), service)
    frozen.handle(records(service, 5, 10))
    frozen.handle(records(service, 10, 20))
    stage(store, service).handle(records(service, 5, 30))
    assert_counted(store, service, 300)


@pytest.fixture(scope="module")
def forgetful(store_dsn: str) -> Iterator[ClickHouseStore]:
    """A store whose tables remember the tokens of 2 blocks."""
    with closing(open_store(f"{store_dsn}/takeover_{uuid4().hex}")) as store:
        assert isinstance(store, ClickHouseStore)
        store.migrate()
        for table in COUNTED:
            store._client.command(
                f"ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = 2"
            )
        yield store


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_insert_that_failed_long_ago_is_not_repeated_unseen(
    forgetful: ClickHouseStore, service_name: str, at: int
) -> None:
    """4 blocks go by while it stands still before an INSERT, which then fails: no token is remembered."""

    def others() -> None:
        owner = stage(forgetful, service_name)
        for first in range(0, 40, 10):
            owner.handle(records(service_name, first, first + 10))
        raise StoreUnavailable("the connection was reset")

    frozen = stage(Frozen(forgetful, at, others), service_name)
    with pytest.raises(StoreUnavailable):
        frozen.handle(records(service_name, 0, 10))
    frozen.handle(records(service_name, 0, 10))
    assert_counted(forgetful, service_name, 400)


@pytest.mark.parametrize("at", [1, 3, 5])
def test_an_insert_that_is_sent_when_its_token_is_forgotten_is_refused(
    forgetful: ClickHouseStore, service_name: str, at: int
) -> None:
    """4 blocks go by while it stands still before an INSERT, which it sends then."""

    def others() -> None:
        owner = stage(forgetful, service_name)
        for first in range(0, 40, 10):
            owner.handle(records(service_name, first, first + 10))

    frozen = stage(Frozen(forgetful, at, others, LATE_S + 1), service_name)
    with pytest.raises(StoreUnavailable, match="in_time"):
        frozen.handle(records(service_name, 0, 10))
    frozen.handle(records(service_name, 0, 10))
    assert_counted(forgetful, service_name, 400)


@pytest.mark.parametrize("at", [2, 3])
def test_who_stood_still_between_two_partitions_asks_the_store(
    forgetful: ClickHouseStore, service_name: str, at: int
) -> None:
    """The first partition's block is sent, and 4 blocks of the second one go by before the next is."""
    now = [START + 9000]
    both = [replace(record, partition=p) for p in (0, 1) for record in records(service_name, 0, 10)]

    def others() -> None:
        now[0] += FRESH_S + 1
        owner = stage(forgetful, service_name)
        for first in range(0, 40, 10):
            owner.handle([replace(r, partition=1) for r in records(service_name, first, first + 10)])

    frozen = stage(Frozen(forgetful, at, others), service_name, lambda: now[0])
    frozen.handle(both)
    assert_counted(forgetful, service_name, 500)


def test_a_token_whose_rows_were_deleted_stops_nobody(forgetful: ClickHouseStore, service_name: str) -> None:
    """As after a service was erased, or a part was torn: the table goes on where its rows end."""
    stage(forgetful, service_name).handle(records(service_name, 0, 5))
    stage(forgetful, service_name).handle(records("erased", 5, 10))
    forgetful._client.command(
        "ALTER TABLE stacks DELETE WHERE service = 'erased' SETTINGS mutations_sync = 2"
    )
    stage(forgetful, service_name).handle(records(service_name, 10, 15))
    stage(forgetful, service_name).handle(records(service_name, 5, 20))
    assert_counted(forgetful, service_name, 150)


def test_who_is_overtaken_again_and_again_pauses(shared_store: Store, service_name: str) -> None:
    """Then the caller waits before it goes on, and can be stopped."""
    count = 0

    class Contended(Frozen):
        def extents(self, tables: Collection[CountTable], *_: Any) -> dict[CountTable, Extents]:
            nonlocal count
            count += 1
            return dict.fromkeys(tables, Extents({("profiles", 0): Extent(count % 7)}, time.time()))

    contended = stage(Contended(shared_store, 0, lambda: None), service_name)
    with pytest.raises(StoreUnavailable, match="round after round"):
        contended.handle(records(service_name, 8, 12))


def test_who_stood_still_asks_the_store_before_it_counts(
    forgetful: ClickHouseStore, service_name: str
) -> None:
    """Between two batches, while another owner counts 4 blocks further."""
    now = [START + 9000]
    frozen = stage(forgetful, service_name, lambda: now[0])
    frozen.handle(records(service_name, 0, 10))
    owner = stage(forgetful, service_name)
    for first in range(10, 50, 10):
        owner.handle(records(service_name, first, first + 10))
    now[0] += FRESH_S + 1
    frozen.handle(records(service_name, 10, 20))
    assert_counted(forgetful, service_name, 500)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_new_owner_finds_a_late_block_in_its_position(
    shared_store: Store, service_name: str, at: int
) -> None:
    """The late block comes between the new owner's look at the store and its own first INSERT."""

    def late() -> None:
        stage(shared_store, service_name).handle(records(service_name, 0, 10))

    owner = stage(Frozen(shared_store, at, late), service_name)
    owner.handle(records(service_name, 0, 20))
    owner.handle(records(service_name, 20, 30))
    assert_counted(shared_store, service_name, 300)


def test_metrics_that_another_owner_has_stored_are_stored_once(
    shared_store: Store, service_name: str
) -> None:
    times: FloatArray = START + 60.0 * np.arange(10, dtype=np.float64)
    batch = [
        Record("metrics", 0, n, MetricPoints(service_name, "latency", times[n : n + 1], np.array([float(n)])))
        for n in range(10)
    ]
    first, second = stage(shared_store, service_name), stage(shared_store, service_name)
    turns = ((first, batch[:5]), (second, batch[:5]), (second, batch), (first, batch), (first, batch))
    for owner, part in turns:
        assert owner.handle(part)
    # All in one window, of which the store returns the mean: a point that was stored twice would move it.
    matrix = shared_store.series(SeriesQuery("service", service_name, START, START + 600, 600.0))
    assert (matrix.names, matrix.samples.tolist()) == (("latency",), [[4.5]])


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("taken", "mine"), [(2, 1), (1, 2), (3, 2)])
def test_ids_of_two_owners_are_both_known(service_name: str, at: int, taken: int, mine: int) -> None:
    """Frozen before an INSERT while another goes less or more far from the same offset."""
    _know_both(ArrayStore(), service_name, at, taken, mine)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("taken", "mine"), [(2, 1), (1, 2)])
def test_ids_of_two_owners_are_both_known_to_clickhouse(
    shared_store: Store, service_name: str, at: int, taken: int, mine: int
) -> None:
    _know_both(shared_store, service_name, at, taken, mine)


def _know_both(store: Store, service_name: str, at: int, taken: int, mine: int) -> None:
    sent = [
        replace(record, payload=replace(record.payload, id=f"id {record.offset}"))
        for record in records(service_name, 0, 3)
    ]

    def take_over() -> None:
        stage(store, service_name).handle(sent[:taken])

    frozen = stage(cast(Store, Frozen(store, at, take_over)), service_name)
    frozen.handle(sent[:mine])
    stage(store, service_name).handle(sent)
    again = [replace(record, offset=3 + record.offset) for record in sent]
    stage(store, service_name).handle(again)
    assert_counted(store, service_name, 30)
    hashes = [key for row in store.rows(RowQuery("names", service_name, *EVER)) for key in row["hashes"]]
    assert {hash_name(f"id {number}") for number in range(3)} <= set(hashes)
