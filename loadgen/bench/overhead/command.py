"""``smidgen bench overhead``: real programs with the sampler off and on in alternation."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from agents.sampling.kernels import SamplerError, kernel_names, suitable_kernels
from loadgen.bench.overhead.blocks import ORDERS, Cost, Load, Setting, measure_cost
from loadgen.bench.overhead.services import PROGRAMS, NotHere, started
from loadgen.harness import Experiment, Ratio, bench
from loadgen.terminal import progress
from pipeline.commands.request import Duration, option

RATES_HZ = (1, 11, 101)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A measurement that was skipped, and the reason."""

    what: str
    reason: str


def program_option() -> Any:
    """Return the field that selects the programs to measure."""
    return option(flag="--program", choices=PROGRAMS, help="Program to sample (default: all).")


def kernel_option(default: str) -> Any:
    """Return the field that selects the kernels to measure; ``default`` describes the choice without it."""
    about = f"Kernel, of those that suit a program (default: {default})."
    return option(flag="--kernel", choices=kernel_names()[1:], help=about)


@dataclass(frozen=True, slots=True)
class _OverheadRequest:
    programs: tuple[str, ...] = program_option()
    kernels: tuple[str, ...] = kernel_option("all of them")
    rates: tuple[int, ...] = option(RATES_HZ, flag="--hz", least=1, most=1000)
    duration: float = option(5.0, kind=Duration(), show_default="5s", help="Duration of a block.")
    groups: int = option(
        10,
        least=1,
        most=1000,
        help="Groups of four blocks: off, on, on, off, or the reverse, as drawn.",
    )


@bench(json="one JSON object a result")
def overhead(request: _OverheadRequest) -> Experiment[Cost | Skipped]:
    """Measure what sampling costs real programs, and how right its shares are.

    A Python web service and programs in C++, Go and Java are built in a temporary folder, and each is asked
    one request after the other, with its kernels off and on in alternation. Throughput and latencies are
    on ÷ off, with their 95 % interval over the groups: 0.99 of the throughput is a cost of 1 %. "cpu" is
    the CPU time that the program takes for a request, on ÷ off: other work on the machine changes it far
    less, but it leaves out the time for which a kernel pauses the program. "kernel" is the CPU that the
    kernel's own processes take, of one core. "error" is the share of the first of two functions in
    samples, less its share of the CPU time that the program measured itself, beside the standard error
    that so many samples leave. What is not installed is left out with a line.
    """
    return Experiment(lambda _: _measure(request), 0, show_lines(line_of), streamed=True)


def show_lines(line_of: Callable[[Any], str]) -> Callable[[Iterable[Any]], None]:
    """Return a function that prints a line for each result, and skipped measurements on standard error."""

    def show(rows: Iterable[Any]) -> None:
        for row in rows:
            if isinstance(row, Skipped):
                click.echo(f"{row.what}: left out: {row.reason}", err=True)
            else:
                click.echo(line_of(row))

    return show


def _measure(request: _OverheadRequest) -> Iterator[Cost | Skipped]:
    for program in request.programs or tuple(PROGRAMS):
        with tempfile.TemporaryDirectory(prefix="smidgen-overhead-") as folder:
            try:
                yield from _measure_program(program, request, Path(folder))
            except NotHere as error:
                yield Skipped(program, str(error))


def _measure_program(program: str, request: _OverheadRequest, folder: Path) -> Iterator[Cost | Skipped]:
    load = Load(request.duration, request.groups)
    with started(program, folder) as service:
        service.ask()  # it runs what it is, and not what starts it
        suitable = suitable_kernels(service.pid)
        for kernel in [name for name in suitable if not request.kernels or name in request.kernels]:
            for hz in request.rates:
                what = f"{program}, {kernel}, {hz} Hz"
                try:
                    with progress(what, load.groups * len(ORDERS[0])) as advance:
                        cost = measure_cost(program, service, Setting(kernel, hz, folder), load, advance)
                except SamplerError as error:
                    yield Skipped(f"{program}, {kernel}", str(error))
                    break
                yield cost


def ratio_cells(ratios: Mapping[str, Ratio]) -> str:
    """Return ratios with their intervals, such as ``  cpu 1.010 (1.000 to 1.020)``."""
    return "".join(
        f"  {name} {ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})" for name, ratio in ratios.items()
    )


def line_of(cost: Cost) -> str:
    """Return the measurements in one line."""
    return (
        f"{cost.program:<7}{cost.kernel:<15}{cost.hz:>4} Hz{ratio_cells(cost.ratios)}  "
        f"kernel {cost.sampler_cpu * 100:.1f} %  {_error(cost)}"
    )


def _error(cost: Cost) -> str:
    if cost.share is None or cost.share_error is None:
        return "no sample"
    return (
        f"error {(cost.share - cost.truth) * 100:+.2f} ± {cost.share_error * 100:.2f} points of "
        f"{cost.truth * 100:.1f} % in {cost.samples} samples"
    )
