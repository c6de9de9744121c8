"""What a terminal can show: tables, and what others wrote, which may hold control sequences."""

from __future__ import annotations

import unicodedata
from itertools import accumulate

import click
from rich.console import Console
from rich.text import Span, Text

_UNKNOWN_WIDTH = 80  # what rich takes where there is no terminal
_WIDE = 10_000


def table_console() -> Console:
    """Return a console for tables: in a pipe or a file no cell is cut or wrapped, as no width is known.

    On a terminal that is too narrow for a table its lines are wrapped: a cut name would say nothing.
    """
    console = Console(highlight=False, markup=False, emoji=False)  # :id: is no picture
    console.width = max(console.width, _UNKNOWN_WIDTH)
    if not console.is_terminal and console.width == _UNKNOWN_WIDTH:
        console.width = _WIDE
    return console


def escape_controls(text: str) -> str:
    r"""Return a text on one line that cannot steer a terminal: ``\x1b[31m`` stands there as it is read here.

    Spaces of other scripts stay; what changes the direction of writing, and bytes that are no text, do not.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def print_note(text: str) -> None:
    """Print one line on stderr that says what a command assumed."""
    click.echo(f"smidgen: {escape_controls(text)}", err=True)


def escape_line(line: Text) -> Text:
    """Return a line with its controls escaped and its styles kept."""
    positions = [0, *accumulate(len(escape_controls(c)) for c in line.plain)]
    spans = [Span(positions[span.start], positions[span.end], span.style) for span in line.spans]
    return Text(escape_controls(line.plain), style=line.style, spans=spans)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"
