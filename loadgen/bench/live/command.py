"""``smidgen bench live``: steps of one process and false events, simulated and real."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

from loadgen.bench.live.chain import Found, Run, run_programs
from loadgen.bench.live.programs import PROGRAMS
from loadgen.bench.live.simulation import Process
from loadgen.bench.live.trials import Trial, steady_events, try_step
from loadgen.bench.shutdown import ended_in_order
from loadgen.harness import Advance, Experiment, bench, results_of_workers
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import Column, print_table
from pipeline.settings.workloads import load_workloads

_SLOW_AFTER = 2 / 3  # of a run: then programs get slower


@dataclass(frozen=True, slots=True)
class Simulated:
    """Results for simulated processes."""

    trials: Sequence[Trial]
    hours: int
    false: Sequence[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return the results as a JSON object."""
        delays = sorted(trial.delay_s for trial in self.trials if trial.delay_s is not None)
        return {
            "steps": len(self.trials),
            "reported_within_a_minute": len(delays),
            "median_delay_s": median(delays) if delays else None,
            "longest_delay_s": delays[-1] if delays else None,
            "events_besides": sum(trial.others for trial in self.trials),
            "steady_hours": self.hours,
            "false_events": len(self.false),
        }


PROGRAM_COLUMNS: tuple[Column[Mapping[str, Any]], ...] = (
    Column("program", "name"),
    Column("scans", form="d"),
    Column("could not judge", lambda row: ", ".join(f"{code} {n}" for code, n in row["unjudged"].items())),
    Column("samples", form=".0f"),
    Column("slower", lambda row: row["slowed"] if row["slow"] else ""),
    Column("reported after", lambda row: "" if row["delay_s"] is None else f"{row['delay_s']:.0f} s"),
    Column("false events", lambda row: "; ".join(row["false"])),
)


@dataclass(frozen=True, slots=True)
class _LiveRequest:
    steps: int = option(100, least=0, help="Number of simulated steps.")
    hours: int = option(10, least=0, help="Hours without any step.")
    errors: float = option(6.0, least=0, help="Sizes of steps, in standard errors.")
    interval: int = option(2, least=1, most=10, help="Seconds between two messages.")
    wander: float = option(0.0, least=0, most=1, help="Relative wander of each cost, in standard deviations.")
    minutes: float = option(
        0, flag="--programs", least=0, show_default=False, help="Minutes of real programs."
    )
    busy: float = option(0.1, least=0.01, most=1, help="Share of a core that each program keeps busy.")
    seed: int = seed_option()


@bench(json="one JSON object a part")
def live(request: _LiveRequest) -> Experiment[Mapping[str, Any]]:
    """Measure which steps of one process the preset live reports within a minute, and its false events.

    A process is simulated as an agent samples it, 101 times a second, one message every --interval seconds.
    One of its functions rises by --errors standard errors: those of the difference between the 20 s after
    and the 30 s before, by sampling alone. --hours more are without a step. --wander lets every function's
    cost wander by that share of itself, remembered for ten seconds.

    --programs runs ten real programs at once under agents, with an embedded broker and store, for so many
    minutes; every other one gets slower after two thirds.
    """
    simulated, seconds = request.steps + request.hours, round(60 * request.minutes)
    return Experiment(lambda advance: [_measure(request, advance)], simulated + seconds, _show)


def _measure(request: _LiveRequest, advance: Advance) -> Mapping[str, Any]:
    parts: dict[str, Any] = {}
    if request.steps or request.hours:
        parts["simulated"] = _simulate(request, advance).to_json()
    if request.minutes:
        parts["programs"] = [program.to_json() for program in _run_programs(request, advance)]
    return parts


def _show(rows: Iterable[Mapping[str, Any]]) -> None:
    for parts in rows:
        if "simulated" in parts:
            figures = [(name.replace("_", " "), str(value)) for name, value in parts["simulated"].items()]
            print_table((Column("simulated", itemgetter(0)), Column("", itemgetter(1))), figures)
        if "programs" in parts:
            print_table(PROGRAM_COLUMNS, parts["programs"])


def _simulate(request: _LiveRequest, advance: Advance) -> Simulated:
    process = Process(interval_s=request.interval, wander=request.wander)
    tasks = [
        (request.seed * 10_000 + number, number < request.steps)
        for number in range(request.steps + request.hours)
    ]
    results = results_of_workers(partial(_one, process, request.errors), tasks, os.cpu_count() or 1, advance)
    trials = [result for result in results if isinstance(result, Trial)]
    false = [event for result in results if not isinstance(result, Trial) for event in result]
    return Simulated(trials, request.hours, false)


def _one(process: Process, errors: float, task: tuple[int, bool]) -> Trial | list[dict[str, Any]]:
    """Simulate one step, or one hour without any."""
    logging.disable(logging.WARNING)
    (workload,) = load_workloads(["live"])
    seed, stepped = task
    return try_step(workload, process, errors, seed) if stepped else steady_events(workload, process, 1, seed)


def _run_programs(request: _LiveRequest, advance: Advance) -> list[Found]:
    names = list(PROGRAMS)
    seconds = 60 * request.minutes
    run = Run(names, seconds, seconds * _SLOW_AFTER, names[::2], request.busy, f"{request.interval}s")
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="smidgen-live-") as folder:
        return asyncio.run(run_programs(run, Path(folder), advance))
