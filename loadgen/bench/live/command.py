"""``smidgen bench live``: steps of one process and false events, simulated and real."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from loadgen.bench.harness import run_in_workers
from loadgen.bench.live.chain import Found, Run, run_programs
from loadgen.bench.live.programs import PROGRAMS
from loadgen.bench.live.simulation import Process
from loadgen.bench.live.trials import Trial, steady_events, try_step
from loadgen.bench.shutdown import ended_in_order
from loadgen.terminal import progress
from pipeline.commands.tables import print_json
from pipeline.settings.workloads import load_workloads

_SLOW_AFTER = 2 / 3  # of a run: then programs get slower


@dataclass(frozen=True, slots=True)
class Simulated:
    """What became of simulated processes."""

    trials: Sequence[Trial]
    hours: int
    false: Sequence[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
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


@click.command()
@click.option("--steps", type=click.IntRange(min=0), default=100, show_default=True, help="Simulated steps.")
@click.option("--hours", type=click.IntRange(min=0), default=10, show_default=True, help="Without any step.")
@click.option("--errors", type=click.FloatRange(min=0), default=6.0, show_default=True, help="Size of steps.")
@click.option("--interval", type=click.IntRange(1, 10), default=2, show_default=True, help="Seconds.")
@click.option("--wander", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="Of costs.")
@click.option(
    "--programs", "minutes", type=click.FloatRange(min=0), default=0, help="Minutes of real programs."
)
@click.option(
    "--busy", type=click.FloatRange(0.01, 1), default=0.1, show_default=True, help="Of a core, each."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a part.")
def live(
    steps: int,
    hours: int,
    errors: float,
    interval: int,
    wander: float,
    minutes: float,
    busy: float,
    seed: int,
    as_json: bool,
) -> None:
    """Measure which steps of one process the preset live reports within a minute, and its false events.

    A process is simulated as an agent samples it, 101 times a second, one message every --interval seconds.
    One of its functions rises by --errors standard errors: those of the difference between the 20 s after
    and the 30 s before, by sampling alone. --hours more are without a step. --wander lets every function's
    cost wander by that share of itself, remembered for ten seconds.

    --programs runs ten real programs at once under agents, with an embedded broker and store, for so many
    minutes; every other one gets slower after two thirds.
    """
    found: dict[str, Any] = {}
    if steps or hours:
        process = Process(interval_s=interval, wander=wander)
        found["simulated"] = _simulate(process, steps, hours, errors, seed).to_json()
    if minutes:
        found["programs"] = [one.to_json() for one in _run_programs(minutes, busy, interval)]
    if as_json:
        print_json(found)
        return
    console = Console()
    if "simulated" in found:
        table = Table("simulated", "")
        for name, value in found["simulated"].items():
            table.add_row(name.replace("_", " "), str(value))
        console.print(table)
    if "programs" in found:
        console.print(_program_table(found["programs"]))


def _simulate(process: Process, steps: int, hours: int, errors: float, seed: int) -> Simulated:
    trials: list[Trial] = []
    false: list[dict[str, Any]] = []
    tasks = [(seed * 10_000 + number, number < steps) for number in range(steps + hours)]
    with progress("simulated", len(tasks)) as advance:
        for _, found in run_in_workers(partial(_one, process, errors), tasks, os.cpu_count() or 1):
            if isinstance(found, Trial):
                trials.append(found)
            else:
                false += found
            advance()
    return Simulated(trials, hours, false)


def _one(process: Process, errors: float, task: tuple[int, bool]) -> Trial | list[dict[str, Any]]:
    """Simulate one step, or one hour without any."""
    logging.disable(logging.WARNING)
    (workload,) = load_workloads(["live"])
    seed, stepped = task
    return try_step(workload, process, errors, seed) if stepped else steady_events(workload, process, 1, seed)


def _run_programs(minutes: float, busy: float, interval: int) -> list[Found]:
    names = list(PROGRAMS)
    seconds = 60 * minutes
    run = Run(names, seconds, seconds * _SLOW_AFTER, names[::2], busy, f"{interval}s")
    with (
        ended_in_order(),
        tempfile.TemporaryDirectory(prefix="smidgen-live-") as folder,
        progress("programs", round(seconds)) as advance,
    ):
        return asyncio.run(run_programs(run, Path(folder), advance))


def _program_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(
        "program", "scans", "could not judge", "samples", "slower", "reported after", "false events"
    )
    for row in rows:
        unjudged = ", ".join(f"{code} {count}" for code, count in row["unjudged"].items())
        slower = row["slowed"] if row["slow"] else ""
        delay = "" if row["delay_s"] is None else f"{row['delay_s']:.0f} s"
        figures = (str(row["scans"]), unjudged, f"{row['samples']:.0f}", slower, delay)
        table.add_row(row["name"], *figures, "; ".join(row["false"]))
    return table
