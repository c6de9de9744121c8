"""``smidgen bench``: measures this machine, since figures from another one say little."""

from __future__ import annotations

from collections.abc import Callable
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


BENCHMARKS: dict[str, tuple[Measure, int]] = {"aggregate": (_aggregate, 3), "detect": (_detect, 5)}
"""Name → (what measures it, in how many parts)."""


class _Bench(click.Command):
    """The benchmarks of speed; ``accuracy``, which has options of its own, is handed on."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of ``bench accuracy`` where that is asked for."""
        if args[:1] == ["accuracy"]:
            from loadgen.bench.accuracy import accuracy

            return accuracy.make_context(f"{info_name} accuracy", args[1:], parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)


@click.command(cls=_Bench)
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(list(BENCHMARKS)))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a result.")
def bench(names: tuple[str, ...], as_json: bool) -> None:
    """Measure speed on this machine: aggregate, detect, or both.

    aggregate: messages and samples a second, for the stage alone and for a worker process from Kafka to
    the store, on an embedded broker and store. detect: series of 1,500 windows screened a second.

    How accurate the pipeline is measures `smidgen bench accuracy`, which has options of its own.
    """
    results: list[Result] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for name in names or tuple(BENCHMARKS):
            measure, parts = BENCHMARKS[name]
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
            table.add_row(result.name, f"{figure:,.0f}", unit)
    Console().print(table)
