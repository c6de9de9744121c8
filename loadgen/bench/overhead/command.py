"""``smidgen bench overhead``: real programs with the sampler off and on in alternation."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from agents.sampling.kernels import SamplerError, kernel_names, suitable_kernels
from loadgen.bench.overhead.blocks import ORDERS, Cost, Load, Setting, measure_cost
from loadgen.bench.overhead.services import PROGRAMS, NotHere, started
from loadgen.terminal import progress
from pipeline.commands.options import Duration
from pipeline.commands.tables import print_json

RATES_HZ = (1, 11, 101)


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was not measured, and why."""

    what: str
    reason: str


program_option = click.option(
    "--program", "programs", type=click.Choice(tuple(PROGRAMS)), multiple=True, help="Default: all."
)


def kernel_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option of which kernels are measured; ``default`` says which without it."""
    return click.option(
        "--kernel",
        "kernels",
        type=click.Choice(kernel_names()[1:]),
        multiple=True,
        help=f"Of those that suit a program (default: {default}).",
    )


@click.command()
@program_option
@kernel_option("all of them")
@click.option(
    "--hz",
    "rates",
    type=click.IntRange(1, 1000),
    multiple=True,
    default=RATES_HZ,
    show_default=True,
)
@click.option("--duration", type=Duration(), default=5.0, show_default="5s", help="Of a block.")
@click.option(
    "--groups",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Of four blocks each: off, on, on, off, or the other way round, as drawn.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a result.")
def overhead(
    programs: tuple[str, ...],
    kernels: tuple[str, ...],
    rates: tuple[int, ...],
    duration: float,
    groups: int,
    as_json: bool,
) -> None:
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
    load = Load(duration, groups)
    for result in _measure(programs or tuple(PROGRAMS), kernels, rates, load):
        if as_json:
            print_json(asdict(result))
        elif isinstance(result, Skipped):
            click.echo(f"{result.what}: left out: {result.reason}", err=True)
        else:
            click.echo(line_of(result))


def _measure(
    programs: Sequence[str], kernels: Sequence[str], rates: Sequence[int], load: Load
) -> Iterator[Cost | Skipped]:
    for program in programs:
        with tempfile.TemporaryDirectory(prefix="smidgen-overhead-") as folder:
            try:
                yield from _measure_program(program, kernels, rates, load, Path(folder))
            except NotHere as error:
                yield Skipped(program, str(error))


def _measure_program(
    program: str, kernels: Sequence[str], rates: Sequence[int], load: Load, folder: Path
) -> Iterator[Cost | Skipped]:
    with started(program, folder) as service:
        service.ask()  # it runs what it is, and not what starts it
        suitable = suitable_kernels(service.pid)
        for kernel in [name for name in suitable if not kernels or name in kernels]:
            for hz in rates:
                what = f"{program}, {kernel}, {hz} Hz"
                try:
                    with progress(what, load.groups * len(ORDERS[0])) as advance:
                        cost = measure_cost(program, service, Setting(kernel, hz, folder), load, advance)
                except SamplerError as error:
                    yield Skipped(f"{program}, {kernel}", str(error))
                    break
                yield cost


def line_of(cost: Cost) -> str:
    """Return what was measured in one line."""
    ratios = "".join(
        f"  {name} {ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        for name, ratio in cost.ratios.items()
    )
    return (
        f"{cost.program:<7}{cost.kernel:<15}{cost.hz:>4} Hz{ratios}  kernel {cost.sampler_cpu * 100:.1f} %  "
        f"{_error(cost)}"
    )


def _error(cost: Cost) -> str:
    if cost.share is None or cost.share_error is None:
        return "no sample"
    return (
        f"error {(cost.share - cost.truth) * 100:+.2f} ± {cost.share_error * 100:.2f} points of "
        f"{cost.truth * 100:.1f} % in {cost.samples} samples"
    )
