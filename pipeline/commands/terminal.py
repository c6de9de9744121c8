"""Output for terminals: tables, and foreign text, which may hold control sequences."""

from __future__ import annotations

import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate

import click
from rich.console import Console
from rich.text import Span, Text

QUIET_S = 3.0
"""Seconds between two lines of progress."""

_UNKNOWN_WIDTH = 80  # rich's own width without a terminal
_WIDE = 10_000


def table_console() -> Console:
    """Return a console for tables: in a pipe or a file no cell is cut or wrapped, as no width is known.

    On a terminal that is too narrow for a table its lines are wrapped: a cut name identifies nothing.
    """
    console = Console(highlight=False, markup=False, emoji=False)  # :id: is not an emoji
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


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print texts that may hold control sequences, each on a line."""
    for line in lines:
        click.echo(escape_controls(line), err=err)


def print_styled(lines: Iterable[Text]) -> None:
    """Print styled texts that may hold control sequences, each on a line."""
    console = Console(soft_wrap=True, highlight=False)
    for line in lines:
        console.print(escape_line(line))
    console.file.flush()


def print_note(text: str) -> None:
    """Print one line on stderr about an assumption of the command."""
    click.echo(f"smidgen: {escape_controls(text)}", err=True)


@contextmanager
def progress_lines(command: str, whole: str) -> Iterator[Callable[[], None]]:
    """Report on stderr every few seconds how many of a whole, such as ``5 files``, are done.

    Calling the yielded function counts one more. Lines suit a terminal and a pipe; nothing is written within
    ``QUIET_S``.
    """
    began, done, ended = time.monotonic(), 0, threading.Event()

    def speak() -> None:
        while not ended.wait(QUIET_S):
            waited = time.monotonic() - began
            click.echo(f"{command}: {done:,} of {whole} after {waited:.0f} s", err=True)

    def advance() -> None:
        nonlocal done
        done += 1

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield advance
    finally:
        ended.set()
        speaker.join()


def escape_line(line: Text) -> Text:
    """Return a line with its controls escaped and its styles kept."""
    positions = [0, *accumulate(len(escape_controls(c)) for c in line.plain)]
    spans = [Span(positions[span.start], positions[span.end], span.style) for span in line.spans]
    return Text(escape_controls(line.plain), style=line.style, spans=spans)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"
