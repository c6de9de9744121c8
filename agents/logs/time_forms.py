"""Forms in which servers are configured to write times: which of them can be read for sure.

A form is tried on one moment, whose day, month and hour differ: if the time that it writes is read as that
moment, so are others.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from agents.logs.log_time import log_time

MOST_WORDS = 6
"""Most parts between spaces of a time that is read."""

_MOMENT = datetime(2026, 2, 3, 16, 5, 6, 123_456, tzinfo=UTC)
_SECONDS = int(_MOMENT.timestamp())
_APACHE_PART = re.compile(r"%\{(?:begin:|end:)?([^}]*)\}t")
_APACHE_WORDS = {
    "sec": f"{_SECONDS}",
    "msec": f"{_SECONDS}123",
    "usec": f"{_SECONDS}123456",
    "msec_frac": "123",
    "usec_frac": "123456",
}
_JAVA_PART = re.compile(r"'([^']*)'|([a-zA-Z])(\2*)|.", re.DOTALL)
_JAVA = {
    **{"y": "%Y", "yy": "%y", "u": "%Y", "MMM": "%b", "MMMM": "%B", "E": "%a", "EEEE": "%A", "a": "%p"},
    **{"M": "%m", "d": "%d", "H": "%H", "h": "%I", "m": "%M", "s": "%S", "Z": "%z", "X": "Z", "z": "%Z"},
}
"""Directives of strftime for symbols of Java; one that is repeated otherwise means the same."""


def apache_words(form: str) -> int:
    """Return the number of words of times in a form such as ``%{%d/%b/%Y:%T}t.%{msec_frac}t``.

    0 means that they cannot be read, or may be other times. Apache's directives are those of strftime, Tomcat
    has Java's: ``%{yyyy-MM-dd HH:mm:ss.SSS}t``.
    """
    return _words(_APACHE_PART.sub(lambda part: _apache_sample(part[1]), form))


def java_words(form: str) -> int:
    """Return the number of words of times in a form such as ``yyyy-MM-dd HH:mm:ss``; 0 as above."""
    return _words(_java_sample(form))


def _apache_sample(form: str) -> str:
    if form in _APACHE_WORDS:
        return _APACHE_WORDS[form]
    return _MOMENT.strftime(form.replace("%s", f"{_SECONDS}")) if "%" in form else _java_sample(form)


def _java_sample(form: str) -> str:
    """Return the moment in one of Java's forms; what is not known there stands for itself."""

    def written(part: re.Match[str]) -> str:
        text, symbol = part[0], part[2]
        if not symbol:
            return part[1] if part[1] is not None else text
        if symbol == "S":
            return "123456789"[: len(text)]
        return _MOMENT.strftime(_JAVA.get(text) or _JAVA.get(symbol, text))

    return _JAVA_PART.sub(written, form)


def _words(sample: str) -> int:
    words = len(sample.split(" "))
    try:
        seconds, _ = log_time(sample)
    except ValueError:
        return 0
    return words if 0 <= seconds - _SECONDS < 1 and words <= MOST_WORDS else 0
