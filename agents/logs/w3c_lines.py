"""Lines of W3C's extended log format, as IIS, CloudFront and proxies write it."""

from __future__ import annotations

import re

NOTHING = ("", "", "", "")
"""Fields of a line without a request, such as a comment."""

_COLUMNS = {
    "cs-method": "method",
    "cs-uri-stem": "target",
    "cs-uri-path": "target",
    "cs-uri": "target",
    "sc-status": "status",
    "time-taken": "duration",
}
_MILLISECONDS = re.compile(
    r"Microsoft Internet Information|Internet Security and Acceleration|Forefront TMG|SGOS"
)
"""Software whose ``time-taken`` is in milliseconds; the W3C's draft has seconds, as a decimal number."""


class W3cLines:
    """Parser of lines; comment lines name the software and the columns, and may change them.

    ``time-taken`` is in the unit of the software. Of other software a decimal number is in seconds, as the
    draft says; a whole number, and any number if no line names the software, has no unit that is known.

    Args:
        unit: Unit of durations, whatever the software; empty: that of the software.
    """

    def __init__(self, unit: str = "") -> None:
        self._given_unit = unit
        self._software: str | None = None
        self._columns: dict[str, int] = {}
        self._separator = " "
        self._time = self._date = -1
        self._width = 0
        self._date_of_log = ""
        self._is_cloudfront = False

    def __call__(self, line: str) -> tuple[str, str, str, str] | None:
        """Return the fields of a line, None if it has none."""
        if line.startswith("#"):
            self._direct(line)
            return NOTHING
        words = line.split("\t" if "\t" in line else " ")
        columns = self._columns
        if len(words) != self._width or "target" not in columns or self._time < 0:
            return None
        date = words[self._date] if self._date >= 0 else self._date_of_log
        if not date:
            return None
        method = words[columns["method"]] if "method" in columns else "-"
        status = words[columns["status"]] if "status" in columns else ""
        duration = self._duration(words[columns["duration"]]) if "duration" in columns else ""
        return f"{date}T{words[self._time]}Z", f"{method} {words[columns['target']]}", status, duration

    def _direct(self, line: str) -> None:
        directive, _, value = line.partition(":")
        if directive == "#Software":
            self._software = value
        elif directive == "#Date":
            self._date_of_log = value.split()[0] if value.split() else ""
        elif directive == "#Fields":
            names = value.split()
            self._width = len(names)
            positions = {name: index for index, name in enumerate(names)}
            self._time, self._date = positions.get("time", -1), positions.get("date", -1)
            wanted = {name: says for name, says in reversed(_COLUMNS.items()) if name in positions}
            self._columns = {says: positions[name] for name, says in wanted.items()}
            self._is_cloudfront = "x-edge-location" in positions

    def _duration(self, text: str) -> str:
        """Return a duration with its unit, if the unit is known."""
        if self._given_unit or not text[-1:].isdecimal():
            return text
        if self._is_cloudfront:
            return f"{text} s"
        if self._software is None:
            return text
        if _MILLISECONDS.search(self._software):
            return f"{text} ms"
        return f"{text} s" if "." in text else text
