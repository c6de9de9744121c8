"""``smidgen bench inprocess``: what the sampler inside a program costs it, beside py-spy at the same rate."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from agents.kernels.pyspy import find_py_spy
from loadgen.bench.result import Result
from loadgen.terminal import print_json, progress
from pipeline.terminal import table_console

NONE, INSIDE, PY_SPY = "no sampler", "in-process", "py-spy"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program: who sampled it, and its figures."""

    sampler: str
    rate_hz: int
    figures: dict[str, float]


@click.command()
@click.option("--seconds", type=click.FloatRange(0.5), default=5.0, show_default=True, help="Of each run.")
@click.option(
    "--rounds", type=click.IntRange(1), default=5, show_default=True, help="Of all samplers in turn."
)
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="That are busy.")
@click.option(
    "--rate", "rates", type=click.IntRange(1, 1000), multiple=True, default=(1, 20, 101), show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a result.")
def inprocess(seconds: float, rounds: int, threads: int, rates: tuple[int, ...], as_json: bool) -> None:
    """Measure what sampling costs a busy program: throughput, slow units, and the sampler's own CPU.

    Runs without a sampler, with the one inside and with py-spy follow one another in turn. Figures are
    medians over rounds, of each run beside that without a sampler of the same round.
    """
    kinds = [(NONE, 0), *((sampler, rate) for rate in rates for sampler in (INSIDE, PY_SPY))]
    found: list[list[Run]] = []
    with progress("runs", rounds * len(kinds)) as advance, tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            found.append([])
            for sampler, rate_hz in kinds:
                found[-1].append(_measure(sampler, rate_hz, seconds, threads, Path(folder)))
                advance()
    _show(list(compare(found, seconds)), as_json)


def compare(rounds: list[list[Run]], seconds: float) -> Iterator[Result]:
    """Yield the medians over rounds, each run beside the first of its round, which nothing sampled."""
    for index in range(1, len(rounds[0])):
        pairs = [(runs[0].figures, runs[index].figures) for runs in rounds]
        sampled = rounds[0][index]
        loss, slow, slowest = (
            statistics.median(100 * (with_it[key] / without[key] - 1) for without, with_it in pairs)
            for key in ("units", "p99_s", "p999_s")
        )
        own = statistics.median(with_it["sampler_s"] for _, with_it in pairs)
        yield Result(
            f"{sampled.sampler}, {sampled.rate_hz} Hz",
            {
                "% throughput": loss,
                "% p99": slow,
                "% p99.9": slowest,
                "% of a core": 100 * own / seconds,
                "ms CPU/sample": 1000 * own / (seconds * sampled.rate_hz),
            },
        )


def _measure(sampler: str, rate_hz: int, seconds: float, threads: int, folder: Path) -> Run:
    inside = rate_hz if sampler == INSIDE else 0
    command = [sys.executable, "-m", "loadgen.bench.sampled_program", str(seconds), str(threads), str(inside)]
    if sampler == PY_SPY:
        options = [
            "--format",
            "raw",
            "--nolineno",
            "--rate",
            str(rate_hz),
            "--output",
            str(folder / "stacks"),
        ]
        command = [find_py_spy(), "record", *options, "--", *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    figures: dict[str, Any] = json.loads(line)
    if sampler == PY_SPY:
        all_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        figures["sampler_s"] = max(all_s - figures["cpu_s"], 0.0)
    return Run(sampler, rate_hz, figures)


def _show(results: list[Result], as_json: bool) -> None:
    if as_json:
        for result in results:
            print_json(asdict(result))
        return
    table = Table("sampler", *results[0].figures)
    for result in results:
        table.add_row(result.name, *(f"{figure:,.2f}" for figure in result.figures.values()))
    table_console().print(table)
