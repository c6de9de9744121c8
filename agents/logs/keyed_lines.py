"""Lines with keys: which keys say the time, request, status and duration, and the unit of the duration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import orjson

from agents.logs.duration import unit_of_key
from agents.logs.foreign_lines import UNKNOWN, explain_line
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError

_KEYS: Mapping[str, Sequence[str]] = {
    says: keys.split()
    for says, keys in {
        "time": "time timestamp @timestamp time_iso8601 time_local msec ts start_time StartUTC @t Timestamp "
        "started_at requestTime EdgeStartTimestamp timeStamp t",
        "request": "request req",
        "method": "request_method method http_method RequestMethod httpMethod httpRequest.requestMethod "
        "http.request.method request.method req.method ClientRequestMethod properties.httpMethod Method "
        "payload.method",
        "target": "request_uri uri path url RequestPath httpRequest.requestUrl url.path request.uri req.url "
        "ClientRequestURI ClientRequestPath properties.requestUri httpRequest.path Path payload.path",
        "status": "status_code response_code StatusCode statusCode DownstreamStatus status response "
        "httpRequest.status http.response.status_code response.status res.statusCode EdgeResponseStatus "
        "properties.httpStatus properties.httpStatusCode httpResponse.status payload.status",
        "id": "reqId req_id requestId request_id req.id request.id",
    }.items()
}
"""Keys of what a line says; the first one that a line has counts. A dot leads into an object."""


@dataclass(frozen=True, slots=True)
class _DurationField:
    """Field of a framework: its unit belongs to the key together with the keys beside it."""

    key: str
    unit: str
    beside: frozenset[str] = frozenset()
    is_decimal: bool = False  # the framework writes no whole number


def _field(key: str, unit: str, *beside: str, is_decimal: bool = False) -> _DurationField:
    return _DurationField(key, unit, frozenset(beside), is_decimal)


_DURATIONS = (
    _field("latency_human", ""),  # Echo, a text with a unit
    _field("latency", "ns", "remote_ip", "bytes_in"),  # Echo
    _field("request_time", "s", is_decimal=True),  # nginx
    _field("upstream_response_time", "s", is_decimal=True),  # nginx
    _field("Duration", "ns", "RequestMethod", "DownstreamStatus"),  # Traefik
    _field("Elapsed", "ms", "RequestMethod", "StatusCode"),  # Serilog.AspNetCore
    _field("duration", "ms", "controller", "action"),  # Lograge
    _field("duration", "ms", "response_flags"),  # Envoy, Istio
    _field("duration", "s", "request", "resp_headers", is_decimal=True),  # Caddy
    _field("responseTime", "ms", "req", "res"),  # pino-http
    _field("responseTime", "ms", "reqId", "res"),  # Fastify
    _field("httpRequest.latency", ""),  # Google's load balancers, a text with a unit
    _field("event.duration", "ns"),  # Elastic Common Schema
    _field("latencies.request", "ms"),  # Kong
    _field("responseLatency", "ms"),  # Amazon API Gateway
    _field("properties.timeTaken", "s", is_decimal=True),  # Azure's gateways
    _field("EdgeTimeToFirstByteMs", "ms"),  # Cloudflare
    _field("reqtime", "s", is_decimal=True),  # LTSV
    _field("reqtime_microsec", "us"),  # LTSV
    _field("service", "ms", "dyno", "fwd"),  # Heroku's router
)
"""Fields whose unit is known; the first one that a line has counts."""

_BARE = (
    "duration",
    "latency",
    "elapsed",
    "response_time",
    "responseTime",
    "elapsedTime",
    "took",
    "time_taken",
    "time_elapsed",
    "dur",
)
"""Keys of durations whose unit nothing says, unless the text does."""

_NAMED = re.compile(
    r"(?:(?:http|req|request|res|response|server|total)[_.-])*(?:duration|latency|elapsed|took|time_?taken"
    r"|(?:elapsed|execution|processing|request|response|total)_?time)"
    r"[_.-]?[a-zµ]+",
    re.IGNORECASE,
)
"""Keys of durations with the unit at their end; other prefixes, such as ``db_``, name parts of a request."""

PART = ("", "", "", "")
"""Fields of a line with a part of a request, which another line counts."""


class _Begun(NamedTuple):
    """A request, and the first line that named it; a log's head is read twice."""

    request: str
    line: str


class _Said(IntEnum):
    """What a line says of the end of its request."""

    NOTHING = 0
    DURATION = 1
    STATUS = 2


_MOST_SHAPES = 1000
_MOST_BEGUN = 10_000

_PROCESS = ("hostname", "pid")
"""Keys of the process within which the id of a request is unique."""

_PART_LOGGERS = re.compile(r"http\.(?!log\.access)")
"""Caddy's loggers of what happens within a request; its access log has the request once more."""

_HTTP_STATUS = re.compile(r"[1-5]\d\d")

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where lines with the same keys have what is read."""

    paths: Mapping[str, tuple[_Path, ...]]
    durations: tuple[tuple[_Path, _DurationField], ...]


class KeyedLines:
    """Parser of lines.

    Some frameworks write a line when a request begins and another one when it ends (django-structlog,
    Fastify, bunyan), or name the request in every line within it. A line of a request counts if it says as
    much of its end as any line before: a status, or else a duration, or else nothing, then once for each id.
    Where the last line does not name the request, its id does.

    Args:
        read: Returns the values of a line by their keys, None if it is no such line.
        keys: Keys by what they say, instead of the usual ones.
        unit: Unit of durations that are numbers alone; empty: that of the field.

    Raises:
        ConfigError: nothing is read that is called like a name in ``keys``.
    """

    def __init__(
        self, read: Callable[[str], Mapping[str, Any] | None], keys: Mapping[str, str], unit: str = ""
    ) -> None:
        says = (*_KEYS, "duration")
        if unknown := keys.keys() - set(says):
            raise ConfigError(f"--key: should be one of {', '.join(says)}, not {min(unknown)[:50]!r}")
        self._read = read
        self._keys = {name: (keys[name],) if name in keys else usual for name, usual in _KEYS.items()}
        self._duration_key = keys.get("duration", "")
        self._has_given_unit = bool(unit)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._most_said = _Said.NOTHING  # of the end of a request, in any line so far
        self._begun: dict[tuple[str, ...], _Begun] = {}  # by the id of the request

    def __call__(self, text: str) -> tuple[str, str, str, str] | None:
        """Return the fields of a line, PART if another line counts its request, None if it has none."""
        line = self._read(text)
        if line is None:
            return None
        keys = tuple(line)
        shape = self._shapes.get(keys)
        if shape is None:
            shape = self._shape(line)
        paths = shape.paths
        time = _value(line, paths["time"])
        target = _value(line, paths["target"])
        request = (
            f"{_value(line, paths['method']).upper() or '-'} {target}"
            if target
            else _value(line, paths["request"])
        )
        status = _value(line, paths["status"]) or _http_status(line.get("code"))
        if status[3:4] in (".", " "):  # 200.0 and 200 OK, as some frameworks write it
            status = status[:3]
        duration = self._duration(line, shape.durations)
        said = _said(status, duration)
        logger = line.get("logger")
        if said is _Said.STATUS and time and request and logger is None and not self._begun:
            self._most_said = said  # the usual line, quickly
            return time, request, status, duration
        is_part = isinstance(logger, str) and _PART_LOGGERS.match(logger) is not None
        if id_ := _value(line, paths["id"]):
            begun = self._begun_by((id_, *(str(line.get(name)) for name in _PROCESS)), request, text, said)
            is_part = is_part or (not said and begun.request == request and begun.line != text)
            request = request or (begun.request if said is _Said.STATUS else "")
        if not (time and request):
            return None
        self._most_said = max(self._most_said, said)
        return PART if is_part or said < self._most_said else (time, request, status, duration)

    def _begun_by(self, key: tuple[str, ...], request: str, text: str, said: _Said) -> _Begun:
        """Return the request that an earlier line of this id named, and forget it at its end."""
        begun = self._begun.get(key, _Begun("", ""))
        if said is _Said.STATUS:
            self._begun.pop(key, None)
        elif request and begun.request != request:
            if len(self._begun) >= _MOST_BEGUN:
                del self._begun[next(iter(self._begun))]
            self._begun[key] = _Begun(request, text)
        return begun

    def explain(self, text: str) -> str:
        """Return what a line lacks that could not be read, and what to give."""
        line = self._read(text)
        foreign = explain_line(text)
        if line is None or foreign != UNKNOWN:
            return foreign
        paths = self._shape(line).paths
        lacking = [] if _value(line, paths["time"]) else ["time"]
        lacking += [] if _value(line, paths["target"]) or _value(line, paths["request"]) else ["target"]
        return f"without {' and '.join(lacking)}: --key names their keys; there are {listed(list(line))}"

    def _shape(self, line: Mapping[str, Any]) -> _Shape:
        paths = {says: tuple(_paths(line, keys)) for says, keys in self._keys.items()}
        if self._duration_key:
            fields = [field for field in _DURATIONS if field.key == self._duration_key]
            fields.append(_field(self._duration_key, unit_of_key(self._duration_key)))
        else:
            named = [_field(key, unit_of_key(key)) for key in line if _NAMED.fullmatch(key)]
            named = [field for field in named if field.unit]
            fields = [*_DURATIONS, *named, *(_field(key, "") for key in _BARE)]
        durations = tuple(
            (path, field)
            for field in fields
            if field.beside <= line.keys()
            for path in _paths(line, (field.key,))
        )
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        shape = self._shapes[tuple(line)] = _Shape(paths, durations)
        return shape

    def _duration(self, line: Mapping[str, Any], durations: tuple[tuple[_Path, _DurationField], ...]) -> str:
        """Return the first duration that a line has, with its unit if that is known."""
        for path, field in durations:
            value = _member(line, path)
            text = "" if value is None or isinstance(value, dict | list | bool) else str(value)
            if not text:
                continue
            is_other = field.is_decimal and "." not in text and "e" not in text
            if self._has_given_unit or not field.unit or is_other or text[-1:].isalpha():
                return text
            return f"{text} {field.unit}"
        return ""


def _said(status: str, duration: str) -> _Said:
    """Return what a line says of a request's end; words such as ``started`` are no status of HTTP."""
    if status and not status[0].isalpha():
        return _Said.STATUS
    return _Said.DURATION if duration else _Said.NOTHING


def read_object(text: str) -> Mapping[str, Any] | None:
    """Return the members of a JSON object; None if the text is none."""
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return line if isinstance(line, dict) else None


def _paths(line: Mapping[str, Any], keys: Iterable[str]) -> Iterable[_Path]:
    """Yield the paths of those keys that a line has, whose dots are part of a name or lead into an object."""
    for key in keys:
        first, dot, rest = key.partition(".")
        if key in line:
            yield (key,)
        elif dot and first in line:
            yield tuple(key.split("."))
            yield first, rest


def _member(line: Any, path: _Path) -> Any:
    for key in path:
        line = line.get(key) if isinstance(line, dict) else None
    return line


def _http_status(value: object) -> str:
    """Return a status such as django-structlog's ``code``; empty for any other code."""
    return str(value) if _HTTP_STATUS.fullmatch(str(value)) else ""


def _value(line: Mapping[str, Any], paths: tuple[_Path, ...]) -> str:
    """Return the first value that is there and is neither an object nor a list."""
    for path in paths:
        value = line.get(path[0]) if len(path) == 1 else _member(line, path)
        if value is not None and not isinstance(value, dict | list):
            return str(value)
    return ""
