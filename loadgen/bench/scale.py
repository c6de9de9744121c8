"""`smidgen bench scale`: cost of scans of many large services for workers and store.

The store is the embedded one, a process of its own. Counts are drawn in it, one row per subroutine and window
of the finest measured workload. So rollups and reads of them are as in production. But in production rollups
are made from counts by minute, so that a first rollup reads more rows there, by the ratio of the widths.
There are no stacks, senders or changes. Scans are those of the stage detect, in worker processes, each with a
store client of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import click
import numpy as np

from loadgen.bench.statements import ask
from loadgen.bench.usage import peak_mb, require_proc, reset_peak
from loadgen.harness import Advance, Experiment, Result, bench, print_results, results_of_workers
from pipeline.commands.request import option
from pipeline.embedded.stack import EmbeddedStore
from pipeline.messages.scans import decode_scan
from pipeline.model import Progress, Record, Scan
from pipeline.processes.allocation import keep_freed_memory
from pipeline.settings.workloads import known_workloads
from pipeline.stages.detect import DetectStage
from pipeline.stages.gather.streams import one_stream
from pipeline.storage.connect import open_store

END = 1_700_006_400.0  # a midnight: a boundary of every re-run interval
SAMPLES_PER_SUBROUTINE = 4.0
"""Mean samples of a subroutine in the finest window; most have far fewer, a few have thousands."""

COUNTED_S = 60.0
"""Width of counted windows that the stage is given: so narrow that it keeps rollups of all workloads."""

ROWS_IN_INSERT = 4_000_000
ROUNDS = ("first", "again")
"""A scan finds no rollups the first time, and all of them when it is made again."""


@dataclass(frozen=True, slots=True)
class Task:
    """One scan of one service."""

    dsn: str
    service: str
    workload: str


@dataclass(frozen=True, slots=True)
class ScanCost:
    """Cost of a scan in the worker."""

    seconds: float
    processor_s: float
    peak_mb: float
    series: int


def draw_service(dsn: str, service: str, subroutines: int, width_s: float, span_s: float) -> None:
    """Make the store draw a service's counts in windows of a width, over a span that ends at ``END``.

    Shares fall with the rank of a subroutine by Zipf's law. Counts are rounded draws of a normal distribution
    with Poisson's variance; counts of 0 have no row.
    """
    windows = round(span_s / width_s)
    start_ms, width_ms = round((END - span_s) * 1000), round(width_s * 1000)
    per_rank = SAMPLES_PER_SUBROUTINE * subroutines / float((1 / np.arange(1, subroutines + 1)).sum())
    total = round(per_rank * 3)
    columns = "service, window, samples, stream, topic, partition, last_offset"
    moment = f"fromUnixTimestamp64Milli({start_ms} + {width_ms} * toInt64(window_number), 'UTC')"
    constant = "'bench', 'profiles', 0, 0"
    ask(
        dsn,
        f"INSERT INTO totals ({columns}) SELECT '{service}', {moment}, {total}, {constant} "
        f"FROM (SELECT number AS window_number FROM numbers({windows}))",
    )
    in_one = max(1, ROWS_IN_INSERT // subroutines)
    for first in range(0, windows, in_one):
        count = min(in_one, windows - first)
        ask(
            dsn,
            f"INSERT INTO gcpu (kind, subroutine, {columns}) SELECT 'subroutine', "
            f"concat('com.acme.package', toString(rank % 200), '.Class', toString(rank % 2000), '.method', "
            f"toString(rank)), '{service}', {moment}, toUInt64(drawn), {constant} FROM ("
            f"SELECT {first} + number % {count} AS window_number, intDiv(number, {count}) AS rank, "
            f"{per_rank} / (rank + 1) AS mean, least({total}, round(mean + sqrt(mean) * randNormal(0, 1))) "
            f"AS drawn FROM numbers({count * subroutines})) WHERE drawn > 0",
        )


def scan_service(task: Task) -> ScanCost:
    """Run one scan as the stage detect does, in this process."""
    keep_freed_memory()
    workload = known_workloads(())[task.workload]
    reset_peak(os.getpid())
    with closing(open_store(task.dsn)) as store:
        stage = DetectStage(
            store=store,
            clock=lambda: END,
            streams=one_stream("bench"),
            workloads=[workload],
            window_s=COUNTED_S,
            partition_idle_s=300.0,
        )
        # The earliest data are this late so that the watermark passes only one boundary.
        earliest = END - workload.rerun_interval_s
        passed = Progress(task.service, "profiles", 0, END + workload.wait_s, earliest)
        began, busy = time.perf_counter(), time.process_time()
        outgoing = stage.handle([Record("windows", 0, 0, passed)])
        seconds, processor_s = time.perf_counter() - began, time.process_time() - busy
    scan: Scan = decode_scan(outgoing[0].value)
    return ScanCost(seconds, processor_s, peak_mb(os.getpid()), scan.series)


def measure_scale(
    advance: Callable[[], None],
    *,
    services: int,
    subroutines: int,
    workers: Sequence[int],
    workloads: Sequence[str],
) -> list[Result]:
    """Draw services and scan each by each workload: twice by one worker, then by each number of workers.

    Args:
        advance: Called after each drawn service and each scan: ``parts_of`` times.
        services: Number of services.
        subroutines: Number of subroutines of each service.
        workers: Numbers of processes.
        workloads: Names of presets.

    Raises:
        SmidgenError: a process died.
    """
    presets = known_workloads(())
    chosen = [presets[name] for name in workloads]
    width_s = min(chosen_workload.resolution_s for chosen_workload in chosen)
    span_s = max(chosen_workload.span_s + chosen_workload.lead_s for chosen_workload in chosen)
    setup = {"services": float(services), "subroutines": float(subroutines)}
    names = [f"scale{number}" for number in range(services)]
    with EmbeddedStore() as embedded, closing(open_store(embedded.url)) as store:
        store.migrate()
        began = time.perf_counter()
        for name in names:
            draw_service(embedded.url, name, subroutines, width_s, span_s)
            advance()
        results = [Result("scale, drawn", {"s": time.perf_counter() - began, **_stored(embedded.url)}, setup)]
        for workload in chosen:
            for number, which in _rounds(workers):
                tasks = [Task(embedded.url, name, workload.name) for name in names]
                figures = _round(embedded, tasks, number, advance)
                label = f"scale, {workload.name}, {which}"
                results.append(Result(label, figures, {**setup, "workers": float(number)}))
        results.append(Result("scale, with rollups", _stored(embedded.url), setup))
    return results


def parts_of(services: int, workers: Sequence[int], workloads: Sequence[str]) -> int:
    """Return the number of parts of the measurement."""
    return services * (1 + len(workloads) * len(list(_rounds(workers))))


def _rounds(workers: Sequence[int]) -> Iterator[tuple[int, str]]:
    yield 1, ROUNDS[0]
    for number in workers:
        yield number, f"{ROUNDS[1]}, {number} workers" if number > 1 else f"{ROUNDS[1]}, 1 worker"


def _round(
    embedded: EmbeddedStore, tasks: Sequence[Task], workers: int, advance: Callable[[], None]
) -> dict[str, float]:
    """Scan every service once; return the cost of a scan and of the whole round."""
    reset_peak(embedded.pid)
    read, began = _rows_read(embedded.url), time.perf_counter()
    costs = results_of_workers(scan_service, tasks, workers, advance)
    seconds = time.perf_counter() - began
    return {
        "s of the round": seconds,
        "s/scan": float(np.mean([cost.seconds for cost in costs])),
        "CPU s of the worker/scan": float(np.mean([cost.processor_s for cost in costs])),
        "MB of a worker at most": max(cost.peak_mb for cost in costs),
        "MB of the store at most": peak_mb(embedded.pid),
        "rows read/scan": (_rows_read(embedded.url) - read) / len(costs),
        "series/scan": float(np.mean([cost.series for cost in costs])),
    }


def _rows_read(dsn: str) -> int:
    return int(ask(dsn, "SELECT sum(value) FROM system.events WHERE event = 'SelectedRows'"))


def _stored(dsn: str) -> dict[str, float]:
    sql = "SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND table IN ('gcpu', {})"
    rows, size = map(float, ask(dsn, sql.format("'gcpu_rollup'")).split())
    return {"rows": rows, "MB stored": size / 1e6, "bytes/row": size / max(rows, 1.0)}


def _gcpu_workload(_context: click.Context, _option: click.Parameter, names: Sequence[str]) -> Sequence[str]:
    presets = known_workloads(())
    for name in names:
        if name not in presets or presets[name].series != "gcpu" or presets[name].is_fitted:
            raise click.BadParameter(f"{name} is no preset of gCPU with fixed windows")
    return names


@bench(json="one JSON object a result")
def scale(
    services: int = option(100, least=1, most=10_000),
    subroutines: int = option(20_000, least=1, most=1_000_000),
    workers: tuple[int, ...] = option((1, 2), least=1, most=64, help="Processes that scan at a time."),
    workloads: tuple[str, ...] = option(
        ("frontfaas-small",),
        flag="--workload",
        callback=_gcpu_workload,
        help="Preset of the scans.",
    ),
) -> Experiment[Result]:
    """Measure scans of many large services on the embedded store: seconds, memory, rows read, bytes stored.

    Each service has SUBROUTINES subroutines in every window that the workloads look at. A round scans each
    service once: first without rollups, then with them, by each number of workers. The whole of the defaults
    takes hours; --services 2 --subroutines 2000 takes a minute.
    """
    require_proc("scale")

    def rows(advance: Advance) -> list[Result]:
        return measure_scale(
            advance,
            services=services,
            subroutines=subroutines,
            workers=workers,
            workloads=workloads,
        )

    parts = parts_of(services, workers, workloads)
    return Experiment(rows, parts, print_results)
