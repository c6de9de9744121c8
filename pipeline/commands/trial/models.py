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
        rows = [{"model": model_row.name, "about": model_row.about} for model_row in load_models().values()]
    else:
        rows = _choices(settings, service)
    if as_json:
        for row in rows:
            click.echo(orjson.dumps(row).decode())
    elif available:
        for row in rows:
            click.echo(f"{row['model']}  {row['about']}")
    else:
        _show(rows)


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
    for choice in choices:
        score = next(
            (model_score for model_score in choice["scores"] if model_score["model"] == choice["model"]), None
        )
        table.add_row(
            choice["time"],
            *(Text(escape_controls(choice[name])) for name in ("service", "metric")),
            choice["model"] or "none holds",
            choice["former"] if choice["changed"] else "",
            str(choice["trials"]),
            f"{choice['threshold']:.3%}",
            str(choice["experiments"]),
            *(f"{score[name]:.1%}" if score else "" for name in ("false_positives", "false_negatives")),
        )
    table_console().print(table)
