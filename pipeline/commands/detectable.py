"""``smidgen detectable``: which regressions each workload sees in a service's traffic, and after how long."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from pipeline.analysis.detect.detectable import DetectableConfig, ServiceTraffic
from pipeline.commands.options import settings_options
from pipeline.commands.request import IsoTime, json_option, option, takes
from pipeline.commands.request_outlook import RequestsAsked, show_outlooks
from pipeline.commands.tables import Column, print_json_lines, print_table
from pipeline.commands.terminal import print_lines, print_note
from pipeline.commands.waiting import scanned
from pipeline.model.clock import system_clock
from pipeline.model.errors import ConfigError
from pipeline.model.units import format_duration
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload, load_workloads
from pipeline.storage.connect import open_store
from pipeline.views.report.detectability import Outlook, outlooks_of, sizes_of


@click.command()
@takes
def detectable(
    service: str = option(metavar="S", help="Service whose traffic is looked at."),
    until: float | None = option(
        kind=IsoTime(), help="ISO 8601 time: what came before is looked at (default: now)."
    ),
    requests: bool = option(help="Say instead which rise of a request's cost the next release will show."),
    rise: float = option(
        0.02, above=0, most=10, help="With --requests: relative rise of the cost of one type."
    ),
    beside: float = option(
        1.0,
        above=0,
        most=1,
        help="With --requests: share of the requests that the next release gets, beside this one.",
    ),
    as_json: bool = json_option("a workload, or a metric"),
    settings: Settings = settings_options("store", "workloads"),
) -> None:
    """Say which regressions the traffic of a service lets each workload see, and after how long.

    For each workload the windows of a scan are read from the store: how many samples came, how many series
    there are, and by how much their noise exceeds that of sampling (1: nothing else makes noise). From these
    follows the smallest step that is significant among all series and reported in 90 of 100 cases, for
    subroutines of small, typical and large gCPU (quantiles of 10, 50 and 90 %): once as much has been seen of
    it as the analysis window is long, and once the extended window has passed, too. Then the other way round:
    after how long a regression of a size is seen.

    "never" is with this traffic: half the size takes four times as many samples. Windows in which the service
    was idle do not count. A step below the workload's threshold is not reported, however clear.

    With --requests: for each metric by which `smidgen worker releases` compares releases, after how many
    periods of the next release it sees that requests of one type cost --rise more, in 90 of 100 cases, by the
    load and the noise of the last day; and at which of its looks such a release is reported.
    """
    end = system_clock() if until is None else until
    if requests:
        show_outlooks(settings, RequestsAsked(service, end, rise, beside), as_json=as_json)
        return
    workloads = [workload for workload in load_workloads(settings.workloads) if workload.series == "gcpu"]
    if not workloads:
        raise ConfigError("--workloads: none of them looks at gCPU")
    rows, lacking = [], []
    with closing(open_store(settings.store, existing=True)) as store:
        for workload in workloads:
            try:
                rows.append((workload, *outlooks_of(store, service, workload, end)))
            except ConfigError as error:
                lacking.append(f"{workload.name}: {error}")
    if not rows:
        raise ConfigError(lacking[0])
    for text in lacking:
        print_note(text)
    if as_json:
        print_json_lines(_to_json(service, *row) for row in rows)
        return
    for row in rows:
        _print(service, *row)
    print_lines(scanned(settings, service).values())


def _to_json(
    service: str, workload: Workload, traffic: ServiceTraffic, outlooks: list[Outlook]
) -> dict[str, Any]:
    config = DetectableConfig()
    threshold = workload.threshold
    return {
        "service": service,
        "workload": workload.name,
        "threshold": {"absolute": threshold.absolute, "relative": threshold.relative},
        "samples_per_s": traffic.samples_per_s,
        "samples_per_window": traffic.samples_per_s * workload.resolution_s,
        "series": traffic.series,
        "significance": config.significance,
        "power": config.power,
        "subroutines": [asdict(outlook) for outlook in outlooks],
    }


def _print(service: str, workload: Workload, traffic: ServiceTraffic, outlooks: list[Outlook]) -> None:
    config, threshold = DetectableConfig(), workload.threshold
    least = _percent(threshold.absolute) if threshold.absolute else f"{threshold.relative:.3g} of its level"
    window = format_duration(workload.resolution_s)
    per_window = traffic.samples_per_s * workload.resolution_s
    print_table(_columns(workload), outlooks, title=f"{service}, {workload.name}")
    click.echo(
        f"threshold {least}; {per_window:,.0f} samples a window of {window}, "
        f"{traffic.series:,} series; significant: at most {config.significance:g} of all series of a scan by "
        f"chance; detectable: reported in {config.power * 100:.0f} of 100 cases; noise: times sampling\n"
    )


def _columns(workload: Workload) -> list[Column[Outlook]]:
    analysis, extended = format_duration(workload.analysis_s), format_duration(workload.extended_s)
    columns: list[Column[Outlook]] = [
        Column(
            "subroutine", lambda row: f"{row.subroutine}, {_percent(row.gcpu)} (noise {row.dispersion:.2g})"
        ),
        Column(f"detectable after {analysis}", lambda row: _size(row.after_analysis), str),
    ]
    if workload.extended_s:
        columns.append(Column(f"and {extended} more", lambda row: _size(row.after_extended), str))
    for size in sizes_of(workload):
        columns.append(Column(f"{_percent(size)} after", partial(_time, size), str))
    return columns


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _size(size: float | None) -> str:
    return "nothing" if size is None else _percent(size)


def _time(size: float, outlook: Outlook) -> str:
    after_s = outlook.after_s[f"{size:g}"]
    return "never" if after_s is None else format_duration(after_s)
