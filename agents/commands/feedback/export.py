"""Export of labelled series: a dataset folder for each service, with people's answers as truth."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click
import numpy as np

from agents.commands.feedback.options import events_service_option, since_option
from pipeline.backtest.dataset import Dataset, write_dataset
from pipeline.commands.options import settings_options
from pipeline.commands.request import Duration, argument, option, takes
from pipeline.messages.inputs import change_from_row
from pipeline.model.errors import ConfigError
from pipeline.model.units import DAY_S, counted
from pipeline.settings.config import Settings
from pipeline.stages.gather.reported import Answered, gather_answered, truth_of
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery, SeriesQuery, Store

AFTER_S = DAY_S
"""Seconds for which series go on after the last answered event."""


@click.command()
@takes
def export(
    folder: Path = argument(metavar="DIR"),
    service: str | None = events_service_option,
    since: float = since_option,
    history: float = option("14d", kind=Duration(), help="Time of series before the first event."),
    settings: Settings = settings_options("store"),
) -> None:
    """Keep the gCPU series of services with answered events: one dataset for each below DIR.

    `smidgen backtest DIR/SERVICE` tries settings on it, and `smidgen score --truth DIR/SERVICE/truth.jsonl`
    holds the events against the answers. Stacks are not kept, so cost shifts are not recognised there.
    """
    with closing(open_store(settings.store, existing=True)) as store:
        by_service: dict[str, list[Answered]] = {}
        for event in gather_answered(store, service, since):
            by_service.setdefault(event.reported.service, []).append(event)
        made = [
            (name, dataset)
            for name, answered in by_service.items()
            if (dataset := _dataset(store, name, answered, history, settings))
        ]
    if not made:
        raise ConfigError("no event of a series of stack samples has an answer")
    for name, dataset in made:
        if "/" in name or name.startswith("."):
            raise ConfigError(f"service {name!r}: no name of a folder; leave it out with --service")
        write_dataset(dataset, folder / name)
        click.echo(f"{folder / name}  {len(dataset.names)} series, {counted(len(dataset.truth), 'answer')}")


def _dataset(
    store: Store, service: str, answered: list[Answered], history_s: float, settings: Settings
) -> Dataset | None:
    truth = truth_of(answered)
    if not truth:
        return None
    width, stack_width = settings.window_s, settings.stack_window_s
    times = [event.reported.change_time for event in answered]
    start = (min(times) - history_s) // stack_width * stack_width
    end = -(-(max(times) + AFTER_S) // stack_width) * stack_width
    series = store.series(SeriesQuery("gcpu", service, start, end, width))
    rows = store.rows(RowQuery("changes", service, start, end))
    return Dataset(
        service=service,
        start=start,
        end=end,
        window_s=width,
        stack_window_s=stack_width,
        kinds=series.kinds,
        names=series.names,
        samples=series.samples,
        totals=series.totals,
        stacks=(),
        stack_samples=np.zeros((0, round((end - start) / stack_width))),
        metrics=(),
        changes=tuple(map(change_from_row, rows)),
        truth=tuple(truth),
    )
