"""``smidgen bench inprocess``: what the sampler inside a program costs it, beside py-spy at the same rate."""

from __future__ import annotations

import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agents.sampling.kernels.pyspy import find_py_spy
from loadgen.harness import Experiment, Result, bench, figure_columns, measured, terminal_table
from pipeline.commands.request import option

MEDIAN_ERROR = 1.2533  # of a median to a mean, for normal values


UNITS = ("% units lost", "± (standard error)", "% p99", "% p99.9", "% of a core", "ms CPU/sample")


@bench(json="one JSON object a result")
def inprocess(
    seconds: float = option(20.0, least=0.5, help="Seconds of each run."),
    threads: int = option(1, least=1, most=64, help="Busy threads."),
    rates: tuple[int, ...] = option((1, 20, 101), flag="--rate", least=1, most=1000),
) -> Experiment[Result]:
    """Measure what sampling costs a busy program: throughput, slow units, and the sampler's own CPU.

    The sampler inside is on and off in turn within one run, and losses are medians over pairs of such phases.
    Of py-spy, which is never off within a run, the CPU time is measured.
    """

    def rows(rate_hz: int) -> Iterator[Result]:
        figures = _run([str(seconds), str(threads), str(rate_hz)])
        yield inside_result(rate_hz, figures)
        with tempfile.TemporaryDirectory() as folder:
            yield _py_spy(rate_hz, seconds, threads, Path(folder))

    return Experiment(*measured(rates, rows), terminal_table(figure_columns("sampler", UNITS, ",.2f")))


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
    """Sample the program with py-spy; its CPU time is that of both processes less the program's own."""
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
