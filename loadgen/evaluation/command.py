"""``smidgen score`` and ``smidgen compare``: events against the truth, and against other events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from loadgen.evaluation.difference import compare_events
from loadgen.evaluation.encode import score_to_json
from loadgen.evaluation.matching import Tolerances, in_reach, tolerance_s
from loadgen.evaluation.model import Event, TruthRow
from loadgen.evaluation.reading import read_events, read_funnel, read_ledger, read_truth
from loadgen.evaluation.scoring import Score
from loadgen.evaluation.scoring import score as score_events
from loadgen.evaluation.sweep import Curve, ledger_curves
from loadgen.terminal import progress
from pipeline.backtest.files import dataset_files
from pipeline.commands.request import FILE, Duration, argument, json_option, option, takes
from pipeline.commands.tables import print_json
from pipeline.files.outputs import check_outputs, write_output
from pipeline.settings.workloads import PRESETS_PATH, Workload, load_workloads, read_workload_file

EVENTS, FUNNEL, LEDGER = "events.jsonl", "funnel.json", "ledger.jsonl"
"""Files of a folder of results."""


_workload_option = option(flag="--workload", metavar="NAME|FILE", help="Workload that was run.")
_tolerance_option = option(kind=Duration(), help="Largest error of a change time (default: by the workload).")


@click.command()
@takes
def score(
    truth: Path = option(kind=FILE, help="Truth file (JSON lines)."),
    events: Path = option(kind=FILE, help="Events file (JSON lines of CloudEvents)."),
    funnel: Path | None = option(
        kind=FILE, help="Funnel of the run, for the false-positive rate and Table 5."
    ),
    ledger: Path | None = option(kind=FILE, help="Ledger of the run, for ROC curves; needs --funnel."),
    sweep: Path | None = option(
        metavar="DIR",
        help="Dataset to run again with several thresholds of the one --workload, for a ROC curve.",
    ),
    workloads: tuple[str, ...] = _workload_option,
    tolerance: float | None = _tolerance_option,
    as_json: bool = json_option(),
    html: Path | None = option(kind=FILE, metavar="OUT.html", help="Self-contained page to write."),
) -> None:
    """Hold reported events against a known truth: precision, recall, delay, grouping, root causes, funnel.

    docs/scoring.md defines every figure.
    """
    if ledger and not funnel:
        raise click.UsageError("--ledger needs --funnel: curves are per scanned series")
    chosen = load_workloads(workloads)
    if sweep and len(chosen) != 1:
        raise click.UsageError("--sweep needs exactly one --workload, whose threshold it changes")
    check_outputs({"--html": html}, [truth, events, funnel, ledger])
    rows, reported = read_truth(truth), read_events(events).events
    tolerances = choose_tolerances(reported, chosen, tolerance)
    if chosen and len(reached := in_reach(rows, chosen)) < len(rows):
        click.echo(
            f"left out: {len(rows) - len(reached)} rows of series that no --workload looks at", err=True
        )
        rows = reached
    counted = read_funnel(funnel) if funnel else None
    figures = score_events(rows, reported, tolerances=tolerances, funnel=counted)
    curves = (
        ledger_curves(rows, reported, read_ledger(ledger), scanned=counted.series, tolerances=tolerances)
        if ledger and counted
        else ()
    )
    _show(
        figures,
        curves,
        _swept(sweep, chosen[0], rows) if sweep else None,
        str(events),
        html,
        as_json,
    )


@click.command()
@takes
def compare(
    a: Path = argument(),
    b: Path = argument(),
    data: Path | None = option(metavar="DIR", help="Dataset from which series are drawn."),
    workloads: tuple[str, ...] = _workload_option,
    tolerance: float | None = _tolerance_option,
    as_json: bool = json_option(),
    html: Path | None = option(
        kind=FILE, metavar="OUT.html", help="Self-contained page to write, with the series."
    ),
) -> int:
    """Compare the events of two runs A and B over the same data; exit 1 if they differ.

    A and B are events files, or folders with events.jsonl and, to show where the other run lost an event,
    ledger.jsonl.
    """
    from loadgen.evaluation.comparison import difference_to_json, print_difference, render_difference
    from pipeline.backtest.dataset import read_dataset

    (events_a, ledger_a), (events_b, ledger_b) = _results(a), _results(b)
    read = [events_a, ledger_a, events_b, ledger_b, *(dataset_files(data) if data else ())]
    check_outputs({"--html": html}, read)
    reported_a, reported_b = read_events(events_a).events, read_events(events_b).events
    difference = compare_events(
        reported_a,
        reported_b,
        tolerances=choose_tolerances((*reported_a, *reported_b), load_workloads(workloads), tolerance),
        ledger_a=read_ledger(ledger_a) if ledger_a else (),
        ledger_b=read_ledger(ledger_b) if ledger_b else (),
    )
    names = (str(a), str(b))
    if html:
        dataset = read_dataset(data) if data else None
        write_output(html, render_difference(difference, names, dataset).encode())
    if as_json:
        print_json(difference_to_json(difference))
    else:
        print_difference(difference, names)
    return 0 if difference.same else 1


def choose_tolerances(
    events: tuple[Event, ...], given: tuple[Workload, ...], tolerance: float | None
) -> Tolerances:
    """Return the tolerances for some events: by their workloads, or ``tolerance`` for all.

    Workloads are looked up in ``given``, then in the presets; other workloads have the default tolerance.
    """
    if tolerance is not None:
        return Tolerances(otherwise=tolerance)
    by_name = {workload.name: workload for workload in (*read_workload_file(PRESETS_PATH), *given)}
    named = {event.workload for event in events} & set(by_name)
    for name in sorted({event.workload for event in events} - named):
        minutes = Tolerances().otherwise / 60
        text = f"workload {name!r} is no preset and not given with --workload: tolerance {minutes:.0f} min"
        click.echo(text, err=True)
    return Tolerances({name: tolerance_s(by_name[name]) for name in named})


def _show(
    figures: Score,
    curves: tuple[Curve, ...],
    runs: Curve | None,
    title: str,
    html: Path | None,
    as_json: bool,
) -> None:
    """Write the page if there is to be one, and print JSON or tables."""
    if html:
        from loadgen.evaluation.page import render_score  # plotly takes half a second to load

        write_output(html, render_score(figures, title=title, curves=curves, runs=runs).encode())
    if as_json:
        swept = (*curves, runs) if runs else curves
        print_json(score_to_json(figures, swept))
    else:
        from loadgen.evaluation.table import print_score

        print_score(figures)


def _swept(data: Path, workload: Workload, truth: Sequence[TruthRow]) -> Curve:
    from loadgen.evaluation.runs import FACTORS, threshold_curve
    from pipeline.backtest.dataset import read_dataset

    dataset = read_dataset(data)
    with progress("backtests", len(FACTORS)) as advance:
        return threshold_curve(dataset, workload, truth, advance=advance)


def _results(path: Path) -> tuple[Path, Path | None]:
    """Return the events file and the ledger of a folder, or the events file itself."""
    if not path.is_dir():
        return path, None
    ledger = path / LEDGER
    return path / EVENTS, ledger if ledger.exists() else None
