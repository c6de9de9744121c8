"""``smidgen release routes``: the routes of an application and what answers them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import orjson
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from agents.commands.options import roots_option
from pipeline.commands.terminal import escape_controls, print_note, table_console

_EXAMPLES = """\b
Examples:
  smidgen release routes .
  smidgen release routes src --json
  smidgen release routes . --app shop.main:app --python .venv/bin/python
"""

_NAMED = 3
"""Most unreadable files that are named; the rest is counted."""


@click.command(epilog=_EXAMPLES)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False, exists=True))
@roots_option
@click.option(
    "--app",
    metavar="MODULE:NAME",
    help="Import this application from DIR and take its routes instead: its code runs.",
)
@click.option("--python", default="", metavar="FILE", help="Interpreter that imports it (default: this one).")
@click.option("--json", "as_json", is_flag=True, help="Print each route as one line of JSON.")
def routes(folder: Path, source_roots: tuple[str, ...], app: str | None, python: str, as_json: bool) -> None:
    """Show which handler answers which request, by the source in DIR.

    Read are Flask, Django, FastAPI, Starlette and aiohttp in Python, Spring in Java, and Express in
    JavaScript and TypeScript. Nothing of it is imported or run, unless --app says so. Tests are left out.
    """
    from agents.source.routes import import_routes, read_folder

    application = read_folder(folder, source_roots)
    if app:
        application = replace(application, routes=import_routes(folder, app, python))
    sorted_routes = sorted(application.routes, key=lambda route: (route.pattern, route.methods))
    if as_json:
        for route in sorted_routes:
            reached = len(application.graph.reach(route.handler).depths)
            shown = {
                "methods": route.methods,
                "pattern": route.pattern,
                "handler": route.handler,
                "file": route.path,
                "line": route.line,
                "framework": route.framework,
                "reaches": reached,
            }
            click.echo(orjson.dumps(shown).decode())
    else:
        table = Table("request", "handler", "where", box=SIMPLE)
        for route in sorted_routes:
            cells = (route.name, route.handler, f"{route.path}:{route.line}")
            table.add_row(*(Text(escape_controls(cell)) for cell in cells))
        if sorted_routes:
            table_console().print(table)
        click.echo(f"{len(sorted_routes)} routes in {application.files} files")
    if application.unread:
        shown_ones = ", ".join(f"{path} ({why})" for path, why in [*application.unread.items()][:_NAMED])
        more = len(application.unread) - _NAMED
        print_note(f"not read: {shown_ones}{f' and {more} more' if more > 0 else ''}")
