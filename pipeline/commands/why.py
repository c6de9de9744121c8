"""``smidgen why``: the story of a candidate, step by step, and its series."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.text import Text

from pipeline.backtest.files import dataset_files
from pipeline.commands.options import settings_options
from pipeline.commands.request import FILE, Ago, Moment, argument, json_option, option, takes
from pipeline.commands.tables import print_json, print_json_lines
from pipeline.commands.terminal import print_lines, print_note, print_styled
from pipeline.files.listing import listed
from pipeline.files.outputs import check_outputs, write_output
from pipeline.messages import fields
from pipeline.messages.ledger import LedgerEntry, entry_to_json
from pipeline.model import FloatArray, Unjudged
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.metric_kind import is_gcpu
from pipeline.model.units import counted
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload, known_workloads
from pipeline.storage.interface import RowQuery, Store
from pipeline.views.report.case import (
    LedgerFilter,
    ReportedCase,
    case_in_files,
    case_in_store,
    entries_in_files,
    entries_in_store,
    series_of,
)
from pipeline.views.report.chart import describe_study, draw_chart
from pipeline.views.report.explain import CandidateStory, explain, level, moment, number
from pipeline.views.report.study import Study, study
from pipeline.views.report.unjudged import describe_unjudged
from pipeline.views.report.windows import DrawnSeries, ScanWindows, windows_of

_OUT = click.Path(path_type=Path, dir_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)

_EXAMPLES = """\b
Examples:
  smidgen why c0ffee                             a reported or dropped candidate
  smidgen why --service shop --since 2d          what the ledger has, newest first
  smidgen why c0ffee --ledger dropped.jsonl --data out/ -o why.html
"""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A candidate's series, and the filters' view of it."""

    line: DrawnSeries
    windows: ScanWindows
    study: Study


@click.command(epilog=_EXAMPLES)
@takes
def why(
    candidate_id: str = argument(default="", metavar="[ID]"),
    service: str | None = option(metavar="S", help="Service whose lines of the ledger are listed."),
    metric: str | None = option(metavar="M", help="Series whose lines are listed."),
    since: float | None = option(
        kind=Moment(), help="Time of the first scan that is listed: 2d, or an ISO 8601 time."
    ),
    limit: int = option(50, least=1, help="Most lines listed."),
    ledgers: tuple[Path, ...] = option(
        flag="--ledger",
        kind=FILE,
        help="Ledger or events file of a backtest, instead of the store.",
    ),
    data: Path | None = option(
        metavar="DIR|FILE", help="Data that were backtested, from which the series is drawn."
    ),
    output: Path | None = option(
        flag="-o/--output",
        kind=FILE,
        metavar="OUT.html",
        help="Page to write: it draws the series with its SAX letters, trend and season.",
    ),
    as_json: bool = json_option(help="Print each line of the ledger as JSON."),
    settings: Settings = settings_options("store", "workloads"),
) -> None:
    """Explain the reported or dropped candidate ID; without ID, list what the ledger has.

    The terminal draws the series with the scan's windows, the change point and the levels before and after,
    and writes SAX letters, trend and season below it; -o OUT.html draws all of it.

    The first six digits of an id are enough if no other begins so. The workload of a candidate is looked for
    among --workloads, then among the presets.
    """
    if data and not ledgers:
        raise click.UsageError("--data needs --ledger: the store has its own series")
    if candidate_id:
        if service or metric or since is not None:
            raise click.UsageError("give either ID, or --service, --metric and --since")
        from pipeline.views.report.ids import id_prefix

        prefix = id_prefix(candidate_id)
        read = [
            *ledgers,
            *([data, *dataset_files(data)] if data else ()),
            *map(Path, settings.workloads),
        ]
        check_outputs({"-o": output}, read)
        _explain(prefix, settings, ledgers, data, output, as_json=as_json)
        return
    if output:
        raise click.UsageError("-o needs an ID")
    wanted = LedgerFilter(service, metric, fields.EARLIEST_S if since is None else since)
    _list(wanted, settings, ledgers, limit, as_json=as_json)


def _list(
    wanted: LedgerFilter, settings: Settings, ledgers: Sequence[Path], limit: int, *, as_json: bool
) -> None:
    unjudged: list[dict[str, Any]] = []
    nothing = "nothing in the ledger"
    if ledgers:
        every = entries_in_files(ledgers, LedgerFilter(None, None, fields.EARLIEST_S))
        if isinstance(wanted.since, Ago) and every:  # a backtest may cover years ago
            wanted = replace(wanted, since=every[0].scan.end - wanted.since.before_s)
        entries = [entry for entry in every if wanted.wants(entry)]
        nothing = _why_nothing(every, wanted)
    else:
        with _store(settings) as store:
            entries = entries_in_store(store, wanted)
            if not entries:
                known = LedgerFilter(None, None, fields.EARLIEST_S)
                nothing = _why_nothing(entries_in_store(store, known), wanted)
            unjudged = store.rows(RowQuery("unjudged", wanted.service, wanted.since))
    if as_json:
        print_json_lines(map(entry_to_json, entries[:limit]))
        return
    print_styled(map(_line, entries[:limit]))
    if len(entries) > limit:
        print_styled([Text(f"{len(entries) - limit} older ones: raise --limit or narrow --since", "dim")])
    if not entries:
        print_lines([nothing])
    print_styled(Text(line, "yellow") for line in _unjudged_lines(unjudged))


def _why_nothing(every: Sequence[LedgerEntry], wanted: LedgerFilter) -> str:
    """Name the part of a filter that excludes the whole ledger."""
    if not every:
        return "nothing in the ledger"
    services = sorted({entry.scan.service for entry in every})
    if wanted.service is not None and wanted.service not in services:
        return (
            f"nothing in the ledger of service {wanted.service!r}; it has {listed(services, wanted.service)}"
        )
    of_service = [entry for entry in every if wanted.service in (None, entry.scan.service)]
    metrics = sorted({entry.candidate.metric for entry in of_service})
    if wanted.metric is not None and wanted.metric not in metrics:
        return f"nothing in the ledger of metric {wanted.metric!r}: no such series, or it never changed"
    return f"nothing in the ledger since {moment(wanted.since)}; the newest is {moment(every[0].scan.end)}"


def _unjudged_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Write one line for each service, workload and code: the number of scans, and the last of them."""
    last = {(row["service"], row["workload"], row["code"]): row for row in rows}
    scans = Counter((row["service"], row["workload"], row["code"]) for row in rows)
    for key, row in last.items():
        unjudged = Unjudged(row["code"], row["series"], row["value"], row["bound"])
        yield (
            f"{row['service']}  {row['workload']}  {counted(scans[key], 'scan')} could not judge; the last, "
            f"{moment(row['time'])}, {row['series']} series: {describe_unjudged(unjudged)}"
        )


def _line(entry: LedgerEntry) -> Text:
    candidate = entry.candidate
    ratio = is_gcpu(candidate.metric_kind)
    change = f"{level(candidate.before, ratio=ratio)} → {level(candidate.after, ratio=ratio)}"
    dropped = entry.dropped
    end = (
        (f"{dropped.step} {number(dropped.statistic)} against {number(dropped.bound)}", "yellow")
        if dropped
        else ("reported", "bold red")
    )
    return Text.assemble(
        (entry.id[:12], "bold"),
        f"  {moment(entry.scan.end)}  {entry.scan.service}  {entry.scan.workload}",
        f"  {candidate.metric}  {change}  ",
        end,
    )


def _explain(
    prefix: str,
    settings: Settings,
    ledgers: Sequence[Path],
    data: Path | None,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    workloads = known_workloads(settings.workloads)
    series = None
    if ledgers:
        case = case_in_files(ledgers, prefix)
        workload = workloads.get(case.entry.scan.workload)
        if data and workload:
            series = series_of(
                _backtested(data, workload, case.entry.scan.service, settings), case.entry, workload
            )
    else:
        with _store(settings) as store:
            case = case_in_store(store, prefix, workloads)
            workload = workloads.get(case.entry.scan.workload)
            series = series_of(store, case.entry, workload) if workload else None
    seen = _seen(case, workload, *series) if workload and series else None
    story = explain(case.entry, event=case.event, updates=case.updates, frame=case.frame)
    if as_json:
        print_json(entry_to_json(case.entry))
    else:
        _show(case, story, seen, has_page=output is not None)
    note = None if seen else _why_not_drawn(case, workload, has_data=not ledgers or data is not None)
    if output and workload is None:
        raise ConfigError(note or "")
    if note and (output or data or not ledgers):
        click.echo(note, err=True)
    if output and workload:
        # Loaded here: plotly takes a second, which the terminal need not wait for.
        from pipeline.views.report.why_page import render_why

        windows = windows_of(case.entry.scan, workload)
        line, looked = (seen.line, seen.study) if seen else (None, None)
        page = render_why(case.entry, story, windows, line, looked, note=note)
        write_output(output, page.encode())
        click.echo(output)


def _seen(case: ReportedCase, workload: Workload, line: DrawnSeries, weights: FloatArray) -> _Seen | None:
    """Return the series to draw; None if there is no data in the scan's windows."""
    windows, candidate = windows_of(case.entry.scan, workload), case.entry.candidate
    if not (np.isfinite(line.values) & (line.times < windows.end)).any():
        return None
    rising = candidate.delta > 0
    seen = study(line, weights, windows, change_time=candidate.change_time, rising=rising)
    return _Seen(line, windows, seen)


def _why_not_drawn(case: ReportedCase, workload: Workload | None, *, has_data: bool) -> str:
    if workload is None:
        name = case.entry.scan.workload
        return f"series not drawn: workload {name!r} is not known; name its file with --workloads"
    if not has_data:
        return "series not drawn: name what was backtested with --data"
    return "series not drawn: no data in the scan's windows"


def _show(case: ReportedCase, story: CandidateStory, seen: _Seen | None, *, has_page: bool) -> None:
    print_styled(_story_lines(story))
    if seen is None:
        return
    candidate = case.entry.candidate
    width = min(shutil.get_terminal_size((100, 24)).columns, 140)
    chart = draw_chart(
        seen.line,
        seen.windows,
        change_time=candidate.change_time,
        before=candidate.before,
        after=candidate.after,
        width=width,
    )
    print_lines(("", *chart, "", *describe_study(seen.study, ratio=seen.line.ratio, width=width)))
    if not has_page:
        print_styled([Text("-o OUT.html draws SAX letters, trend and season too", "dim")])


def _story_lines(story: CandidateStory) -> Iterator[Text]:
    yield Text(story.headline, style="bold")
    yield Text(story.outcome, style="bold red" if story.reported else "yellow")
    yield Text("")
    more = {"domain": story.domains, "follows": story.explanations, "suspect": story.suspects}
    more["later"] = story.later
    for label, text in (*story.facts, *((label, text) for label, texts in more.items() for text in texts)):
        yield Text.assemble((f"{label:<9}", "dim"), text)
    yield Text("")
    for step in story.steps:
        mark = ("✓", "green") if step.passed else ("✗", "red")
        yield Text.assemble(mark, " ", (f"{step.name:<16}", "bold"), step.asks)
        answer = f"{'passed' if step.passed else 'dropped'}{': ' if step.answer else ''}{step.answer}"
        yield Text(f"  {'':<16}{answer}{'; ' if step.numbers else ''}{step.numbers}")


def _backtested(data: Path, workload: Workload, service: str, settings: Settings) -> Store:
    from pipeline.backtest.dataset import read_dataset
    from pipeline.backtest.plain import build_datasets
    from pipeline.backtest.seriesfile import read_series
    from pipeline.backtest.symbols import with_symbols
    from pipeline.settings.names import read_namings
    from pipeline.storage.arrays import ArrayStore

    naming = read_namings(settings.names).of(service)
    if data.is_dir():
        return ArrayStore(with_symbols(read_dataset(data), naming))
    series = [one for one in read_series(data, service=service, note=print_note) if one.service == service]
    if not series:
        raise ConfigError(f"{data}: no service {service!r}")
    datasets = build_datasets(series, data, window_s=workload.resolution_s)
    return ArrayStore(*(with_symbols(dataset, naming) for dataset in datasets))


@contextmanager
def _store(settings: Settings) -> Iterator[Store]:
    from pipeline.settings.names import read_namings
    from pipeline.stages.gather.symbols import SymbolStore
    from pipeline.storage.connect import open_store

    with closing(open_store(settings.store, existing=True)) as store:
        try:
            yield SymbolStore(store, read_namings(settings.names))
        except InvalidMessage as error:
            raise ConfigError(f"the store's ledger: {error}") from None
