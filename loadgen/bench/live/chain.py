"""Real programs under the real chain: agents, embedded broker and store, workers, with the workload live."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.bench.live import programs
from pipeline.messages.events import DETECTED
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model.clock import from_iso, system_clock
from pipeline.model.errors import SmidgenError
from pipeline.processes import Group, Process, smidgen_command, tail_of
from pipeline.settings.topics import load_topics
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery, SeriesQuery, Store

WORKLOAD = "live"

_START_S = 90.0
_SETTLE_S = 300.0
"""How long the last scans may take after the programs have ended, on a busy machine."""

_ROOTCAUSE_S = 15.0  # from a scan to its events, likewise
_LAST_S = 15.0  # of a program's last scan before the program's end
_TICK_S = 0.5
_EARLY_S = 20.0  # a slowdown may be dated this long before it began


@dataclass(frozen=True, slots=True)
class ProgramsRun:
    """Settings of a run of programs."""

    names: Sequence[str]
    seconds: float
    slow_after_s: float
    slow: Sequence[str]  # names of the programs that get slower
    busy: float  # share of a core that each program keeps busy
    interval: str  # interval of the agents; empty for their default


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Result for one program."""

    name: str
    scans: int
    unjudged: dict[str, int]  # scans by code
    samples: float
    slow: bool
    slowed: str  # the function that gets slower, if one does
    delay_s: float | None  # from the slower release to the end of the scan that reported its function
    delta: float | None  # change of gCPU in that event
    false: list[str]  # other events: metric, levels and time

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


async def run_programs(run: ProgramsRun, folder: Path, advance: Callable[[], None]) -> list[ProgramResult]:
    """Run programs in parallel and return the reports on each; ``advance`` is called once a second.

    Raises:
        SmidgenError: a process failed.
    """
    group = Group(folder)
    try:
        addresses = await _start_pipeline(group)
        began = system_clock()
        for name in run.names:
            await group.start(name, _agent(run, name, addresses["broker"]))
        while system_clock() < began + run.seconds:
            await asyncio.sleep(1.0)
            advance()
        await asyncio.to_thread(_wait_scanned, run, addresses["store"], began + run.seconds)
        return await asyncio.to_thread(_found, run, addresses["store"], began)
    finally:
        await group.stop_all()


async def _start_pipeline(group: Group) -> dict[str, str]:
    embedded = await group.start("embedded", smidgen_command("embedded"))
    addresses: dict[str, str] = json.loads(await _line(embedded, "{"))
    broker, store = ("--broker", addresses["broker"]), ("--store", addresses["store"])
    await group.run("topics", smidgen_command("topics", "apply", *broker))
    await group.run("migrate", smidgen_command("store", "migrate", *store))
    windows = ("--workloads", WORKLOAD, "--window", "1s", "--stack-window", "5s", "--partition-idle", "10s")
    where = (*broker, *store, "--no-idempotent-producer", "--batch-wait", "500ms")
    worker = await group.start("worker", smidgen_command("worker", *load_topics().stages, *where, *windows))
    await _line(worker, "ready: ")
    return addresses


def _agent(run: ProgramsRun, name: str, broker: str) -> list[str]:
    program = [
        sys.executable,
        programs.__file__,
        name,
        "--seconds",
        str(run.seconds),
        "--busy",
        str(run.busy),
    ]
    if name in run.slow:
        program += ["--slow-after", str(run.slow_after_s)]
    interval = ("--interval", run.interval) if run.interval else ()
    where = ("--service", name, "--broker", broker, "--no-idempotent-producer")
    return smidgen_command("agent", "run", *where, *interval, "--", *program)


def _wait_scanned(run: ProgramsRun, dsn: str, end: float) -> None:
    """Wait until every program is scanned up to its end, less a few intervals."""
    with closing(open_store(dsn)) as store:
        while system_clock() < end + _SETTLE_S:
            scanned = {row["service"] for row in store.rows(RowQuery("scans", None, end - _LAST_S))}
            if scanned >= set(run.names):
                break
            time.sleep(1.0)
    time.sleep(_ROOTCAUSE_S)


def _found(run: ProgramsRun, dsn: str, began: float) -> list[ProgramResult]:
    with closing(open_store(dsn)) as store:
        return [_program_found(run, store, name, began) for name in run.names]


def _program_found(run: ProgramsRun, store: Store, name: str, began: float) -> ProgramResult:
    every = (name, EARLIEST_S, LATEST_S)
    slow, slow_at = name in run.slow, began + run.slow_after_s
    function = programs.slowed(name)
    false, hits = [], []
    for row in store.rows(RowQuery("regressions", *every)):
        event = json.loads(row["event"])
        data = event["data"]
        named = {data["metric"], *(member["metric"] for member in data["group"])}
        if slow and row["time"] >= slow_at - _EARLY_S and any(function in metric for metric in named):
            hits.append((from_iso(data["detected_time"]) - slow_at, data["delta"]))
        elif event["type"] == DETECTED:
            levels = f"{data['before']:.3f} → {data['after']:.3f}"
            false.append(f"{data['metric']} {levels} at {row['time'] - began:.0f} s")
    unjudged = Counter(str(row["code"]) for row in store.rows(RowQuery("unjudged", *every)))
    matrix = store.series(SeriesQuery("gcpu", name, began, began + run.seconds, run.seconds, []))
    delay_s, delta = min(hits, default=(None, None))
    scans = len(store.rows(RowQuery("scans", *every)))
    return ProgramResult(
        name, scans, dict(unjudged), float(matrix.totals.sum()), slow, function, delay_s, delta, false
    )


async def _line(process: Process, start: str) -> str:
    """Wait for a line in a process's log and return it."""
    deadline = system_clock() + _START_S
    while system_clock() < deadline:
        for line in tail_of(process.log, lines=1000).splitlines():
            if start in line:
                return line[line.index(start) :]
        if process.returncode is not None:
            raise process.failure()
        await asyncio.sleep(_TICK_S)
    raise SmidgenError(f"{process.name} does not start; see {process.log}")
