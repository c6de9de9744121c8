"""Formats of access logs: the time, request, status and duration of a line.

Known are the common and the combined format, and the standard formats and the notations of the servers in
``notations``, W3C's with its ``#Fields``, logfmt, Heroku's router among it, LTSV, and JSON, an object a
line. The unit of a duration is that of the server's field; where nothing says the unit it is empty.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.logs.duration import unit_of_word
from agents.logs.foreign_lines import explain_line
from agents.logs.keyed_lines import PART, KeyedLines, read_object
from agents.logs.logfmt import logfmt_pairs, ltsv_pairs
from agents.logs.notations import COMMON, LIST, NOTATIONS, QUOTED, SERVERS, UNREADABLE, Notation
from agents.logs.w3c_lines import NOTHING, W3cLines
from pipeline.model.errors import ConfigError

__all__ = ["NAMES", "NOTHING", "PART", "Fields", "LineFormat", "Parse", "line_format", "typical_line"]

Fields = tuple[str, str, str, str]
"""Texts of time, request (method and target), status and duration; empty where the line has none."""

Parse = Callable[[str], Fields | None]

NAMES = ("auto", "common", "combined", "json", "logfmt", "ltsv", "w3c", *SERVERS)

_NOTHING = ("", "")
_CSV_LIST = r"(?>[^ ,]*(?:(?:, | : )[^ ,]*)*)"
"""Pattern of a list where commas without a space separate the variables."""

_MOST_REST = 40
_MOST_TRIED = 100
"""Lines at the beginning of a log that show its format."""


@dataclass(frozen=True, slots=True)
class LineFormat:
    """A format: ``parse`` returns a line's fields, None if the line does not match.

    ``duration_unit`` is that of durations which are numbers alone; empty if it is not known. ``explain``
    returns what a line that does not match is, or lacks, and what to give. ``remarks`` say what is not read,
    ``whole`` is the pattern of all fields of a line.
    """

    name: str
    parse: Parse
    duration_unit: str = ""
    explain: Callable[[str], str] = explain_line
    remarks: tuple[str, ...] = ()
    whole: re.Pattern[str] | None = None


def line_format(
    text: str, first_line: str = "", keys: Mapping[str, str] | None = None, duration_unit: str = ""
) -> LineFormat:
    """Return a format by its name, or by the notation of a server; ``auto`` uses the first line.

    Args:
        text: One of NAMES, or a format such as ``$remote_addr [$time_local] "$request" $status``.
        first_line: Of the log.
        keys: Of JSON, logfmt or LTSV, by what they say: time, request, method, target, status, duration.
        duration_unit: Unit of durations that are numbers alone, whatever the field says; empty: the field's.

    Raises:
        ConfigError: the text is no format, or the format has no time or request.
    """
    name = _recognised(first_line) or "common" if text == "auto" else text if text in NAMES else ""
    if name in _KEYED:
        lines = KeyedLines(_KEYED[name], keys or {}, duration_unit)
        return LineFormat(name, lines, duration_unit, lines.explain)
    if keys:
        raise ConfigError(f"--key: is of the formats {', '.join(_KEYED)} alone")
    if name == "w3c":
        return LineFormat(name, W3cLines(duration_unit), duration_unit)
    format_ = _server_format(name) if name else _custom(text)
    rest = "" if name in SERVERS else _rest(first_line, format_)
    remarks = (f"what follows in a line, such as {rest!r}, is not read: --format names it",) if rest else ()
    return replace(format_, duration_unit=duration_unit or format_.duration_unit, remarks=remarks)


def typical_line(head: Sequence[str]) -> str:
    """Return the first line in the format of most lines of a log's beginning; empty if all are blank."""
    lines = [line for line in head[:_MOST_TRIED] if line.strip()]
    names = [_recognised(line) for line in lines]
    if not any(names):
        return lines[0] if lines else ""
    name = "w3c" if names[0] == "w3c" else Counter(filter(None, names)).most_common(1)[0][0]
    return lines[names.index(name)]


_KEYED: Mapping[str, Callable[[str], Mapping[str, Any] | None]] = {
    "json": read_object,
    "logfmt": logfmt_pairs,
    "ltsv": ltsv_pairs,
}
"""Formats whose lines have keys: functions that return a line's values by their keys."""


def _recognised(line: str) -> str:
    """Return the name of the format that a line has; empty if none that is known by its lines."""
    if line.startswith("{"):
        return "json"
    if line.startswith("#"):
        return "w3c"
    patterns = {**{name: pattern for name, (pattern, _) in SERVERS.items()}, "common": COMMON}
    matching = (name for name, pattern in patterns.items() if re.match(pattern, line))
    return next(matching, "ltsv" if ltsv_pairs(line) else "logfmt" if logfmt_pairs(line) else "")


def _server_format(name: str) -> LineFormat:
    pattern, unit = SERVERS.get(name, (COMMON, ""))
    compiled = re.compile(pattern)
    whole = (
        compiled if name in SERVERS else re.compile(rf'{COMMON}(?: (?:\d+|-)(?: "{QUOTED}" "{QUOTED}")?)?')
    )
    return LineFormat(name, _by_groups(compiled, set(compiled.groupindex)), unit, whole=whole)


def _rest(line: str, format_: LineFormat) -> str:
    """Return what a line has after the fields of its format, such as a duration; empty if nothing."""
    match = format_.whole.match(line) if format_.whole else None
    return line[match.end() :].strip()[:_MOST_REST] if match else ""


_WORD = re.compile(r" ?([a-zµμ]+)")
"""The word after a variable, as in Spring Boot's ``%D ms``: Apache's notation is that of several servers."""

_TOMCAT = re.compile(
    r"%(?:F|\{[^}]*\}[crs])(?![a-zA-Z])|%\{(?!(?:begin:|end:)?(?:(?:[mu]?sec|[mu]sec_frac)?\}))[^}%]+\}t"
)
"""Directives of Tomcat alone, and Java's forms of times: ``%D`` is in ms before Tomcat 10, in µs since."""


def _custom(text: str) -> LineFormat:
    """Return the format of a server's configuration: each variable extends to the literal text after it."""
    notation = next((notation for notation in NOTATIONS if notation.marks.search(text)), None)
    if notation is None:
        raise ConfigError(
            f"--format: should be one of {', '.join(NAMES)} or a format of a server, not {text[:50]!r}"
        )
    if "%" in text:
        # In Apache's configuration the format is quoted, so quotes inside have a backslash.
        text = text.replace('\\"', '"').replace("\\t", "\t")
    variables = list(notation.variable.finditer(text))
    names = [notation.name(variable) for variable in variables]
    durations = [
        name for name, (says, _) in notation.meanings.items() if says == "duration" and name in names
    ]
    pattern, position, written_unit = "", 0, ""
    seen: set[str] = set()
    for variable, name in zip(variables, names, strict=True):
        pattern += re.escape(text[position : variable.start()])
        position = variable.end()
        says, _ = notation.meanings.get(name, _NOTHING)
        if says in seen or (says == "duration" and name != durations[0]):
            says = ""
        content = _content(notation, name, says, text[position : position + 1])
        if says == "duration" and name == "D" and (word := _WORD.match(text, position)):
            written_unit = unit_of_word(word[1])
        content = f"(?P<{says}>{content})" if says else content
        if name == "status_code":
            content += r"(?: [A-Z][A-Za-z' -]*)?"  # uvicorn's, with its phrase
        if name in notation.wrapped:
            begin, content, end = notation.wrapped[name]
            content = f"{begin}(?P<{says}>{content}){end}" if says else f"{begin}{content}{end}"
        pattern += content
        seen.add(says)
    pattern += re.escape(text[position:].rstrip())
    if "time" not in seen and UNREADABLE in names:
        form = variables[names.index(UNREADABLE)][0]
        what = "may be others: %t has times that can be read, and %{%Y-%m-%dT%H:%M:%S%z}t"
        raise ConfigError(f"--format: times in the form {form[:50]} cannot be read, or {what}")
    if "time" not in seen or not ({"request", "target"} & seen):
        raise ConfigError("--format: should have the time and the request of a line")
    unit = notation.meanings[durations[0]][1] if durations else ""
    if notation.server == "apache" and (written_unit or _TOMCAT.search(text)):
        unit = written_unit
    compiled = re.compile(pattern)
    return LineFormat("custom", _by_groups(compiled, seen - {""}), unit, whole=compiled)


def _content(notation: Notation, name: str, says: str, end: str) -> str:
    """Return the pattern of a variable's value, before the literal text that begins with ``end``."""
    if says == "status":
        # Any other text means that the columns are not those of the format.
        return r"(?:-?\d{1,3}|-)"
    if end == '"':
        return QUOTED
    if end in ("", " ", ","):
        for names, content in notation.spaced.items():
            if re.fullmatch(names, name):
                return _CSV_LIST if content is LIST and end == "," else content
    if end:
        return f"[^{re.escape(end)}]*"
    return r"\S*" if says == "duration" else ".*"


def _by_groups(pattern: re.Pattern[str], names: set[str]) -> Parse:
    """Return the parser of a pattern with groups of these names."""
    match = pattern.match
    method = "method" if "request" not in names and "method" in names else ""
    wanted = ("time", "request" if "request" in names else "target", "status", "duration")
    groups = tuple(name for name in wanted if name in names)
    lacking = [index for index, name in enumerate(wanted) if name not in names]

    def parse(line: str) -> Fields | None:
        fields_match = match(line)
        if not fields_match:
            return None
        fields = list(fields_match.group(*groups))
        for index in lacking:
            fields.insert(index, "")
        if "request" not in names:
            fields[1] = f"{fields_match[method] if method else '-'} {fields[1]}"
        return fields[0], fields[1], fields[2], fields[3]

    def parse_whole(line: str) -> Fields | None:
        fields_match = match(line)
        # one call for all four is faster
        return fields_match.group("time", "request", "status", "duration") if fields_match else None  # type: ignore[return-value]

    return parse_whole if {"time", "request", "status", "duration"} <= names else parse
