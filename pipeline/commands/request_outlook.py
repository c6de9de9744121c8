"""Output of ``smidgen detectable --requests``: periods until a rise of each type's cost is seen."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pipeline.commands.terminal import escape_controls, table_console
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
        service: Whose requests.
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
    console = table_console()
    for name, found in foresee(run, metrics, LookConfig()).items():
        if as_json:
            click.echo(orjson.dumps(_to_json(asked, run, name, found)).decode())
        else:
            _print(console, asked, run, name, found)


def _to_json(
    asked: RequestsAsked, run: Run, metric: str, found: RequestOutlook | NotCompared
) -> dict[str, Any]:
    head = {
        "service": asked.service,
        "release": run.release,
        "metric": metric,
        "periods": len(run.starts),
        "period_s": run.width_s,
        "rise": asked.rise,
        "beside": asked.beside,
    }
    if isinstance(found, NotCompared):
        return {**head, "compared": False, "why": str(found)}
    types = [
        {
            "type": one.type,
            "cost": one.cost,
            "share": one.share,
            "periods": found.periods_for(one, asked.rise, asked.beside),
            "look": found.look_for(one, asked.rise, asked.beside),
            "small": found.is_small(one, asked.rise, asked.beside),
        }
        for one in found.types
    ]
    return {**head, "compared": True, "r_squared": found.r_squared, "requests": types}


def _print(
    console: Console, asked: RequestsAsked, run: Run, metric: str, found: RequestOutlook | NotCompared
) -> None:
    name, release = escape_controls(metric), escape_controls(run.release)
    title = f"{escape_controls(asked.service)}, {name}, release {release or 'unnamed'}"
    if isinstance(found, NotCompared):
        console.print(Text(f"{title}: {found}"))
        return
    table = Table(
        Column("request", overflow="fold"),
        Column("of the metric", justify="right"),
        Column(f"periods for {asked.rise:.3g} more", justify="right"),
        Column("reported after", justify="right"),
        title=Text(title, style="bold"),
        title_justify="left",
    )
    for one in found.types[:_SHOWN]:
        periods = found.periods_for(one, asked.rise, asked.beside)
        cells = (f"{one.share:.1%}", "never" if periods is None else f"{periods:,}")
        table.add_row(Text(escape_controls(one.type)), *cells, _reported(asked, run, found, one))
    console.print(table)
    if (more := len(found.types) - _SHOWN) > 0:
        console.print(f"and {more:,} types that cost less")
    explained = f"requests explain {found.r_squared:.0%} of the metric"
    least = f"changes under {found.least_share:.1%} of it are no event"
    console.print(
        f"{found.periods:,} periods of {format_duration(run.width_s)}; {explained}; 90 of 100 cases; {least}"
    )
    console.print()


def _reported(asked: RequestsAsked, run: Run, found: RequestOutlook, one: TypeOutlook) -> str:
    if found.is_small(one, asked.rise, asked.beside):
        return "too small"
    look = found.look_for(one, asked.rise, asked.beside)
    return "no look" if look is None else format_duration(look * run.width_s)
