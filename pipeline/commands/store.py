"""``smidgen store``: the tables."""

from __future__ import annotations

from contextlib import closing

import click

from pipeline.commands.options import settings_options
from pipeline.commands.request import takes
from pipeline.settings.config import Settings, redact
from pipeline.storage.connect import open_store


@click.group()
def store() -> None:
    """Create or upgrade the tables."""


@store.command()
@takes
def migrate(settings: Settings = settings_options("store", "log_level")) -> None:
    """Create the database and its tables, or bring them up to date; safe to repeat."""
    with closing(open_store(settings.store)) as opened:
        opened.migrate()
    click.echo(f"{redact(settings.store)}: tables are up to date")
