"""``smidgen bench faults``: nothing lost, nothing doubled, whatever strikes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from loadgen.bench.faults.brokers import BrokerKind
from loadgen.bench.shutdown import ended_in_order
from loadgen.harness import Experiment, bench, lines
from loadgen.terminal import share_progress
from pipeline.commands.request import FOLDER, Duration, option, seed_option
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from loadgen.bench.faults.catalogue import Fault
    from loadgen.bench.faults.run import Outcome

StoreKind = Literal["embedded", "server"]


@dataclass(frozen=True, slots=True)
class _FaultsRequest:
    names: str | None = option(
        flag="--faults", metavar="NAME,...", help="Faults to try (default: all that the broker allows)."
    )
    kills: int | None = option(least=1, help="Strikes of each fault (default: its own number).")
    seed: int = seed_option(help="Seed of all draws.")
    broker: BrokerKind = option(
        "embedded",
        help="The embedded broker, or Apache Kafka with one or three brokers (needs Java and Maven).",
    )
    store: StoreKind = option("embedded", help="The embedded store, or ClickHouse's own HTTP server.")
    outage: float | None = option(kind=Duration(), help="Outage of store or broker, such as 10m.")
    stages: str | None = option(metavar="STAGE,...", help="Stages to strike (default: all).")
    malformed: int | None = option(least=1, help="Number of malformed messages.")
    former: str | None = option(
        metavar="REVISION", help="Commit of the version that is replaced in a rollout."
    )
    logs: Path | None = option(kind=FOLDER, help="Folder for the logs of failures.")
    listing: bool = option(flag="--list", help="List the faults and end.")


@bench(json="one JSON object a fault, as they end")
def faults(request: _FaultsRequest) -> Experiment[Outcome]:
    """Strike the running stages with faults, and compare counts and events with an undisturbed run.

    Each fault has a broker, a store and worker processes of its own, fed by agents with three simulated
    services. Nothing may be lost and nothing doubled: every count of samples, subroutines and stacks must
    be as sent, every row and event as an undisturbed run makes it. The exit code is 1 if anything differs,
    or if a strike struck nothing. docs/faults.md says what each fault is.
    """
    from loadgen.bench.faults.catalogue import read_catalogue

    catalogue = read_catalogue()
    if request.listing:
        for name, fault in catalogue.items():
            click.echo(f"{name:15} {fault.about}")
        return Experiment(lambda _: (), 0, lines(outcome_line))
    chosen = _chosen("--faults", request.names, list(catalogue))
    return Experiment(
        lambda _: _strike([(name, catalogue[name]) for name in chosen], request),
        0,
        lines(outcome_line),
        streamed=True,
        passed=lambda outcome: outcome.passed,
    )


def _strike(faults: Sequence[tuple[str, Fault]], request: _FaultsRequest) -> Iterator[Outcome]:
    from loadgen.bench.faults.former_version import FORMER
    from loadgen.bench.faults.run import Options, run_fault
    from pipeline.stages.factory import SCAN_STAGES

    options = Options(
        broker=request.broker,
        store=request.store,
        seed=request.seed,
        outage_s=request.outage,
        stages=tuple(_chosen("--stages", request.stages, SCAN_STAGES)),
        malformed=request.malformed,
        former=request.former or FORMER,
        keep=request.logs,
    )
    with ended_in_order():
        for name, fault in faults:
            with share_progress(name) as show:
                outcome = run_fault(name, fault.planned(request.kills), options, show)
            yield outcome


def _chosen(flag: str, names: str | None, allowed: Sequence[str]) -> list[str]:
    if names is None:
        return list(allowed)
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in allowed:
            raise ConfigError(f"{flag}: no {name!r}; there are {', '.join(allowed)}")
    if not chosen:
        raise ConfigError(f"{flag}: names none")
    return chosen


def outcome_line(one: Outcome) -> str:
    """Say in a line how a fault went, and what differed."""
    if one.skipped:
        return f"{one.fault:15} left out: {one.skipped}"
    strikes = f"{one.strikes:4} strikes" if one.strikes == one.planned else f"{one.strikes} of {one.planned}"
    figures = (
        f"{one.fault:15} {'ok' if one.passed else 'FAILED':6} {strikes}"
        f" {one.samples:12,} samples {one.events:3} events {one.copies:3} copies"
        f"  recovery {one.recovery_s:5.1f} s  {one.seconds:5.0f} s in all"
    )
    return "  ".join(filter(None, [figures, str(one.differences or ""), one.failure, "; ".join(one.lacking)]))
