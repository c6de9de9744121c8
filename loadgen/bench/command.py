"""``smidgen bench``: measures this machine, since figures from another one say little."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import orjson
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from loadgen.bench.result import Result

Measure = Callable[[Callable[[], None]], list[Result]]


def _aggregate(advance: Callable[[], None]) -> list[Result]:
    from loadgen.bench.aggregate import measure_aggregate

    return measure_aggregate(advance)


def _detect(advance: Callable[[], None]) -> list[Result]:
    from loadgen.bench.detect import measure_detect

    return measure_detect(advance)


def _scan(advance: Callable[[], None], *, series: int) -> list[Result]:
    from loadgen.bench.scan import measure_scan

    return measure_scan(advance, series=series, processes=os.cpu_count() or 1)


def _peers(advance: Callable[[], None]) -> list[Result]:
    from loadgen.bench.peers import measure_peers

    return measure_peers(advance)


def _benchmarks(series: int) -> dict[str, tuple[Measure, int]]:
    """Return name → (what measures it, in how many parts)."""
    from loadgen.bench.scan import services_of

    return {
        "aggregate": (_aggregate, 3),
        "detect": (_detect, 10),
        "scan": (partial(_scan, series=series), services_of(series)),
        "peers": (_peers, 5),
    }


NAMES = ("aggregate", "detect", "scan", "peers")

OF_THE_PRODUCT = ("aggregate", "detect", "scan")
"""What is measured unless names are given: not the peers, which take minutes."""


class _Bench(click.Command):
    """The benchmarks of speed; those that have options of their own are handed on."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the one that is asked for."""
        if args[:1] == ["accuracy"]:
            from loadgen.evaluation.suite.command import accuracy

            return accuracy.make_context(f"{info_name} accuracy", args[1:], parent=parent, **extra)
        if args[:1] == ["grouping"]:
            from loadgen.evaluation.grouping.command import grouping

            return grouping.make_context(f"{info_name} grouping", args[1:], parent=parent, **extra)
        if args[:1] == ["injected"]:
            from loadgen.evaluation.injected import injected

            return injected.make_context(f"{info_name} injected", args[1:], parent=parent, **extra)
        if args[:1] == ["faults"]:
            from loadgen.bench.faults.command import faults

            return faults.make_context(f"{info_name} faults", args[1:], parent=parent, **extra)
        if args[:1] == ["soak"]:
            from loadgen.bench.soak_report import soak

            return soak.make_context(f"{info_name} soak", args[1:], parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)


@click.command(cls=_Bench)
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(NAMES))
@click.option(
    "--series",
    type=click.IntRange(min=1),
    default=80_000,
    show_default=True,
    help="Of the fleet in scan; FBDetect's largest has 800,000.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a result.")
def bench(names: tuple[str, ...], series: int, as_json: bool) -> None:
    """Measure speed on this machine: aggregate, detect, scan, or, when named, peers.

    aggregate: messages and samples a second, for the stage alone and for a worker process from Kafka to
    the store, on an embedded broker and store. detect: series of 500 and 1,500 windows a second, by the
    screen alone, by the whole detector, and by a naive CUSUM of numpy. scan: a whole fleet, by detector and
    filters, on all cores. peers: `smidgen detect` beside other detectors that are installed, accuracy and
    speed.

    How accurate the pipeline is measures `smidgen bench accuracy`, and how well it groups regressions by
    cause `smidgen bench grouping`; from what size on steps in real series are found `smidgen bench injected`.
    These have options of their own.
    """
    benchmarks = _benchmarks(series)
    results: list[Result] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for name in names or OF_THE_PRODUCT:
            measure, parts = benchmarks[name]
            task = progress.add_task(name, total=parts)
            results += measure(lambda task=task: progress.advance(task))  # type: ignore[misc]
    if as_json:
        for result in results:
            content = {"name": result.name, "figures": result.figures, "setup": result.setup}
            click.echo(orjson.dumps(content).decode())
        return
    table = Table("what", "figure", "unit")
    for result in results:
        for unit, figure in result.figures.items():
            table.add_row(result.name, f"{figure:,.{1 if figure < 100 else 0}f}", unit)
    Console().print(table)
