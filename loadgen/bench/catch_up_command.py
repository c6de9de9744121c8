"""The command of the catch-up, and its table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from loadgen.bench.shutdown import ended_in_order
from pipeline.commands.tables import print_json

if TYPE_CHECKING:
    from loadgen.bench.catch_up import CatchUp


@click.command()
@click.option("--services", type=click.IntRange(min=1), default=10, show_default=True, help="How many.")
@click.option(
    "--hours", type=click.FloatRange(min=1), default=24, show_default=True, help="How long workers are away."
)
@click.option("--hosts", type=click.IntRange(min=2), default=4, show_default=True, help="Of each service.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the load.")
@click.option(
    "--broker",
    type=click.Choice(["embedded", "kafka", "kafka3"]),
    default="embedded",
    show_default=True,
    help="The embedded broker, or Apache Kafka.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def catch_up(services: int, hours: float, hosts: int, seed: int, broker: str, as_json: bool) -> int:
    """Stop all workers for hours of event time, start them again, and measure how they catch up.

    Eight hours of every service are worked through, then every stage is stopped while more hours of
    profiles and metrics pile up on the broker; each stage is one process. Printed are the time until every
    stage is done with everything, the most memory that each process took, and how many scans were made and
    left out. Counts and events are compared with those of a backtest of the same samples. The exit code is 1
    if anything differs.
    """
    from loadgen.bench.catch_up import Request, run_catch_up

    console = Console(stderr=True)
    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with ended_in_order(), shown as progress:
        task = progress.add_task("catch-up", total=1.0)
        request = Request(
            services,
            hours,
            hosts,
            broker=broker,  # type: ignore[arg-type]
            seed=seed,
            processes=os.cpu_count() or 1,
        )
        found = run_catch_up(
            request, lambda doing, share: progress.update(task, description=doing, completed=share)
        )
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    return 0 if found.passed else 1


def _print(found: CatchUp) -> None:
    table = Table("what", "figure", "unit")
    table.add_row("time to level", f"{found.level_s:,.0f}", "s")
    for name, memory in found.memory_mb.items():
        table.add_row(f"peak memory of {name}", f"{memory:,.0f}", "MB")
    table.add_row("scans made", f"{found.scans:,}", "")
    table.add_row("scans left out", f"{found.skipped:,}", "")
    console = Console()
    console.print(table)
    different = found.differences
    console.print(
        f"{found.services} services, {found.hours:g} h behind, {found.messages:,} messages, "
        f"{found.samples:,} samples in all; {found.events} events, missing {different.missing}, too many "
        f"{different.unexpected}, altered {different.altered}, wrong counts {different.counts}, dead letters "
        f"{different.refused}"
    )
