"""``smidgen bench catch-up``: how workers that were away catch up."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

import click

from loadgen.bench.faults.brokers import BrokerKind
from loadgen.bench.harness import Experiment, bench
from loadgen.bench.shutdown import ended_in_order
from loadgen.terminal import share_progress
from pipeline.commands.request import option, seed_option
from pipeline.commands.tables import Column, print_table

if TYPE_CHECKING:
    from loadgen.bench.catch_up import CatchUp


@dataclass(frozen=True, slots=True)
class _CatchUpRequest:
    services: int = option(10, least=1, help="How many.")
    hours: float = option(24, least=1, help="How long workers are away.")
    hosts: int = option(4, least=2, help="Of each service.")
    seed: int = seed_option(help="Seed of the load.")
    broker: BrokerKind = option("embedded", help="The embedded broker, or Apache Kafka.")


@bench(_CatchUpRequest, json="one JSON object")
def catch_up(request: _CatchUpRequest) -> Experiment[CatchUp]:
    """Stop all workers for hours of event time, start them again, and measure how they catch up.

    Eight hours of every service are worked through, then every stage is stopped while more hours of
    profiles and metrics pile up on the broker; each stage is one process. Printed are the time until every
    stage is done with everything, the most memory that each process took, and how many scans were made and
    left out. Counts and events are compared with those of a backtest of the same samples. The exit code is 1
    if anything differs.
    """
    return Experiment(lambda _: [_measure(request)], 0, _show, passed=lambda row: row.passed)


def _measure(request: _CatchUpRequest) -> CatchUp:
    from loadgen.bench.catch_up import Request, run_catch_up

    with ended_in_order(), share_progress("catch-up") as show:
        return run_catch_up(
            Request(
                request.services,
                request.hours,
                request.hosts,
                broker=request.broker,
                seed=request.seed,
                processes=os.cpu_count() or 1,
            ),
            show,
        )


def _show(rows: Iterable[CatchUp]) -> None:
    for row in rows:
        figures = [
            ("time to level", f"{row.level_s:,.0f}", "s"),
            *((f"peak memory of {name}", f"{mb:,.0f}", "MB") for name, mb in row.memory_mb.items()),
            ("scans made", f"{row.scans:,}", ""),
            ("scans left out", f"{row.skipped:,}", ""),
        ]
        names = ("what", "figure", "unit")
        print_table([Column(name, itemgetter(place)) for place, name in enumerate(names)], figures)
        different = row.differences
        click.echo(
            f"{row.services} services, {row.hours:g} h behind, {row.messages:,} messages, "
            f"{row.samples:,} samples in all; {row.events} events, missing {different.missing}, too many "
            f"{different.unexpected}, altered {different.altered}, wrong counts {different.counts}, "
            f"dead letters {different.refused}"
        )
