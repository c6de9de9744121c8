"""The command of the soak, its table and its plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from loadgen.bench.shutdown import ended_in_order
from loadgen.bench.soak import Soak
from loadgen.terminal import new_figure
from pipeline.commands.tables import print_json
from pipeline.model.errors import ConfigError

_UNITS = {"memory": "MB", "handles": "", "lag": "messages"}
_TITLES = {"memory": "resident memory, MB", "lag": "lag, messages", "handles": "open file handles"}


@click.command()
@click.option("--minutes", type=click.FloatRange(min=5), default=60, show_default=True, help="How long.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the load.")
@click.option(
    "--broker",
    type=click.Choice(["embedded", "kafka", "kafka3"]),
    default="embedded",
    show_default=True,
    help="The embedded broker, whose memory grows by all that is sent, or Apache Kafka.",
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="SVG or PNG to draw.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def soak(minutes: float, seed: int, broker: str, plot: Path | None, as_json: bool) -> int:
    """Feed a steady load for long: memory, lag and file handles of every worker must stay flat.

    A curve is flat unless the whole 95 % interval of its Theil-Sen slope lies above what does not matter:
    2 % of its memory an hour, one handle, sixty messages. The first half is left out: event time runs 150
    times as fast, and what is kept for some days of it fills up. Broker and store are shown too. At the end
    counts and events are compared as `smidgen bench faults` does it. The exit code is 1 if anything of a
    worker rises, or anything differs.
    """
    from loadgen.bench.soak import run_soak

    figure = new_figure(10, 11) if plot is not None else None  # fails before the work if it cannot
    console = Console(stderr=True)
    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with ended_in_order(), shown as progress:
        task = progress.add_task("soak", total=1.0)
        found = run_soak(
            minutes,
            broker=broker,  # type: ignore[arg-type]
            seed=seed,
            advance=lambda doing, share: progress.update(task, description=doing, completed=share),
        )
    if plot is not None:
        draw(found, figure, plot)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    return 0 if found.passed else 1


def _print(found: Soak) -> None:
    table = Table("", "process", "first", "last", "most", "slope an hour", "95 %", "")
    for curve in found.curves:
        one = curve.trend
        trend = "flat" if one.flat else "RISES" if found.judged(curve) else "rises"
        table.add_row(
            *(f"{curve.kind} {_UNITS[curve.kind]}", curve.process),
            *(f"{value:.1f}" for value in (one.first, one.last, one.most)),
            *(f"{one.slope:+.2f}", f"{one.low:+.2f} to {one.high:+.2f}", trend),
        )
    console = Console()
    console.print(table)
    different = found.differences
    console.print(
        f"{found.messages:,} messages, {found.samples:,} samples, {found.events} events; wrong counts "
        f"{different.counts}, events missing {different.missing}, too many {different.unexpected}, altered "
        f"{different.altered}"
    )


def draw(found: Soak, figure: Any, path: Path) -> None:
    """Draw memory, lag and handles over time, a line for each process."""
    axes = figure.subplots(3, 1, sharex=True)
    for axis, (kind, title) in zip(axes, _TITLES.items(), strict=True):
        for curve in found.curves:
            if curve.kind == kind:
                axis.plot(curve.seconds / 60, curve.values, label=curve.process, linewidth=1)
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=7, ncol=2, loc="upper right")
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("minutes")
    figure.tight_layout()
    try:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise ConfigError(f"--plot: {path}: {error.strerror or error}") from None
