"""``smidgen bench soak``: the command of the soak, its table and its plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from loadgen.bench.faults.brokers import BrokerKind
from loadgen.bench.shutdown import ended_in_order
from loadgen.bench.soak import Curve, Soak, run_soak
from loadgen.harness import Experiment, bench
from loadgen.terminal import new_figure, share_progress
from pipeline.commands.request import FILE, option, seed_option
from pipeline.commands.tables import Column, print_table
from pipeline.model.errors import ConfigError

_UNITS = {"memory": "MB", "handles": "", "lag": "messages"}
COLUMNS: tuple[Column[Mapping[str, object]], ...] = (
    Column("", itemgetter("")),
    Column("process"),
    Column("first", form=".1f"),
    Column("last", form=".1f"),
    Column("most", form=".1f"),
    Column("slope an hour", "slope", "+.2f"),
    Column("95 %", lambda row: f"{row['low']:+.2f} to {row['high']:+.2f}"),
    Column("", "trend"),
)

_TITLES = {"memory": "resident memory, MB", "lag": "lag, messages", "handles": "open file handles"}


@dataclass(frozen=True, slots=True)
class _SoakRequest:
    minutes: float = option(60, least=5, help="Minutes of load.")
    seed: int = seed_option(help="Seed of the load.")
    broker: BrokerKind = option(
        "embedded",
        help="The embedded broker, whose memory grows by all that is sent, or Apache Kafka.",
    )
    plot: Path | None = option(kind=FILE, help="SVG or PNG of the curves to draw.")


@bench(json="one JSON object")
def soak(request: _SoakRequest) -> Experiment[Soak]:
    """Feed a steady load for long: memory, lag and file handles of every worker must stay flat.

    A curve is flat unless the whole 95 % interval of its Theil-Sen slope lies above what does not matter:
    2 % of its memory an hour, one handle, sixty messages. The first half is left out: event time runs 150
    times as fast, and what is kept for some days of it fills up. Broker and store are shown too. At the end
    counts and events are compared as `smidgen bench faults` does it. The exit code is 1 if anything of a
    worker rises, or anything differs.
    """
    return Experiment(lambda _: [_measure(request)], 0, _show, passed=lambda row: row.passed)


def _measure(request: _SoakRequest) -> Soak:
    figure = new_figure(10, 11) if request.plot is not None else None  # fails before the work if it cannot
    with ended_in_order(), share_progress("soak") as show:
        result = run_soak(request.minutes, broker=request.broker, seed=request.seed, advance=show)
    if request.plot is not None:
        draw(result, figure, request.plot)
    return result


def _show(rows: Iterable[Soak]) -> None:
    for row in rows:
        print_table(COLUMNS, [_cells(row, curve) for curve in row.curves])
        different = row.differences
        click.echo(
            f"{row.messages:,} messages, {row.samples:,} samples, {row.events} events; wrong counts "
            f"{different.counts}, events missing {different.missing}, too many {different.unexpected}, "
            f"altered {different.altered}"
        )


def _cells(row: Soak, curve: Curve) -> Mapping[str, object]:
    """Return a curve's cells, one per column."""
    trend = asdict(curve.trend)
    steadiness = "flat" if curve.trend.flat else "RISES" if row.judged(curve) else "rises"
    return {**trend, "": f"{curve.kind} {_UNITS[curve.kind]}", "process": curve.process, "trend": steadiness}


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
