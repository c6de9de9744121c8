"""Small benchmarks of scale on a real store: they measure what they report."""

from __future__ import annotations

from contextlib import closing

from loadgen.bench.clickhouse_alone import measure_alone
from loadgen.bench.profiles import draw_profiles
from loadgen.bench.scale import measure_scale, parts_of
from pipeline.embedded.stack import EmbeddedStore
from pipeline.storage.connect import open_store

SUBROUTINES = 40
WINDOWS = (16 + 9) * 24  # of adserving-long: hours


def test_scans_read_what_was_drawn_and_rollups_hold_the_same() -> None:
    parts: list[None] = []
    results = measure_scale(
        lambda: parts.append(None),
        services=1,
        subroutines=SUBROUTINES,
        workers=(1,),
        workloads=("adserving-long",),
    )
    assert len(parts) == parts_of(1, (1,), ("adserving-long",)) == 3
    figures = {result.name: result.figures for result in results}
    drawn, stored = figures["scale, drawn"]["rows"], figures["scale, with rollups"]["rows"]
    assert SUBROUTINES * WINDOWS / 2 < drawn <= SUBROUTINES * WINDOWS
    assert stored == 2 * drawn + WINDOWS  # of each window the last row says that all are there
    for which in ("first", "again, 1 worker"):
        assert figures[f"scale, adserving-long, {which}"]["series/scan"] == SUBROUTINES


def test_clickhouse_alone_counts_every_sample() -> None:
    with EmbeddedStore() as embedded, closing(open_store(embedded.url)):
        figures = measure_alone(embedded.url, embedded.pid, draw_profiles(3, service="s", samples=50))
    assert figures["samples/s"] > 0
