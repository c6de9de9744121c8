"""``smidgen bench catch-up``: services whose workers were away for hours, until all is worked through."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import click

from loadgen.bench.faults.brokers import BrokerKind
from loadgen.bench.faults.check import Differences
from loadgen.bench.faults.load import Load, Shape, build_load, together
from loadgen.bench.faults.rig import READY_S, Rig, Setup
from loadgen.bench.faults.truth import WINDOW_S
from loadgen.bench.shutdown import ended_in_order
from loadgen.bench.usage import peak_mb, require_proc
from loadgen.harness import Experiment, bench, run_in_workers
from loadgen.terminal import share_progress
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import print_table, text_columns
from pipeline.model.errors import SmidgenError
from pipeline.model.units import HOUR_S
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery

BEFORE_H = 8.0
"""Hours that are worked through before the workers go: as long as a scan looks back, and a little more."""

FIRST_WINDOWS = 2
"""Windows that are worked through first: by then every partition of every service is known."""

STUCK_S = 300.0
LOOK_S = 3.0  # in which the watcher looks more than once
BATCH_SIZE = 1000  # the product's own default

_SKIPPED = re.compile(r"(\d+) old scans skipped")

Advance = Callable[[str, float], None]
"""Takes a text for the present work, and the share of it that is done."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Result of catching up after an absence."""

    broker: BrokerKind
    services: int
    hours: float
    messages: int  # that had piled up
    samples: int  # of all
    level_s: float
    """Seconds from the start of the workers until every stage had processed everything."""
    scans: int
    """Scans made in this time."""
    skipped: int
    memory_mb: Mapping[str, float]
    """Peak memory of each stage's process."""
    events: int  # that an undisturbed run reports
    copies: int
    differences: Differences
    exits: Mapping[str, Sequence[int]]

    @property
    def passed(self) -> bool:
        """Whether counts and events are those of an undisturbed run, and no worker ended by itself."""
        return not self.differences.any and not self.exits

    def to_json(self) -> dict[str, Any]:
        """Return the result as one object."""
        return {**asdict(self), "passed": self.passed}


@dataclass(frozen=True, slots=True)
class CatchUpRequest:
    """Amount of work to catch up with."""

    services: int = option(10, least=1, help="Number of services.")
    hours: float = option(24, least=1, help="Hours for which workers are away.")
    hosts: int = option(4, least=2, help="Hosts of each service.")
    seed: int = seed_option(help="Seed of the load.")
    broker: BrokerKind = option("embedded", help="The embedded broker, or Apache Kafka.")
    processes: int = os.cpu_count() or 1
    """That draw the load."""


@bench(json="one JSON object")
def catch_up(request: CatchUpRequest) -> Experiment[CatchUp]:
    """Stop all workers for hours of event time, start them again, and measure how they catch up.

    Eight hours of every service are worked through, then every stage is stopped while more hours of
    profiles and metrics pile up on the broker; each stage is one process. Printed are the time until every
    stage is done with everything, the most memory that each process took, and how many scans were made and
    left out. Counts and events are compared with those of a backtest of the same samples. The exit code is 1
    if anything differs.
    """

    def rows(_: object) -> Iterator[CatchUp]:
        with ended_in_order(), share_progress("catch-up") as show:
            yield run_catch_up(request, show)

    return Experiment(rows, 0, _show, passed=lambda row: row.passed)


def _show(rows: Iterable[CatchUp]) -> None:
    for row in rows:
        figures = [
            ("time to level", f"{row.level_s:,.0f}", "s"),
            *((f"peak memory of {name}", f"{mb:,.0f}", "MB") for name, mb in row.memory_mb.items()),
            ("scans made", f"{row.scans:,}", ""),
            ("scans left out", f"{row.skipped:,}", ""),
        ]
        print_table(text_columns(("what", "figure", "unit")), figures)
        different = row.differences
        click.echo(
            f"{row.services} services, {row.hours:g} h behind, {row.messages:,} messages, "
            f"{row.samples:,} samples in all; {row.events} events, missing {different.missing}, too many "
            f"{different.unexpected}, altered {different.altered}, wrong counts {different.counts}, "
            f"dead letters {different.refused}"
        )


def run_catch_up(request: CatchUpRequest, advance: Advance) -> CatchUp:
    """Work some hours through, stop every worker, let ``hours`` pile up, and start the workers again.

    Raises:
        ConfigError: this system has no /proc to look at processes in.
        SmidgenError: something did not start, or did not get done.
    """
    require_proc("catch-up")
    hours = request.hours
    windows = round((BEFORE_H + hours) * HOUR_S / WINDOW_S)
    before = round(BEFORE_H * HOUR_S / WINDOW_S)
    shape = Shape(windows=windows, hosts=request.hosts, steps_from=before / windows)
    loads = _build(shape, request, advance)
    load = together(loads)
    batches = load.batches
    advance("starting", 0.0)
    with Rig(Setup(broker=request.broker, aggregates=1, batch_size=BATCH_SIZE), load, seconds=0.0) as rig:
        rig.feeder.allow(FIRST_WINDOWS / len(batches))
        _settle(rig, FIRST_WINDOWS, advance, "the first windows")
        rig.feeder.allow(before / len(batches))
        _settle(rig, before, advance, "the hours before")
        for name in rig.supervisor.workers:
            rig.supervisor.retire(name)
        done = _scans(rig)
        advance("letting messages pile up", 0.5)
        rig.feeder.allow(1.0)
        rig.feeder.finish()
        began = time.monotonic()
        for worker in rig.supervisor.workers.values():
            worker.wanted = True
        rig.wait(rig.supervisor.ready, READY_S, "the workers to get their partitions again")
        advance("catching up", 0.6)
        rig.wait_drained()
        level_s = rig.watcher.view.at - began
        memory = {name: peak_mb(worker.pid) for name, worker in rig.supervisor.workers.items()}
        advance("comparing", 0.95)
        differences, copies = rig.compare()
        return CatchUp(
            request.broker,
            request.services,
            hours,
            sum(map(len, batches[before:])),
            load.samples,
            round(level_s, 1),
            _scans(rig) - done,
            sum(int(number) for number in _SKIPPED.findall(rig.supervisor.log("detect"))),
            memory,
            load.events,
            copies,
            differences,
            rig.supervisor.exits,
        )


def _build(shape: Shape, request: CatchUpRequest, advance: Advance) -> list[Load]:
    seeds = range(request.seed, request.seed + request.services)
    loads: dict[int, Load] = {}
    for number, load in run_in_workers(partial(_draw, shape), seeds, request.processes):
        loads[number] = load
        advance("drawing the load", 0.3 * len(loads) / len(seeds))
    return [loads[number] for number in sorted(loads)]


def _draw(shape: Shape, seed: int) -> Load:
    return build_load(shape, seed, service=f"shop-{seed:03d}")


def _settle(rig: Rig, windows: int, advance: Advance, what: str) -> None:
    """Wait until every stage has processed the given number of windows."""
    advance(f"working {what} through", 0.35)
    rig.wait(lambda: rig.feeder.offered >= windows, STUCK_S, f"{what} to be handed over")
    rig.feeder.pause(STUCK_S)
    sent = sum(map(len, rig.load.batches[:windows]))
    moved, seen = time.monotonic(), rig.watcher.view
    inputs = rig.topics.inputs("aggregate")
    while True:
        time.sleep(LOOK_S)
        view = rig.watcher.view
        if (view.ends, view.committed) != (seen.ends, seen.committed):
            moved, seen = time.monotonic(), view
        elif view.covers(view) and sum(e for (t, _), e in view.ends.items() if t in inputs) >= sent:
            break
        if time.monotonic() - moved > STUCK_S:
            raise SmidgenError(f"catch-up: nothing moved for {STUCK_S:g} s\n{rig.state()}")
    rig.feeder.resume()


def _scans(rig: Rig) -> int:
    with closing(open_store(rig.store.url)) as store:
        return len(store.rows(RowQuery("scans", None, 0.0, rig.load.truths[0].dataset.end * 2)))
