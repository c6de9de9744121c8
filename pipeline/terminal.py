"""What others wrote, as a terminal can show it: commits, paths and messages may hold control sequences."""

from __future__ import annotations

import unicodedata
from itertools import accumulate

from rich.text import Span, Text


def escape_controls(text: str) -> str:
    r"""Return a text on one line that cannot steer a terminal: ``\x1b[31m`` stands there as it is read here.

    Spaces of other scripts stay; what changes the direction of writing, and bytes that are no text, do not.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def escape_line(line: Text) -> Text:
    """Return a line with its controls escaped and its styles kept."""
    positions = [0, *accumulate(len(escape_controls(c)) for c in line.plain)]
    spans = [Span(positions[span.start], positions[span.end], span.style) for span in line.spans]
    return Text(escape_controls(line.plain), style=line.style, spans=spans)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"
