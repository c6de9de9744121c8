"""``smidgen trial models``: the model of each metric's trials, and its date."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click
import orjson
from rich.box import SIMPLE
from rich.table import Column, Table
from rich.text import Text

from pipeline.commands.options import settings_options
from pipeline.commands.terminal import escape_controls, table_console
from pipeline.model.clock import to_iso
from pipeline.settings.config import Settings
from pipeline.stages.gather.trial_models import load_models
from pipeline.storage.interface import RowQuery

_FIGURES = ("trials", "threshold", "A/A", "false +", "false -")


@click.command()
@click.option("--service", metavar="NAME", help="Only those of one service.")
@click.option("--available", is_flag=True, help="List the models to choose from, those of plug-ins too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a choice, or a model.")
@settings_options("store", "log_level")
def models(settings: Settings, service: str | None, available: bool, as_json: bool) -> None:
    """Show which model `smidgen worker judge` chose for each metric, the latest last, and what it was before.

    A choice is made for experiments of as many trials and one threshold, by A/A trials of two weeks. It holds
    for a day of event time.
    """
    if available:
        found = [{"model": one.name, "about": one.about} for one in load_models().values()]
    else:
        found = _choices(settings, service)
    if as_json:
        for each in found:
            click.echo(orjson.dumps(each).decode())
    elif available:
        for each in found:
            click.echo(f"{each['model']}  {each['about']}")
    else:
        _show(found)


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


def _show(choices: list[dict[str, Any]]) -> None:
    figures = (Column(name, justify="right") for name in _FIGURES)
    table = Table("time", "service", "metric", "model", "before", *figures, box=SIMPLE)
    for each in choices:
        score = next((one for one in each["scores"] if one["model"] == each["model"]), None)
        table.add_row(
            each["time"],
            *(Text(escape_controls(each[name])) for name in ("service", "metric")),
            each["model"] or "none holds",
            each["former"] if each["changed"] else "",
            str(each["trials"]),
            f"{each['threshold']:.3%}",
            str(each["experiments"]),
            *(f"{score[name]:.1%}" if score else "" for name in ("false_positives", "false_negatives")),
        )
    table_console().print(table)
