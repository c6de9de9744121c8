"""Notations in which servers are configured to write a line, and the standard formats of some, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agents.logs.time_forms import MOST_WORDS, apache_words, java_words

QUOTED = r'[^"]*(?:\\"[^"]*)*'
"""Pattern of a quoted text: Apache puts a backslash before a quote inside."""

_REQUEST = rf'"(?P<request>{QUOTED})"'
COMMON = rf"[^\[]*\[(?:[^\[]*\[){{0,8}}?(?P<time>[^\]]+)\] {_REQUEST} (?P<status>\d{{3}})\b"

SERVERS: Mapping[str, tuple[str, str]] = {
    "alb": (
        r"(?:[a-z0-9]+ )?(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) \S+ \S+ \S+ "
        rf"(?P<duration>-?[\d.]+ -?[\d.]+ -?[\d.]+) (?P<status>\d{{3}}|-) \S+ \S+ \S+ {_REQUEST}",
        "s",
    ),
    "envoy": (
        rf"\[(?P<time>\d{{4}}-[^\]]+)\] {_REQUEST} (?P<status>\d+) \S+ "
        rf'(?:\S+ \S+ "{QUOTED}" )?\d+ \d+ (?P<duration>\d+) (?:\d+|-) "',
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
    "s3": (
        rf"\S+ \S+ \[(?P<time>[^\]]+)\] \S+ \S+ \S+ \S+ \S+ {_REQUEST} (?P<status>\d{{3}}|-) "
        r"\S+ \S+ \S+ (?P<duration>\d+|-) ",
        "ms",
    ),
    "squid": (
        r"(?P<time>\d+\.\d{3}) +(?P<duration>\d+) \S+ [A-Z_]+/(?P<status>\d{3}) \d+ "
        r"(?P<method>[A-Z]+) (?P<target>\S+)",
        "ms",
    ),
    "traefik": (
        rf'{COMMON} (?:\d+|-) "{QUOTED}" "{QUOTED}" (?:\d+|-) "{QUOTED}" "{QUOTED}" (?P<duration>\d+ms)',
        "ms",
    ),
}
"""Standard formats of servers: pattern, and the unit of their durations.

Sources: Amazon's "Access logs for your Application Load Balancer" and "Amazon S3 server access log format",
Envoy's "Default format string" (Istio's has three fields more), gin's ``LogFormatter``, HAProxy's manual
8.2.3, Squid's native format, and Traefik's "Common Log Format".
"""

Meaning = tuple[str, str]
"""What a variable says, and the unit of a duration; empty if nothing that is read."""

_BRACKETS = (r"\[", r"[^\]]+", r"\]")
_QUOTES = ('"', QUOTED, '"')
_TWO_WORDS = r"\S+ \S+"
LIST = r"(?>(?:[^ ,]|,(?! ))*(?:(?:, | : )(?:[^ ,]|,(?! ))*)*)"
"""Pattern of a list of nginx or of proxies: one value for each server that was asked."""

_FORMS = {f"time-{words}": r"\S+" + (words - 1) * r" \S+" for words in range(1, MOST_WORDS + 1)}
"""Patterns of times in a configured form, by the name of the variable."""

UNREADABLE = "time-0"
"""Name of a variable for times in a form that cannot be read for sure."""


def _first_group(variable: re.Match[str]) -> str:
    return variable[1]


def _apache_name(variable: re.Match[str]) -> str:
    argument, directive = variable["argument"], variable["directive"]
    if variable["form"]:
        return f"time-{apache_words(variable[0])}"
    return f"T-{argument}" if directive == "T" and argument else directive


def _haproxy_name(variable: re.Match[str]) -> str:
    is_quoted = "+Q" in (variable["flags"] or "")
    return f"{variable['name']}{'-quoted' if is_quoted else ''}"


def _undertow_name(variable: re.Match[str]) -> str:
    if variable["form"]:
        return f"time-{java_words(variable['form'])}"
    return variable["name"] or variable["letter"] or ""


@dataclass(frozen=True, slots=True)
class Notation:
    """Variables of a server's configuration.

    Attributes:
        server: Whose notation it is.
        marks: Pattern that only formats in this notation have, of those that are not before it.
        variable: Pattern of a variable.
        meanings: By the name of the variable; of several durations the one that stands first here counts.
        name: Returns the name of a variable that was matched.
        wrapped: Patterns of the beginning, value and end of variables that the server writes in brackets or
            quotes, by their names.
        spaced: Pattern of the values that have spaces inside, by the pattern of the variables' names.
    """

    server: str
    marks: re.Pattern[str]
    variable: re.Pattern[str]
    meanings: Mapping[str, Meaning]
    name: Callable[[re.Match[str]], str] = _first_group
    wrapped: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    spaced: Mapping[str, str] = field(default_factory=dict)


def _meanings(
    *, time: str, request: str = "", method: str, target: str, status: str, duration: str
) -> dict[str, Meaning]:
    """Return meanings by names of variables: names between spaces, a duration's unit behind ``=``."""
    said = {"time": time, "request": request, "method": method, "target": target, "status": status}
    meanings = {name: (what, "") for what, names in said.items() for name in names.split()}
    durations = (text.rpartition("=") for text in duration.split())
    return meanings | {name: ("duration", unit) for name, _, unit in durations}


NOTATIONS = (
    Notation(
        "gunicorn",  # its access_log_format, and uvicorn's
        re.compile(r"%\("),
        re.compile(r"%\((\{[^}]*\}\w|\w+)\)s"),
        _meanings(
            time="t asctime",
            request="r request_line",
            method="m",
            target="U",
            status="s status_code",
            duration="D=us L=s M=ms T=s",
        ),
        wrapped={"t": _BRACKETS},
        spaced={"asctime": _TWO_WORDS},
    ),
    Notation(
        "envoy",  # its format strings
        re.compile(r"%[A-Z_]{4,}(?:\([^)]*\))?%"),
        re.compile(r"%([A-Z_0-9]+(?:\([^)]*\))?(?::\d+)?)%"),
        _meanings(
            time="START_TIME",
            method="REQ(:METHOD)",
            target="REQ(X-ENVOY-ORIGINAL-PATH?:PATH) REQ(:PATH)",
            status="RESPONSE_CODE",
            duration="DURATION=ms",
        ),
    ),
    Notation(
        "morgan",  # of Node.js
        re.compile(r"(?<!\w):(?:method|url|response-time|total-time)\b"),
        re.compile(
            r":((?:method|url|status|response-time|total-time|date)(?![-\w])|[a-z][a-z-]+)(?:\[[^\]]*\])?"
        ),
        _meanings(
            time="date",
            method="method",
            target="url",
            status="status",
            duration="total-time=ms response-time=ms",
        ),
        spaced={"date": rf"(?:[A-Z]\S+(?: \S+){{5}}|\d\d/{_TWO_WORDS}|\S+)"},
    ),
    Notation(
        "nginx",  # its log_format
        re.compile(r"\$"),
        re.compile(r"\$\{?(\w+)\}?"),
        _meanings(
            time="time_local time_iso8601 msec",
            request="request",
            method="request_method",
            target="request_uri uri",
            status="status",
            duration="request_time=s upstream_response_time=s",
        ),
        spaced={
            "time_local": _TWO_WORDS,
            r"upstream_(?:addr|status|bytes_\w+|\w+_(?:time|length))|\w+_forwarded_for": LIST,
        },
    ),
    Notation(
        "haproxy",  # its log-format
        re.compile(r"%(?:\{[^}]*\})?(?:ci|ft|ST|HM|HU|HP|TR|Ta|tr)\b"),
        re.compile(r"%(?:\{(?P<flags>[^}]*)\})?(?:(?P<name>[a-zA-Z]+)|\[[^\]]*\])"),
        _meanings(
            time="tr trg trl t T Tl Ts",
            request="r r-quoted",
            method="HM",
            target="HU HP",
            status="ST",
            duration="Ta=ms Tt=ms Tr=ms",
        ),
        _haproxy_name,
        {"r-quoted": _QUOTES},
        {"trg|trl|T|Tl": _TWO_WORDS},
    ),
    Notation(
        "undertow",  # also of WildFly and Quarkus
        re.compile(r"%\{(?:[a-z-]+,|[A-Z][A-Z_]+\}(?![a-zA-Z]))"),
        re.compile(r"%(?:\{(?:(?P<name>[A-Z_]+)|time,(?P<form>[^}]*)|[a-z-]+,[^}]*)\}|(?P<letter>[a-zA-Z]))"),
        _meanings(
            time=f"t DATE_TIME {' '.join(_FORMS)}",
            request="r REQUEST_LINE",
            method="m METHOD",
            target="U REQUEST_URL R RELATIVE_PATH",
            status="s RESPONSE_CODE",
            duration="RESPONSE_TIME_NANOS=ns RESPONSE_TIME_MICROS=us D=ms RESPONSE_TIME=ms T=s",
        ),
        _undertow_name,
        {"t": _BRACKETS, "DATE_TIME": _BRACKETS},
        _FORMS,
    ),
    Notation(
        "apache",  # its LogFormat, and that of other servers with other units
        re.compile(r"%"),
        re.compile(
            r"%(?:[<>]|[!\d,]+)?(?:(?P<form>\{[^}]+\}t(?:[ .,:]?%\{[^}]+\}t)*)"
            r"|(?:\{(?P<argument>[^}]*)\})?(?P<directive>\^[a-zA-Z]{2}|[a-zA-Z]))"
        ),
        _meanings(
            time=f"t {' '.join(_FORMS)}",
            request="r",
            method="m",
            target="U",
            status="s",
            duration="T-us=us D=us T-ms=ms T-s=s T=s",
        ),
        _apache_name,
        {"t": _BRACKETS},
        _FORMS,
    ),
)
"""Notations of servers; a format is in the first one whose marks it has."""
