"""``smidgen backtest``: the pipeline over files, without Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pipeline.backtest.dataset import Dataset, read_changes, read_dataset, read_feedback
from pipeline.backtest.files import dataset_files
from pipeline.backtest.funnel import Funnel, count_funnel, funnel_by_workload, funnel_to_json, ledger_lines
from pipeline.backtest.plain import build_datasets, common_window_s
from pipeline.backtest.run import Backtest, plan_scans, run_backtest
from pipeline.backtest.seriesfile import Decimal, read_series
from pipeline.commands.request import FILE, argument, option, takes
from pipeline.commands.tables import print_table, text_columns
from pipeline.commands.terminal import print_note
from pipeline.files.listing import listed
from pipeline.files.outputs import check_outputs, replacing
from pipeline.messages.events import RESOLVED, UPDATED
from pipeline.model import Change, Silence
from pipeline.model.errors import ConfigError
from pipeline.model.units import HOUR_S, counted, format_duration
from pipeline.processes.allocation import keep_freed_memory
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload, load_workloads

_OUT = click.Path(path_type=Path, dir_okay=False)


Input = TypeVar("Input", Change, Silence)

_EXAMPLES = """\b
Examples:
  smidgen backtest history.csv --workload ct-demand --events events.jsonl
  smidgen backtest out/ --workload frontfaas-small --events events.jsonl --ledger dropped.jsonl
"""


@click.command(epilog=_EXAMPLES)
@takes
def backtest(
    source: Path = argument(metavar="DIR|FILE"),
    workloads: tuple[str, ...] = option(
        flag="--workload",
        metavar="NAME|FILE",
        help="Preset or file of windows, threshold and re-run interval. By default those of "
        "workers "
        "that find something to look at.",
    ),
    changes: Path | None = option(help="Deployed changes, JSON lines, which are suspects of root causes."),
    feedback: Path | None = option(
        help="Expectations and mutes, JSON lines of `feedback` messages: what they silence is not reported.",
    ),
    events: Path = option(kind=FILE, metavar="OUT.jsonl", help="File of events to write, one a line."),
    funnel: Path | None = option(
        kind=FILE, metavar="OUT.json", help="File to write with the candidates that each step left."
    ),
    ledger: Path | None = option(
        kind=FILE, metavar="OUT.jsonl", help="File to write with every dropped candidate and its reason."
    ),
    service: str | None = option(help="Service of FILE to read, or that a file without services belongs to."),
    decimal: Literal["point", "comma"] | None = option(
        help="What stands before decimals, where FILE does not say, as by 999 and 1.002 between semicolons."
    ),
    names: Path | None = option(help="Names file: rules by which frames become symbols (default: all)."),
) -> int:
    """Try settings on history: run the pipeline over files, as fast as this machine allows.

    DIR is what `smidgen loadgen fleet --out DIR` writes: counts, stacks, metrics, changes. FILE, or -
    for standard input, is what `smidgen detect` reads, CSV, JSON or Parquet, with times: with the columns
    service, metric, timestamp (ISO 8601 or epoch seconds) and either value, for workloads of service-level
    metrics, or samples and total, for workloads of gCPU; or with timestamp and a column for each metric.

    The stages are those of `smidgen worker`, in event time and without Kafka or a store, so the events are
    those that a live run would have published, ids included. Found events are no failure: the exit code
    is 0, or 2 if a file is wrong.
    """
    keep_freed_memory()
    read = [
        *dataset_files(source),
        source,
        changes,
        feedback,
        names,
        *map(Path, workloads),
    ]
    check_outputs({"--events": events, "--funnel": funnel, "--ledger": ledger}, read)
    settings = Settings(names=names)
    chosen = load_workloads(workloads or settings.workloads)
    datasets = _load(source, chosen, service, decimal)
    if changes:
        deployed = _by_service(datasets, read_changes(changes), "changes")
        datasets = tuple(replace(d, changes=(*d.changes, *deployed.get(d.service, ()))) for d in datasets)
    if not workloads:
        chosen = tuple(item for item in chosen if not _mistake(source, datasets, item)) or chosen
        _check_length(source, datasets, chosen)
    if feedback:
        silences = _by_service(datasets, read_feedback(feedback), "feedback")
        datasets = tuple(replace(d, silences=(*d.silences, *silences.get(d.service, ()))) for d in datasets)
    _check_workloads(source, datasets, chosen)
    outcomes = _run(datasets, chosen, settings)
    scans = [scan for item in outcomes for scan in item.scans]
    _write(events, (event for item in outcomes for event in item.events))
    if ledger:
        _write(ledger, ledger_lines(scans))
    by_workload = funnel_by_workload(scans)
    if funnel:
        rows = [{"workload": name, **funnel_to_json(item)} for name, item in by_workload.items()]
        _write(funnel, [{**funnel_to_json(count_funnel(scans)), "workloads": rows}])
    types = Counter(str(event["type"]) for item in outcomes for event in item.events)
    columns = text_columns(("", *by_workload), numbers=range(1, len(by_workload) + 1))
    print_table(columns, _summary(by_workload), title=_events_in_words(types))
    return 0


def _load(
    source: Path, workloads: Sequence[Workload], service: str | None, decimal: Decimal | None
) -> tuple[Dataset, ...]:
    if source.is_dir():
        datasets: tuple[Dataset, ...] = (read_dataset(source),)
    else:
        series = read_series(source, service=service, decimal=decimal, note=print_note)
        datasets = build_datasets(series, source, window_s=common_window_s(workloads))
    if service is None:
        return datasets
    services = listed([dataset.service for dataset in datasets], service)
    datasets = tuple(dataset for dataset in datasets if dataset.service == service)
    if not datasets:
        raise ConfigError(f"{source}: no service {service!r}; it has {services}")
    return datasets


def _by_service(datasets: Sequence[Dataset], inputs: Iterable[Input], name: str) -> dict[str, list[Input]]:
    """Return changes or silences by service, and name on stderr those without a dataset."""
    grouped: dict[str, list[Input]] = {}
    for item in inputs:
        grouped.setdefault(item.service, []).append(item)
    if strange := grouped.keys() - {dataset.service for dataset in datasets}:
        click.echo(f"no series, so {name} unused, of: {listed(sorted(strange))}", err=True)
    return grouped


def _check_workloads(source: Path, datasets: Sequence[Dataset], workloads: Sequence[Workload]) -> None:
    """Refuse workloads that would detect nothing, and name services that are too short to judge."""
    for workload in workloads:
        if mistake := _mistake(source, datasets, workload):
            raise ConfigError(mistake)
        for dataset in datasets:
            if dataset.end - dataset.start < workload.least_s:
                click.echo(
                    f"{dataset.service}: too short for workload {workload.name}, which needs "
                    f"{format_duration(workload.least_s)} to find anything",
                    err=True,
                )


def _check_length(source: Path, datasets: Sequence[Dataset], workloads: Sequence[Workload]) -> None:
    """Refuse data that are too short for all workloads: nothing could be detected."""
    longest_s = max(item.end - item.start for item in datasets)
    least = min(workloads, key=lambda item: item.least_s)
    if longest_s < least.least_s:
        raise ConfigError(
            f"{source}: {longest_s / HOUR_S:,.0f}h of data are too short for all workloads; {least.name} "
            f"needs least, {format_duration(least.least_s)}: give more data, or a shorter one by --workload"
        )


def _mistake(source: Path, datasets: Sequence[Dataset], workload: Workload) -> str:
    """Return why a workload would detect nothing, or work wrongly; empty if it is fine."""
    if workload.series == "service":
        has_metrics = any(dataset.metrics for dataset in datasets)
        return "" if has_metrics else f"{source}: no metric values for workload {workload.name}"
    if not any(len(dataset.names) for dataset in datasets):
        return f"{source}: no gCPU series (samples, total) for workload {workload.name}"
    widest_s = max(dataset.window_s for dataset in datasets)
    if workload.resolution_s >= widest_s:
        return ""
    return (
        f"{source}: windows of {format_duration(widest_s)} are wider than the resolution "
        f"of workload {workload.name}, {format_duration(workload.resolution_s)}"
    )


def _run(datasets: Sequence[Dataset], workloads: Sequence[Workload], settings: Settings) -> list[Backtest]:
    plans = [plan_scans(dataset, workloads, idle_s=settings.partition_idle_s) for dataset in datasets]
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("scans"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("backtest", total=sum(plan.scans for plan in plans))
        return [
            run_backtest(
                dataset, workloads, settings=settings, advance=lambda scans: progress.advance(task, scans)
            )
            for dataset in datasets
        ]


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with replacing(path) as file:
        file.writelines(orjson.dumps(row) + b"\n" for row in rows)


def _events_in_words(types: Counter[str]) -> str:
    """Write the number of events, and the number of updates among them."""
    text = counted(types.total(), "event")
    if not (later := types[UPDATED] + types[RESOLVED]):
        return text
    reported = counted(types.total() - later, "regression")
    return f"{text}: {reported} reported, {types[UPDATED]} updated, {types[RESOLVED]} resolved"


def _summary(funnels: Mapping[str, Funnel]) -> list[tuple[str, ...]]:
    """Return the rows of the table: a label, and a cell of each workload."""
    funnel_list = list(funnels.values())
    rows = [
        ("scans", *(f"{funnel.scans:,}" for funnel in funnel_list)),
        ("series scanned", *(f"{funnel.series:,}" for funnel in funnel_list)),
        ("change points", *(f"{funnel.change_points:,}" for funnel in funnel_list)),
    ]
    for step in dict.fromkeys(step for funnel in funnel_list for step, _ in funnel.remaining):
        cells = (_share(dict(funnel.remaining).get(step), funnel.change_points) for funnel in funnel_list)
        rows.append((f"after {step.replace('_', ' ')}", *cells))
    rows.append(("reported", *(f"{funnel.reported:,}" for funnel in funnel_list)))
    for code in dict.fromkeys(code for funnel in funnel_list for code, _ in funnel.unjudged):
        scans = (f"{dict(funnel.unjudged).get(code, 0):,}" for funnel in funnel_list)
        rows.append((f"scans that could not judge: {code.replace('_', ' ')}", *scans))
    return rows


def _share(left: int | None, detected: int) -> str:
    """Write the remaining candidates as a count, with the ratio 1/n to the detected ones, as in Table 5."""
    if left is None:
        return ""
    return f"{left:,} (1/{detected / left:.3g})" if left else "0"
