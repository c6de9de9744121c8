"""Output of ``smidgen detectable --requests``: periods until a rise of each type's cost is seen."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click

from pipeline.commands.tables import Column, print_json, print_table
from pipeline.commands.terminal import print_lines
from pipeline.model.clock import to_iso
from pipeline.model.errors import ConfigError
from pipeline.model.units import format_duration
from pipeline.releases.requests import (
    LookConfig,
    NotCompared,
    ReleaseMetrics,
    RequestOutlook,
    Run,
    TypeOutlook,
    foresee,
)
from pipeline.settings.config import Settings
from pipeline.settings.release_metrics import read_release_metrics
from pipeline.stages.gather.rollouts import gather_metrics, gather_run
from pipeline.storage.connect import open_store

_SHOWN = 20
"""Most types in a table; JSON has all."""


@dataclass(frozen=True, slots=True)
class RequestsAsked:
    """Parameters of the forecast.

    Args:
        service: Service of the requests.
        end: Epoch seconds; requests before it are read.
        rise: Of one type's cost, relative.
        beside: Share of the requests that the next release gets, beside this one.
    """

    service: str
    end: float
    rise: float
    beside: float


def show_outlooks(settings: Settings, asked: RequestsAsked, *, as_json: bool) -> None:
    """Print, by metric, the number of periods after which a rise is seen.

    Raises:
        ConfigError: nothing was counted of the service, or it has no such metric.
    """
    chosen = read_release_metrics(settings.release_metrics) if settings.release_metrics else ReleaseMetrics()
    with closing(open_store(settings.store, existing=True)) as store:
        run = gather_run(store, asked.service, asked.end)
        if run is None or not len(run.starts):
            day = f"in the day before {to_iso(asked.end)[:16]} UTC"
            raise ConfigError(f"--service {asked.service}: no requests {day}; --until names another time")
        metrics = gather_metrics(store, asked.service, run, chosen)
    if not metrics.names:
        raise ConfigError(f"--service {asked.service}: no metric of CPU or I/O, nor one of release_metrics")
    for name, outlook in foresee(run, metrics, LookConfig()).items():
        if as_json:
            print_json(_to_json(asked, run, name, outlook))
        else:
            _print(asked, run, name, outlook)


def _to_json(
    request: RequestsAsked, run: Run, metric: str, outlook: RequestOutlook | NotCompared
) -> dict[str, Any]:
    head = {
        "service": request.service,
        "release": run.release,
        "metric": metric,
        "periods": len(run.starts),
        "period_s": run.width_s,
        "rise": request.rise,
        "beside": request.beside,
    }
    if isinstance(outlook, NotCompared):
        return {**head, "compared": False, "why": str(outlook)}
    types = [
        {
            "type": type_outlook.type,
            "cost": type_outlook.cost,
            "share": type_outlook.share,
            "periods": outlook.periods_for(type_outlook, request.rise, request.beside),
            "look": outlook.look_for(type_outlook, request.rise, request.beside),
            "small": outlook.is_small(type_outlook, request.rise, request.beside),
        }
        for type_outlook in outlook.types
    ]
    return {**head, "compared": True, "r_squared": outlook.r_squared, "requests": types}


def _print(request: RequestsAsked, run: Run, metric: str, outlook: RequestOutlook | NotCompared) -> None:
    title = f"{request.service}, {metric}, release {run.release or 'unnamed'}"
    if isinstance(outlook, NotCompared):
        print_lines([f"{title}: {outlook}"])
        return
    columns: tuple[Column[TypeOutlook], ...] = (
        Column("request", "type"),
        Column("of the metric", "share", ".1%"),
        Column(
            f"periods for {request.rise:.3g} more",
            lambda row: outlook.periods_for(row, request.rise, request.beside),
            ",d",
        ),
        Column("reported after", lambda row: _reported(request, run, outlook, row), str),
    )
    print_table(columns, outlook.types[:_SHOWN], title=title)
    if (more := len(outlook.types) - _SHOWN) > 0:
        click.echo(f"and {more:,} types that cost less")
    explains = f"requests explain {outlook.r_squared:.0%} of the metric"
    least = f"changes under {outlook.least_share:.1%} of it are no event"
    click.echo(
        f"{outlook.periods:,} periods of {format_duration(run.width_s)}; {explains}; 90 of 100 cases; "
        f"{least}\n"
    )


def _reported(request: RequestsAsked, run: Run, outlook: RequestOutlook, type_outlook: TypeOutlook) -> str:
    if outlook.is_small(type_outlook, request.rise, request.beside):
        return "too small"
    look = outlook.look_for(type_outlook, request.rise, request.beside)
    return "no look" if look is None else format_duration(look * run.width_s)
