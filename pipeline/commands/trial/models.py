"""``smidgen trial models``: the model of each metric's trials, and its date."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click
import orjson

from pipeline.commands.options import settings_options
from pipeline.commands.request import json_option, option, takes
from pipeline.commands.tables import Column, print_rows
from pipeline.commands.terminal import print_lines
from pipeline.model.clock import to_iso
from pipeline.settings.config import Settings
from pipeline.stages.gather.trial_models import load_models
from pipeline.storage.interface import RowQuery


@click.command()
@takes
def models(
    service: str | None = option(metavar="NAME", help="Service of the choices (default: all)."),
    available: bool = option(help="List the models to choose from, those of plug-ins too."),
    as_json: bool = json_option("a choice, or a model"),
    settings: Settings = settings_options("store", "log_level"),
) -> None:
    """Show which model `smidgen worker judge` chose for each metric, the latest last, and what it was before.

    A choice is made for experiments of as many trials and one threshold, by A/A trials of two weeks. It holds
    for a day of event time.
    """
    if available:
        rows = [{"model": model.name, "about": model.about} for model in load_models().values()]
    else:
        rows = _choices(settings, service)
    if available and not as_json:
        print_lines(f"{row['model']}  {row['about']}" for row in rows)
    else:
        print_rows(_COLUMNS, rows, as_json=as_json)


def _choices(settings: Settings, service: str | None) -> list[dict[str, Any]]:
    from pipeline.storage.connect import open_store

    with closing(open_store(settings.store, existing=True)) as store:
        rows = store.rows(RowQuery("trial_models", service))
    return [
        {**row, "time": to_iso(row["time"]), "scores": orjson.loads(row["scores"]), "changed": _changed(row)}
        for row in rows
    ]


def _changed(row: dict[str, Any]) -> bool:
    return bool(row["former"]) and row["former"] != row["model"]


def _score(choice: dict[str, Any], name: str) -> float | None:
    scores = (score[name] for score in choice["scores"] if score["model"] == choice["model"])
    return next(scores, None)


_COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    Column("time"),
    Column("service"),
    Column("metric"),
    Column("model", lambda choice: choice["model"] or "none holds"),
    Column("before", lambda choice: choice["former"] if choice["changed"] else ""),
    Column("trials", form="d"),
    Column("threshold", form=".3%"),
    Column("A/A", "experiments", "d"),
    Column("false +", lambda choice: _score(choice, "false_positives"), ".1%"),
    Column("false -", lambda choice: _score(choice, "false_negatives"), ".1%"),
)
