"""Cost of knowing the senders of samples: bytes per sample in the store, and rows that a scan reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from loadgen.bench.profiles import INTERVAL_S, START, draw_profiles
from loadgen.harness import BenchResult
from pipeline.embedded.stack import EmbeddedStore
from pipeline.model import Profile, Record
from pipeline.model.clock import system_clock
from pipeline.stages.aggregate import AggregateStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.connect import open_store
from pipeline.storage.inspection import merged_tables
from pipeline.storage.interface import SeriesQuery, Store, StrataQuery

SERVICE = "bench-storage"
SAMPLES = 200
BATCH = 500
WINDOW_S, STACK_WINDOW_S = 60.0, 600.0
CASES = (("not known", 0), ("16 hosts", 16), ("50 hosts", 50))
"""What is known of senders: of 50 hosts the quota keeps 16 apart."""

_SCANNED = ("totals", "gcpu")
_SCANNED_OF_SENDERS = ("strata_totals", "strata_gcpu", "strata")
_OF_SENDERS = (*_SCANNED_OF_SENDERS, "strata_stacks")


def measure_storage(advance: Callable[[], None], hours: float = 4.0) -> list[BenchResult]:
    """Measure the size of one service's profiles in the store, for several kinds of knowledge of senders.

    Args:
        advance: Called after each case.
        hours: Hours of profiles; each of 16 hosts sends one every ten seconds.
    """
    messages = round(16 * hours * 3600 / INTERVAL_S)
    profiles = draw_profiles(messages, service=SERVICE, hosts=16, samples=SAMPLES)
    results = []
    for name, hosts in CASES:
        with EmbeddedStore() as embedded, closing(open_store(embedded.url)) as store:
            store.migrate()
            began = time.perf_counter()
            _count(store, _sent_by(profiles, hosts))
            seconds = time.perf_counter() - began
            results.append(BenchResult(f"storage, senders: {name}", _figures(store, embedded.url, hours)))
        results[-1].figures["samples/s counted"] = messages * SAMPLES / seconds
        results[-1].setup.update(messages=messages, samples=messages * SAMPLES, hosts=hosts)
        advance()
    return results


def _sent_by(profiles: Sequence[Profile], hosts: int) -> Iterator[Profile]:
    """Return the profiles as if sent in turn by hosts in three regions; without hosts no sender is known."""
    for number, profile in enumerate(profiles):
        host = number % hosts if hosts else 0
        labels = {"region": ("east", "north", "west")[host % 3]} if hosts else {}
        yield replace(profile, host=f"host-{host}" if hosts else "", labels=labels)


def _count(store: Store, profiles: Iterator[Profile]) -> None:
    stage = AggregateStage(
        store=store,
        clock=system_clock,
        streams=one_stream("bench"),
        window_s=WINDOW_S,
        stack_window_s=STACK_WINDOW_S,
    )
    batch: list[Record] = []
    for offset, profile in enumerate(profiles):
        batch.append(Record("profiles", 0, offset, profile))
        if len(batch) == BATCH:
            stage.handle(batch)
            batch = []
    if batch:
        stage.handle(batch)


def _figures(store: Store, dsn: str, hours: float) -> dict[str, float]:
    """Return a service's size once parts are merged, and the rows that a scan of all of it reads."""
    tables = (*_SCANNED, *_OF_SENDERS, "stacks")
    merged = merged_tables(dsn, tables)
    stored = {table: size.size_bytes for table, size in merged.items()}
    rows = {table: size.rows for table, size in merged.items()}
    start = START // STACK_WINDOW_S * STACK_WINDOW_S
    span = (SERVICE, start, start + (hours + 1) * 3600)
    began = time.perf_counter()
    matrix = store.series(SeriesQuery("gcpu", *span, WINDOW_S))
    read = time.perf_counter()
    store.counts(StrataQuery(*span, WINDOW_S))
    samples = float(matrix.totals.sum())
    return {
        "bytes/sample": sum(stored.values()) / samples,
        "bytes/sample of senders": sum(stored.get(table, 0) for table in _OF_SENDERS) / samples,
        "rows/scan": float(sum(rows.get(table, 0) for table in _SCANNED)),
        "rows/scan of senders": float(sum(rows.get(table, 0) for table in _SCANNED_OF_SENDERS)),
        "ms/read of series": 1000 * (read - began),
        "ms/read of senders": 1000 * (time.perf_counter() - read),
    }
