"""``smidgen release routes``: the routes of an application and what answers them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents.commands.options import roots_option
from pipeline.commands.request import EXISTING_FOLDER, argument, json_option, option, takes
from pipeline.commands.tables import Column, print_json_lines, print_table
from pipeline.commands.terminal import print_note

if TYPE_CHECKING:
    from agents.source.routes import CallGraph, Route

_EXAMPLES = """\b
Examples:
  smidgen release routes .
  smidgen release routes src --json
  smidgen release routes . --app shop.main:app --python .venv/bin/python
"""

_NAMED = 3
"""Most unreadable files that are named; the rest is counted."""


@click.command(epilog=_EXAMPLES)
@takes
def routes(
    folder: Path = argument(EXISTING_FOLDER, metavar="DIR"),
    source_roots: tuple[str, ...] = roots_option,
    app: str | None = option(
        metavar="MODULE:NAME",
        help="Application in DIR that is imported for its routes, instead of reading source: its code runs.",
    ),
    python: str = option("", metavar="FILE", help="Interpreter that imports --app (default: this one)."),
    as_json: bool = json_option(help="Print each route as one line of JSON."),
) -> None:
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
        print_json_lines(_to_json(route, application.graph) for route in sorted_routes)
    else:
        if sorted_routes:
            print_table(_COLUMNS, sorted_routes)
        click.echo(f"{len(sorted_routes)} routes in {application.files} files")
    if application.unread:
        named = ", ".join(f"{path} ({why})" for path, why in [*application.unread.items()][:_NAMED])
        more = len(application.unread) - _NAMED
        print_note(f"not read: {named}{f' and {more} more' if more > 0 else ''}")


_COLUMNS: tuple[Column[Route], ...] = (
    Column("request", "name"),
    Column("handler"),
    Column("where", lambda route: f"{route.path}:{route.line}"),
)


def _to_json(route: Route, graph: CallGraph) -> dict[str, Any]:
    return {
        "methods": route.methods,
        "pattern": route.pattern,
        "handler": route.handler,
        "file": route.path,
        "line": route.line,
        "framework": route.framework,
        "reaches": len(graph.reach(route.handler).depths),
    }
