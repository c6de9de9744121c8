"""``smidgen detectable``: which regressions each workload sees in a service's traffic, and after how long."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.analysis.detect.detectable import DetectableConfig, Traffic
from pipeline.commands.options import FiniteRange, settings_options
from pipeline.commands.request_outlook import RequestsAsked, show_outlooks
from pipeline.commands.terminal import table_console
from pipeline.commands.waiting import scanned
from pipeline.model.clock import from_iso, system_clock
from pipeline.model.errors import ConfigError, InvalidMessage
from pipeline.model.units import format_duration
from pipeline.settings.config import Settings
from pipeline.settings.workloads import Workload, load_workloads
from pipeline.storage.connect import open_store
from pipeline.views.report.detectability import SIZES, Outlook, outlooks_of

_NAME_WIDTH = 16  # of the first column, however narrow the terminal is


@click.command()
@click.option("--service", required=True, metavar="S", help="Whose traffic is looked at.")
@click.option("--until", metavar="TIME", help="ISO 8601: look at what came before (default: now).")
@click.option("--requests", is_flag=True, help="What types of requests may cost more in the next release.")
@click.option(
    "--rise",
    type=FiniteRange(min=0, min_open=True, max=10),
    default=0.02,
    show_default=True,
    help="With --requests: by how much of itself one type costs more.",
)
@click.option(
    "--beside",
    type=FiniteRange(min=0, min_open=True, max=1),
    default=1.0,
    show_default=True,
    help="With --requests: the share of them that the next release gets beside this one.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a workload, or a metric.")
@settings_options("store", "workloads")
def detectable(
    settings: Settings,
    service: str,
    until: str | None,
    requests: bool,
    rise: float,
    beside: float,
    as_json: bool,
) -> None:
    """Say which regressions the traffic of a service lets each workload see, and after how long.

    For each workload the windows of a scan are read from the store: how many samples came, how many series
    there are, and by how much their noise exceeds that of sampling (1: nothing else makes noise). From these
    follows the smallest step that is significant among all series and reported in 90 of 100 cases, for
    subroutines of small, typical and large gCPU (quantiles of 10, 50 and 90 %): once as much has been seen of
    it as the analysis window is long, and once the extended window has passed, too. Then the other way round:
    after how long a regression of a size is seen.

    "never" is with this traffic: half the size takes four times as many samples. A step below the workload's
    threshold is not reported, however clear.

    With --requests: for each metric by which `smidgen worker releases` compares releases, after how many
    periods of the next release it sees that requests of one type cost --rise more, in 90 of 100 cases, by the
    load and the noise of the last day; and at which of its looks such a release is reported.
    """
    end = _moment(until) if until else system_clock()
    if requests:
        show_outlooks(settings, RequestsAsked(service, end, rise, beside), as_json=as_json)
        return
    workloads = [
        known_workload
        for known_workload in load_workloads(settings.workloads)
        if known_workload.series == "gcpu"
    ]
    if not workloads:
        raise ConfigError("--workloads: none of them looks at gCPU")
    with closing(open_store(settings.store, existing=True)) as store:
        rows = [(workload, *outlooks_of(store, service, workload, end)) for workload in workloads]
    if as_json:
        for workload, traffic, outlooks in rows:
            click.echo(orjson.dumps(_to_json(service, workload, traffic, outlooks)).decode())
        return
    console = table_console()
    for workload, traffic, outlooks in rows:
        _print(console, service, workload, traffic, outlooks)
    for line in scanned(settings, service).values():
        console.print(Text(line))


def _moment(text: str) -> float:
    try:
        return from_iso(text)
    except InvalidMessage as error:
        raise ConfigError(f"--until: {error}") from None


def _to_json(service: str, workload: Workload, traffic: Traffic, outlooks: list[Outlook]) -> dict[str, Any]:
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


def _print(
    console: Console, service: str, workload: Workload, traffic: Traffic, outlooks: list[Outlook]
) -> None:
    config, threshold = DetectableConfig(), workload.threshold
    least = _percent(threshold.absolute) if threshold.absolute else f"{threshold.relative:.3g} of its level"
    per_window = traffic.samples_per_s * workload.resolution_s
    table = Table(title=f"{service}, {workload.name}", title_justify="left", title_style="bold")
    table.add_column("subroutine", min_width=_NAME_WIDTH)
    analysis, extended = (format_duration(one) for one in (workload.analysis_s, workload.extended_s))
    table.add_column(f"detectable after {analysis}", justify="right")
    if workload.extended_s:
        table.add_column(f"and {extended} more", justify="right")
    for size in SIZES:
        table.add_column(f"{_percent(size)} after", justify="right")
    for one in outlooks:
        table.add_row(
            f"{one.subroutine}, {_percent(one.gcpu)} (noise {one.dispersion:.2g})",
            _size(one.after_analysis),
            *([_size(one.after_extended)] if workload.extended_s else []),
            *(_time(size, one, threshold.absolute) for size in SIZES),
        )
    console.print(table)
    console.print(
        f"threshold {least}; {per_window:,.0f} samples a window of {format_duration(workload.resolution_s)}, "
        f"{traffic.series:,} series; significant: at most {config.significance:g} of all series of a scan by "
        f"chance; detectable: reported in {config.power * 100:.0f} of 100 cases; noise: times sampling"
    )
    console.print()


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _size(size: float | None) -> str:
    return "nothing" if size is None else _percent(size)


def _time(size: float, outlook: Outlook, least: float | None) -> str:
    if least is not None and size < least:
        return "below threshold"
    after_s = outlook.after_s[f"{size:g}"]
    return "never" if after_s is None else format_duration(after_s)
