"""Formats of access logs: the time, request, status and duration of a line.

Known are the common and the combined format, formats of nginx (``log_format``) and Apache (``LogFormat``) in
the notation of their configuration, W3C's of IIS with its ``#Fields``, and JSON, an object a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from pipeline.model.errors import ConfigError

Fields = tuple[str, str, str, str]
"""Texts of time, request (method and target), status and duration; empty where the line has none."""

Parse = Callable[[str], Fields | None]

NAMES = ("auto", "common", "combined", "json", "w3c")

NOTHING: Fields = ("", "", "", "")
"""Stands for a line without a request, such as a comment."""

_QUOTED = r'[^"]*(?:\\"[^"]*)*'
"""Pattern of a quoted text: Apache puts a backslash before a quote inside."""

_COMMON = re.compile(rf'[^\[]*\[([^\]]+)\] "({_QUOTED})" (\d{{3}})\b')

_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_NGINX: Mapping[str, tuple[str, float]] = {
    "time_local": ("time", 0.0),
    "time_iso8601": ("time", 0.0),
    "msec": ("time", 0.0),
    "request": ("request", 0.0),
    "request_method": ("method", 0.0),
    "request_uri": ("target", 0.0),
    "uri": ("target", 0.0),
    "status": ("status", 0.0),
    "request_time": ("duration", 1.0),
    "upstream_response_time": ("duration", 1.0),
}
"""Variables of nginx that are read: the meaning of each, and for durations the unit in seconds."""

_DIRECTIVE = re.compile(r"%(?:[<>]|[!\d,]+)?(?:\{([^}]*)\})?(\^?[a-zA-Z]{1,2}?)(?![a-zA-Z])")
_APACHE: Mapping[str, tuple[str, float]] = {
    "t": ("time", 0.0),
    "r": ("request", 0.0),
    "m": ("method", 0.0),
    "U": ("target", 0.0),
    "s": ("status", 0.0),
    "D": ("duration", 1e-6),
    "T": ("duration", 1.0),
    "T ms": ("duration", 1e-3),
    "T us": ("duration", 1e-6),
}

_KEYS: Mapping[str, tuple[str, ...]] = {
    "time": ("time", "timestamp", "@timestamp", "time_iso8601", "time_local", "msec", "ts"),
    "request": ("request",),
    "method": ("request_method", "method", "http_method"),
    "target": ("request_uri", "uri", "path", "url"),
    "status": ("status", "status_code", "response"),
    "duration": ("request_time", "duration", "duration_ms", "elapsed_ms", "latency"),
}
"""Keys of JSON lines; the first one that a line has counts."""

_W3C = {
    "cs-method": "method",
    "cs-uri-stem": "target",
    "sc-status": "status",
    "time-taken": "duration",
}
_UNIT_ENDINGS = {"_ms": 1e-3, "_us": 1e-6, "_ns": 1e-9}


@dataclass(frozen=True, slots=True)
class LineFormat:
    """A format: ``parse`` returns a line's fields, None if the line does not match."""

    name: str
    parse: Parse
    duration_unit_s: float = 1.0


def line_format(text: str, first_line: str = "", keys: Mapping[str, str] | None = None) -> LineFormat:
    """Return a format by its name, or by the notation of nginx or Apache; ``auto`` uses the first line.

    Args:
        text: One of NAMES, or a format such as ``$remote_addr [$time_local] "$request" $status``.
        first_line: Of the log.
        keys: Of JSON, by what they say: time, request, method, target, status, duration.

    Raises:
        ConfigError: the text is no format, or the format has no time or request.
    """
    name = text if text in NAMES else ""
    if text == "auto":
        name = "json" if first_line.startswith("{") else "w3c" if first_line.startswith("#") else "common"
    if name == "json":
        return _json(keys or {})
    if keys:
        raise ConfigError("--key: is of the format json alone")
    if name == "w3c":
        return LineFormat("w3c", _W3cLines(), 1e-3)
    if name:
        return LineFormat(name, _common)
    if "$" in text:
        return _custom(text, _VARIABLE, lambda placeholder: _NGINX.get(placeholder[1], ("", 0.0)))
    if "%" in text:
        # In the configuration the format is quoted, so quotes inside have a backslash.
        return _custom(text.replace('\\"', '"').replace("\\t", "\t"), _DIRECTIVE, _apache)
    raise ConfigError(
        f"--format: should be one of {', '.join(NAMES)} or a format of nginx or Apache, not {text[:50]!r}"
    )


def _common(line: str) -> Fields | None:
    match = _COMMON.match(line)
    return (*match.groups(), "") if match else None  # type: ignore[return-value]


def _apache(match: re.Match[str]) -> tuple[str, float]:
    argument, directive = match[1], match[2]
    if (
        directive == "t"
        and argument
        and argument.removeprefix("begin:").removeprefix("end:") not in (*("", "sec", "msec", "usec"),)
    ):
        raise ConfigError(f"--format: times in the form {argument[:50]!r} cannot be read")
    return _APACHE.get(f"{directive} {argument}" if directive == "T" and argument else directive, ("", 0.0))


def _custom(
    text: str, variable: re.Pattern[str], meaning: Callable[[re.Match[str]], tuple[str, float]]
) -> LineFormat:
    """Return a format in which each variable extends to the literal text after it."""
    pattern, position, unit_s = "", 0, 1.0
    seen: set[str] = set()
    for placeholder in variable.finditer(text):
        pattern += re.escape(text[position : placeholder.start()])
        position = placeholder.end()
        says, scale = meaning(placeholder)
        if variable is _DIRECTIVE and says == "time" and not placeholder[1]:
            pattern += r"\[(?P<time>[^\]]+)\]"
        else:
            end = text[position : position + 1]
            content = _QUOTED if end == '"' else f"[^{re.escape(end)}]*" if end else ".*"
            pattern += f"(?P<{says}>{content})" if says and says not in seen else content
        if says == "duration" and says not in seen:
            unit_s = scale
        seen.add(says)
    pattern += re.escape(text[position:].rstrip())
    if "time" not in seen or not ({"request", "target"} & seen):
        raise ConfigError("--format: should have the time and the request of a line")
    return LineFormat("custom", _by_groups(re.compile(pattern), seen - {""}), unit_s)


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


class _W3cLines:
    """Parser of W3C's extended format: comment lines name the columns, and may change them."""

    def __init__(self) -> None:
        self._columns: dict[str, int] = {}
        self._width = 0

    def __call__(self, line: str) -> Fields | None:
        if line.startswith("#"):
            if line.startswith("#Fields:"):
                names = line.partition(":")[2].split()
                self._columns = {name: index for index, name in enumerate(names)}
                self._width = len(names)
            return NOTHING
        words = line.split(" ")
        if not self._width or len(words) != self._width:
            return None
        values = {says: words[self._columns[name]] for name, says in _W3C.items() if name in self._columns}
        if not {"time", "cs-uri-stem"} <= self._columns.keys() or "date" not in self._columns:
            return None
        time = f"{words[self._columns['date']]}T{words[self._columns['time']]}"
        request = f"{values.get('method', '-')} {values['target']}"
        return time, request, values.get("status", ""), values.get("duration", "")


def _unit_s(key: str) -> float:
    return next((unit for end, unit in _UNIT_ENDINGS.items() if key.endswith(end)), 1.0)


def _scaled(value: object, scale: float) -> str:
    """Return a number, or a text with one, in seconds; empty if it is no number."""
    try:
        return str(float(str(value)) * scale)
    except ValueError:
        return ""


def _json(keys: Mapping[str, str]) -> LineFormat:
    """Return the format of JSON lines with these keys besides the usual ones."""
    if unknown := keys.keys() - _KEYS.keys():
        raise ConfigError(f"--key: should be one of {', '.join(_KEYS)}, not {min(unknown)[:50]!r}")
    candidates = {says: (keys[says],) if says in keys else usual for says, usual in _KEYS.items()}
    unit_s = _unit_s(keys.get("duration", ""))

    def value(line: dict[str, object], says: str) -> str:
        for key in candidates[says]:
            if (member := line.get(key)) is not None and not isinstance(member, dict | list):
                is_scaled = says == "duration" and unit_s == 1.0
                scale = _unit_s(key) if is_scaled else 1.0
                return str(member) if scale == 1.0 else _scaled(member, scale)
        return ""

    def parse(text: str) -> Fields | None:
        try:
            line = orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(line, dict):
            return None
        target = value(line, "target")
        request = f"{value(line, 'method') or '-'} {target}" if target else value(line, "request")
        time = value(line, "time")
        status = value(line, "status").removesuffix(".0")  # some writers print all numbers as floats
        return (time, request, status, value(line, "duration")) if time and request else None

    return LineFormat("json", parse, unit_s)
