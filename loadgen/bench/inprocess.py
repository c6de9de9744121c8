"""``smidgen bench inprocess``: what the sampler inside a program costs it, beside py-spy at the same rate."""

from __future__ import annotations

import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from agents.sampling.kernels.pyspy import find_py_spy
from loadgen.bench.harness import Result
from loadgen.terminal import progress
from pipeline.commands.tables import print_json
from pipeline.commands.terminal import table_console

MEDIAN_ERROR = 1.2533  # of a median beside a mean, of normal values


@click.command()
@click.option("--seconds", type=click.FloatRange(0.5), default=20.0, show_default=True, help="Of each run.")
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="That are busy.")
@click.option(
    "--rate", "rates", type=click.IntRange(1, 1000), multiple=True, default=(1, 20, 101), show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a result.")
def inprocess(seconds: float, threads: int, rates: tuple[int, ...], as_json: bool) -> None:
    """Measure what sampling costs a busy program: throughput, slow units, and the sampler's own CPU.

    The sampler inside is on and off in turn within one run, and losses are medians over pairs of such phases.
    Of py-spy, which is never off within a run, the CPU time is measured.
    """
    results: list[Result] = []
    with progress("runs", 2 * len(rates)) as advance, tempfile.TemporaryDirectory() as folder:
        for rate_hz in rates:
            results.append(inside_result(rate_hz, _run([str(seconds), str(threads), str(rate_hz)])))
            advance()
            results.append(_py_spy(rate_hz, seconds, threads, Path(folder)))
            advance()
    _show(results, as_json)


def inside_result(rate_hz: int, figures: dict[str, Any]) -> Result:
    """Return the figures of a run of ``loadgen.bench.sampled_program``, in percent and milliseconds."""
    losses = [100 * loss for loss in figures["losses"]]
    error = statistics.stdev(losses) * MEDIAN_ERROR / len(losses) ** 0.5 if len(losses) > 1 else math.nan
    return Result(
        f"in-process, {rate_hz} Hz",
        {
            "% units lost": statistics.median(losses),
            "± (standard error)": error,
            "% p99": 100 * figures["p99"],
            "% p99.9": 100 * figures["p999"],
            **_own(figures["sampler_s"], rate_hz),
        },
    )


def _own(share: float, rate_hz: int) -> dict[str, float]:
    return {"% of a core": 100 * share, "ms CPU/sample": 1000 * share / rate_hz}


def _py_spy(rate_hz: int, seconds: float, threads: int, folder: Path) -> Result:
    """Sample the program with py-spy, whose CPU time is that of both processes without the program's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ["--format", "raw", "--nolineno", "--rate", str(rate_hz), "--output", str(folder / "stacks")]
    figures = _run([str(seconds), str(threads), "0"], [find_py_spy(), "record", *options, "--"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    all_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(f"py-spy, {rate_hz} Hz", _own(max(all_s - figures["cpu_s"], 0.0) / seconds, rate_hz))


def _run(arguments: list[str], under: Sequence[str] = ()) -> dict[str, Any]:
    command = [*under, sys.executable, "-m", "loadgen.bench.sampled_program", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    figures: dict[str, Any] = json.loads(line)
    return figures


def _show(results: list[Result], as_json: bool) -> None:
    if as_json:
        for result in results:
            print_json(asdict(result))
        return
    table = Table("sampler", *results[0].figures)
    for result in results:
        shown = (result.figures.get(column) for column in results[0].figures)
        table.add_row(result.name, *("" if figure is None else f"{figure:,.2f}" for figure in shown))
    table_console().print(table)
