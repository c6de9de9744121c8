"""``smidgen bench faults``: nothing lost, nothing doubled, whatever strikes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from loadgen.bench.shutdown import ended_in_order
from pipeline.commands.options import Duration
from pipeline.commands.tables import print_json
from pipeline.model.errors import ConfigError

if TYPE_CHECKING:
    from loadgen.bench.faults.run import Outcome


@click.command()
@click.option(
    "--faults", "names", metavar="NAME,...", help="Only these; default: all that the broker allows."
)
@click.option("--kills", type=click.IntRange(min=1), help="Strikes of each fault; default: its own number.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all draws.")
@click.option(
    "--broker",
    type=click.Choice(["embedded", "kafka", "kafka3"]),
    default="embedded",
    show_default=True,
    help="The embedded broker, or Apache Kafka with one or three brokers (needs Java and Maven).",
)
@click.option(
    "--store",
    type=click.Choice(["embedded", "server"]),
    default="embedded",
    show_default=True,
    help="The embedded store, or ClickHouse's own HTTP server.",
)
@click.option(
    "--outage",
    type=Duration(),
    metavar="DURATION",
    help="How long store or broker stay away, such as 10m.",
)
@click.option("--stages", metavar="STAGE,...", help="Strike only these stages; default: all.")
@click.option("--malformed", type=click.IntRange(min=1), help="How many malformed messages are sent.")
@click.option("--former", metavar="REVISION", help="Commit of the version to roll from.")
@click.option(
    "--logs", type=click.Path(path_type=Path, file_okay=False), help="Folder for the logs of what failed."
)
@click.option("--list", "listing", is_flag=True, help="List the faults and end.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a fault, as they end.")
def faults(
    names: str | None,
    kills: int | None,
    seed: int,
    broker: str,
    store: str,
    outage: float | None,
    stages: str | None,
    malformed: int | None,
    former: str | None,
    logs: Path | None,
    listing: bool,
    as_json: bool,
) -> int:
    """Strike the running stages with faults, and compare counts and events with an undisturbed run.

    Each fault has a broker, a store and worker processes of its own, fed by agents with three simulated
    services. Nothing may be lost and nothing doubled: every count of samples, subroutines and stacks must
    be as sent, every row and event as an undisturbed run makes it. The exit code is 1 if anything differs,
    or if a strike struck nothing. docs/faults.md says what each fault is.
    """
    from loadgen.bench.faults.catalogue import read_catalogue
    from loadgen.bench.faults.former_version import FORMER
    from loadgen.bench.faults.run import Options, run_fault
    from pipeline.stages.factory import SCAN_STAGES

    catalogue = read_catalogue()
    if listing:
        for name, fault in catalogue.items():
            click.echo(f"{name:15} {fault.about}")
        return 0
    chosen = _chosen("--faults", names, list(catalogue))
    options = Options(
        broker=broker,  # type: ignore[arg-type]
        store=store,  # type: ignore[arg-type]
        seed=seed,
        outage_s=outage,
        stages=tuple(_chosen("--stages", stages, SCAN_STAGES)),
        malformed=malformed,
        former=former or FORMER,
        keep=logs,
    )
    console = Console(stderr=True)
    outcomes: list[Outcome] = []
    with ended_in_order(), _progress(console) as progress:
        for name in chosen:
            task = progress.add_task(name, total=1.0, doing="")
            outcome = run_fault(name, catalogue[name].planned(kills), options, partial(_show, progress, task))
            progress.remove_task(task)
            outcomes.append(outcome)
            if as_json:
                print_json(outcome.to_json())
            else:
                click.echo(outcome_line(outcome))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _chosen(flag: str, names: str | None, known: Sequence[str]) -> list[str]:
    if names is None:
        return list(known)
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            raise ConfigError(f"{flag}: no {name!r}; there are {', '.join(known)}")
    if not chosen:
        raise ConfigError(f"{flag}: names none")
    return chosen


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[doing]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _show(progress: Progress, task: TaskID, doing: str, share: float) -> None:
    progress.update(task, completed=share, doing=doing)


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
