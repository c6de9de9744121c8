"""Formats of access logs: the time, request, status and duration of a line.

Known are the common and the combined format, the standard formats of some servers, the notations of nginx
(``log_format``), Apache (``LogFormat``), gunicorn, Envoy and morgan, W3C's with its ``#Fields``, and JSON, an
object a line. The unit of a duration is that of the server's field; where nothing says the unit it is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agents.logs.json_lines import JsonLines
from agents.logs.w3c_lines import NOTHING, W3cLines
from pipeline.model.errors import ConfigError

__all__ = ["NAMES", "NOTHING", "Fields", "LineFormat", "Parse", "line_format"]

Fields = tuple[str, str, str, str]
"""Texts of time, request (method and target), status and duration; empty where the line has none."""

Parse = Callable[[str], Fields | None]

_QUOTED = r'[^"]*(?:\\"[^"]*)*'
"""Pattern of a quoted text: Apache puts a backslash before a quote inside."""

_REQUEST = rf'"(?P<request>{_QUOTED})"'
_COMMON = rf"[^\[]*\[(?P<time>[^\]]+)\] {_REQUEST} (?P<status>\d{{3}})\b"

_SERVERS: Mapping[str, tuple[str, str]] = {
    "alb": (
        r"(?:[a-z0-9]+ )?(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) \S+ \S+ \S+ "
        rf"(?P<duration>-?[\d.]+ -?[\d.]+ -?[\d.]+) (?P<status>\d{{3}}|-) \S+ \S+ \S+ {_REQUEST}",
        "s",
    ),
    "envoy": (
        rf"\[(?P<time>\d{{4}}-[^\]]+)\] {_REQUEST} (?P<status>\d+) \S+ "
        rf'(?:\S+ \S+ "{_QUOTED}" )?\d+ \d+ (?P<duration>\d+) (?:\d+|-) "',
        "ms",
    ),
    "gin": (
        r"\[GIN\] (?P<time>\d{4}/\d\d/\d\d - [\d:]+) \|\s*(?P<status>\d{3}) \|(?P<duration>[^|]*)\|"
        r'[^|]*\|\s*(?P<method>[A-Z]+)\s+"?(?P<target>[^"\s]+)',
        "",
    ),
    "haproxy": (
        r".*?\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:[\d:.]+)\] \S+ \S+ "
        r'(?:-?\d+/){4}(?P<duration>[-+]?\d+) (?P<status>-?\d+) [^"]*"(?P<request>[^"]*)',
        "ms",
    ),
    "traefik": (
        rf'{_COMMON} (?:\d+|-) "{_QUOTED}" "{_QUOTED}" (?:\d+|-) "{_QUOTED}" "{_QUOTED}" (?P<duration>\d+ms)',
        "ms",
    ),
}
"""Standard formats of servers: pattern, and the unit of their durations.

Sources: Amazon's "Access logs for your Application Load Balancer", Envoy's "Default format string" (Istio's
has three fields more), gin's ``LogFormatter``, HAProxy's manual 8.2.3, and Traefik's "Common Log Format".
"""

NAMES = ("auto", "common", "combined", "json", "w3c", *_SERVERS)

Meaning = tuple[str, str]
"""What a variable says, and the unit of a duration; empty if nothing that is read."""

_NOTHING: Meaning = ("", "")


@dataclass(frozen=True, slots=True)
class _Notation:
    """Variables of a server's configuration.

    Attributes:
        variable: Pattern of a variable.
        marks: Pattern that only formats in this notation have.
        meanings: By the name of the variable; of several durations the one that stands first here counts.
        name: Returns the name of a variable that was matched.
        bracketed: Variables that the server writes in brackets.
    """

    marks: re.Pattern[str]
    variable: re.Pattern[str]
    meanings: Mapping[str, Meaning]
    name: Callable[[re.Match[str]], str] = lambda variable: variable[1]
    bracketed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LineFormat:
    """A format: ``parse`` returns a line's fields, None if the line does not match.

    ``duration_unit`` is that of durations which are numbers alone; empty if it is not known.
    """

    name: str
    parse: Parse
    duration_unit: str = ""


def line_format(
    text: str, first_line: str = "", keys: Mapping[str, str] | None = None, duration_unit: str = ""
) -> LineFormat:
    """Return a format by its name, or by the notation of a server; ``auto`` uses the first line.

    Args:
        text: One of NAMES, or a format such as ``$remote_addr [$time_local] "$request" $status``.
        first_line: Of the log.
        keys: Of JSON, by what they say: time, request, method, target, status, duration.
        duration_unit: Unit of durations that are numbers alone, whatever the field says; empty: the field's.

    Raises:
        ConfigError: the text is no format, or the format has no time or request.
    """
    name = _recognised(first_line) if text == "auto" else text if text in NAMES else ""
    if name == "json":
        return LineFormat(name, JsonLines(keys or {}, duration_unit), duration_unit)
    if keys:
        raise ConfigError("--key: is of the format json alone")
    if name == "w3c":
        return LineFormat(name, W3cLines(duration_unit), duration_unit)
    format_ = _server_format(name) if name else _custom(text)
    return replace(format_, duration_unit=duration_unit or format_.duration_unit)


def _recognised(first_line: str) -> str:
    """Return the name of the format that a line has; common if it has none."""
    if first_line.startswith("{"):
        return "json"
    if first_line.startswith("#"):
        return "w3c"
    servers = (name for name, (pattern, _) in _SERVERS.items() if re.match(pattern, first_line))
    return next(servers, "common")


def _server_format(name: str) -> LineFormat:
    pattern, unit = _SERVERS.get(name, (_COMMON, ""))
    compiled = re.compile(pattern)
    return LineFormat(name, _by_groups(compiled, set(compiled.groupindex)), unit)


def _apache_name(variable: re.Match[str]) -> str:
    argument, directive = variable[1], variable[2]
    if directive == "t" and argument:
        if argument.removeprefix("begin:").removeprefix("end:") not in ("", "sec", "msec", "usec"):
            raise ConfigError(f"--format: times in the form {argument[:50]!r} cannot be read")
        return "t as a number"
    return f"{directive} {argument}" if directive == "T" and argument else directive


_NOTATIONS = (
    _Notation(
        re.compile(r"%\("),
        re.compile(r"%\((\{[^}]*\}\w|\w+)\)s"),
        {
            "t": ("time", ""),
            "asctime": ("time", ""),
            "r": ("request", ""),
            "request_line": ("request", ""),
            "m": ("method", ""),
            "U": ("target", ""),
            "s": ("status", ""),
            "status_code": ("status", ""),
            "D": ("duration", "us"),
            "L": ("duration", "s"),
            "M": ("duration", "ms"),
            "T": ("duration", "s"),
        },
        bracketed=frozenset({"t"}),
    ),  # gunicorn's access_log_format, and uvicorn's
    _Notation(
        re.compile(r"%[A-Z_]{4,}(?:\([^)]*\))?%"),
        re.compile(r"%([A-Z_0-9]+(?:\([^)]*\))?(?::\d+)?)%"),
        {
            "START_TIME": ("time", ""),
            "REQ(:METHOD)": ("method", ""),
            "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)": ("target", ""),
            "REQ(:PATH)": ("target", ""),
            "RESPONSE_CODE": ("status", ""),
            "DURATION": ("duration", "ms"),
        },
    ),  # Envoy's format strings
    _Notation(
        re.compile(r"(?<!\w):(?:method|url|response-time|total-time)\b"),
        re.compile(
            r":((?:method|url|status|response-time|total-time|date)(?![-\w])|[a-z][a-z-]+)(?:\[[^\]]*\])?"
        ),
        {
            "date": ("time", ""),
            "method": ("method", ""),
            "url": ("target", ""),
            "status": ("status", ""),
            "total-time": ("duration", "ms"),
            "response-time": ("duration", "ms"),
        },
    ),  # morgan's, of Node.js
    _Notation(
        re.compile(r"\$"),
        re.compile(r"\$\{?(\w+)\}?"),
        {
            "time_local": ("time", ""),
            "time_iso8601": ("time", ""),
            "msec": ("time", ""),
            "request": ("request", ""),
            "request_method": ("method", ""),
            "request_uri": ("target", ""),
            "uri": ("target", ""),
            "status": ("status", ""),
            "request_time": ("duration", "s"),
            "upstream_response_time": ("duration", "s"),
        },
    ),  # nginx' log_format
    _Notation(
        re.compile(r"%"),
        re.compile(r"%(?:[<>]|[!\d,]+)?(?:\{([^}]*)\})?(\^?[a-zA-Z]{1,2}?)(?![a-zA-Z])"),
        {
            "t": ("time", ""),
            "t as a number": ("time", ""),
            "r": ("request", ""),
            "m": ("method", ""),
            "U": ("target", ""),
            "s": ("status", ""),
            "T us": ("duration", "us"),
            "D": ("duration", "us"),
            "T ms": ("duration", "ms"),
            "T s": ("duration", "s"),
            "T": ("duration", "s"),
        },
        _apache_name,
        frozenset({"t"}),
    ),  # Apache's LogFormat
)

_TOMCAT = re.compile(r"%(?:F|\{[^}]*\}[crs])(?![a-zA-Z])")
"""Directives of Tomcat alone, whose ``%D`` is in milliseconds before Tomcat 10 and in microseconds since."""


def _custom(text: str) -> LineFormat:
    """Return the format of a server's configuration: each variable extends to the literal text after it."""
    notation = next((notation for notation in _NOTATIONS if notation.marks.search(text)), None)
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
    pattern, position = "", 0
    seen: set[str] = set()
    for variable, name in zip(variables, names, strict=True):
        pattern += re.escape(text[position : variable.start()])
        position = variable.end()
        end = text[position : position + 1]
        content = _QUOTED if end == '"' else f"[^{re.escape(end)}]*" if end else ".*"
        says, _ = notation.meanings.get(name, _NOTHING)
        if says in seen or (says == "duration" and name != durations[0]):
            says = ""
        content = f"(?P<{says}>{content})" if says else content
        if name in notation.bracketed:
            content = r"\[(?P<time>[^\]]+)\]" if says else r"\[[^\]]+\]"
        pattern += content
        seen.add(says)
    pattern += re.escape(text[position:].rstrip())
    if "time" not in seen or not ({"request", "target"} & seen):
        raise ConfigError("--format: should have the time and the request of a line")
    unit = notation.meanings[durations[0]][1] if durations else ""
    if notation is _NOTATIONS[-1] and _TOMCAT.search(text):
        unit = ""
    return LineFormat("custom", _by_groups(re.compile(pattern), seen - {""}), unit)


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
