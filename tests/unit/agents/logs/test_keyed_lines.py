"""Logs of frameworks that write several lines for a request: each request counts once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format, typical_line
from agents.logs.log_follower import Counting

REQUESTS = 10

Line = Mapping[str, object] | str


def structlog(number: int, time: str) -> list[Line]:
    line = {"timestamp": time, "request": "GET /cart", "request_id": f"r{number}"}
    return [{**line, "event": "request_started"}, {**line, "event": "request_finished", "code": 200}]


def structlog_failing(number: int, time: str) -> list[Line]:
    started, _ = structlog(number, time)
    return [started, {**dict(started), "event": "request_failed", "code": 200 if number else 500}]  # type: ignore[arg-type]


def fastify(number: int, time: str) -> list[Line]:
    line = {"time": time, "pid": 1, "hostname": "h", "reqId": f"req-{number}"}
    return [
        {**line, "req": {"method": "GET", "url": "/cart"}, "msg": "incoming request"},
        {**line, "res": {"statusCode": 200}, "responseTime": 12.5, "msg": "request completed"},
    ]


def fastify_of_two_processes(number: int, time: str) -> list[Line]:
    first, last = fastify(number, time)
    other = [{**dict(line), "pid": 2} for line in (first, last)]  # type: ignore[arg-type]
    urls = [{**line, "req": {"method": "GET", "url": "/pay"}} if "req" in line else line for line in other]
    return [first, urls[0], last, urls[1]]


def bunyan(number: int, time: str) -> list[Line]:
    line = {"name": "shop", "time": time, "req_id": str(number), "req": {"method": "GET", "url": "/cart"}}
    return [
        {**line, "msg": "start"},
        {**line, "res": {"statusCode": 200}, "duration_ms": 12.5, "msg": "finish"},
    ]


def slog(number: int, time: str) -> list[Line]:
    line = {"time": time, "level": "INFO", "method": "GET", "path": "/cart"}
    return [{**line, "msg": "started"}, {**line, "msg": "finished", "status": 200, "duration": "12.5ms"}]


def logrus(number: int, time: str) -> list[Line]:
    line = f"time={time} level=info method=GET path=/cart"
    return [f"{line} msg=started", f"{line} msg=finished status=200 duration=12.5ms"]


def semantic_logger(number: int, time: str) -> list[Line]:
    payload = {"method": "GET", "path": "/cart"}
    return [
        {"timestamp": time, "message": "Started", "payload": payload},
        {
            "timestamp": time,
            "message": "Completed",
            "duration_ms": 12.5,
            "payload": {**payload, "status": 200},
        },
    ]


def serilog(number: int, time: str) -> list[Line]:
    line = {"@t": time, "Method": "GET", "Path": "/cart", "RequestId": f"r{number}"}
    return [line, {**line, "StatusCode": 200, "ElapsedMilliseconds": 12.5}]


def caddy(number: int, time: str) -> list[Line]:
    line = {"ts": time, "request": {"method": "GET", "uri": "/cart"}, "status": 200, "duration": 0.0125}
    within = {**line, "logger": "http.handlers.reverse_proxy", "msg": "upstream roundtrip"}
    failed = [{**line, "logger": "http.log.error"}] if number == 3 else []
    return [within, *failed, {**line, "logger": "http.log.access.log0", "resp_headers": {}}]


def slow_query(number: int, time: str) -> list[Line]:
    line = {"time": time, "method": "GET", "path": "/cart"}
    query = {**line, "msg": "query", "duration_ms": 3}
    return [{**line, "event": "start", "duration_ms": 0}, query, {**line, "status": 200, "duration_ms": 12}]


def statuses_in_words(number: int, time: str) -> list[Line]:
    line = {"time": time, "method": "GET", "path": "/cart"}
    return [{**line, "status": "started"}, {**line, "status": "completed", "duration_ms": 12}]


def context_in_each_line(number: int, time: str) -> list[Line]:
    line = {"time": time, "method": "GET", "path": "/cart", "request_id": f"r{number}"}
    return [{**line, "msg": text} for text in ("started", "cart read", "finished")]


def never_ended(number: int, time: str) -> list[Line]:
    first, last = fastify(number % 2, time)
    return [first] if number < 2 else [{**dict(first), "req": {"method": "GET", "url": "/pay"}}, last]  # type: ignore[arg-type]


def single(number: int, time: str) -> list[Line]:
    return [{"time": time, "method": "GET", "path": "/cart", "status": 200}]


def without_status(number: int, time: str) -> list[Line]:
    return [{"time": time, "method": "GET", "path": "/cart"}]


def unknown_status(number: int, time: str) -> list[Line]:
    return [{"time": time, "method": "GET", "path": "/cart", "status": 200 if number % 2 else "-"}]


LOGS: dict[str, tuple[Callable[[int, str], list[Line]], int, int, int]] = {
    # the lines of a request; requests, durations and parts of ten
    "django-structlog": (structlog, 10, 0, 10),
    "django-structlog, failing": (structlog_failing, 10, 0, 10),
    "Fastify": (fastify, 10, 10, 10),
    "Fastify, two processes": (fastify_of_two_processes, 20, 20, 20),
    "bunyan": (bunyan, 10, 10, 10),
    "Go's slog": (slog, 10, 10, 10),
    "logfmt": (logrus, 10, 10, 10),
    "semantic_logger": (semantic_logger, 10, 10, 10),
    "Serilog": (serilog, 10, 10, 10),
    "Caddy": (caddy, 10, 10, 11),
    "durations of parts": (slow_query, 10, 10, 20),
    "statuses in words": (statuses_in_words, 10, 10, 10),
    "no status, an id in each line": (context_in_each_line, 10, 0, 20),
    "an id that comes again": (never_ended, 8, 8, 10),
    "a line a request": (single, 10, 0, 0),
    "no status at all": (without_status, 10, 0, 0),
    "a status that is not known": (unknown_status, 10, 0, 0),
}


def lines_of(write: Callable[[int, str], list[Line]]) -> list[str]:
    lines = [line for number in range(REQUESTS) for line in write(number, f"2026-01-01T00:00:{number:02}Z")]
    return [line if isinstance(line, str) else json.dumps(line) for line in lines]


def counted(lines: list[str], keys: Mapping[str, str] | None = None) -> RequestTally:
    options = TallyOptions("shop", "host")
    counting = Counting(options, RequestTypes(), lambda head: line_format("auto", typical_line(head), keys))
    tally = counting.begin(lines)
    tally.add(lines)
    tally.finish()
    return tally


@pytest.mark.parametrize(("write", "requests", "timed", "parts"), LOGS.values(), ids=LOGS.keys())
def test_a_request_of_several_lines_counts_once(
    write: Callable[[int, str], list[Line]], requests: int, timed: int, parts: int
) -> None:
    tally = counted(lines_of(write))
    assert (tally.requests, tally.omissions.timed, tally.omissions.parts) == (requests, timed, parts)
    assert tally.omissions.invalid == 0
    said = f"{parts} lines of requests that other lines count, as at their end, were left out"
    assert (said in tally.summary()) == bool(parts)
    types = {"GET /cart", "GET /pay"} if requests > REQUESTS else {"GET /cart"}
    types = {"GET /pay"} if requests < REQUESTS else types
    assert tally.state().seen == tuple(sorted(types))


def test_the_key_of_an_id_may_be_given() -> None:
    lines = [line.replace("reqId", "rid") for line in lines_of(fastify)]
    assert counted(lines).omissions.invalid == REQUESTS
    tally = counted(lines, {"id": "rid"})
    assert (tally.requests, tally.omissions.invalid, tally.omissions.parts) == (REQUESTS, 0, REQUESTS)


COMBINED = '10.0.0.1 - - [10/Oct/2023:13:55:36 +0200] "GET /cart HTTP/1.1" 200 2326'


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("", ""),
        (' "-" "curl/8 (x) [y]"', ""),
        (' "-" "curl/8" 0.012', "'0.012'"),
        (' "-" "curl/8" 1234 567', "'1234 567'"),
        (" 0.012", "'0.012'"),
        (' "-" "curl/8" "10.0.0.2"', "'\"10.0.0.2\"'"),
    ],
)
def test_what_follows_the_combined_format_is_said(rest: str, said: str) -> None:
    summary = counted([COMBINED + rest] * 3).summary()
    clause = f"what follows in a line, such as {said}, is not read: --format names it"
    assert summary.endswith(clause) if said else "what follows" not in summary


@pytest.mark.parametrize(
    ("end", "rest", "is_said"),
    [
        (' "$http_referer"', ' "-"', False),
        (' "$http_referer"', ' "-" 0.012', True),
        (' "$http_referer" $request_time', ' "-" 0.012', False),
        (' "$http_referer" $request_time', ' "-" 0.012 0.010', True),
    ],
)
def test_what_follows_a_configured_format_is_said(end: str, rest: str, is_said: bool) -> None:
    format_ = f'$remote_addr - - [$time_local] "$request" $status $body_bytes_sent{end}'
    assert bool(line_format(format_, COMBINED + rest).remarks) == is_said
    assert line_format(format_, "something else").remarks == ()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('[{"time": "2026-01-01T00:00:00Z", "path": "/x"}, {"time": 1}]', "a JSON array: write one object"),
        ('2026-01-01T00:00:00.123Z stdout F {"path": "/x"}', "containers (CRI): give what `kubectl logs"),
        ("2026-01-01T00:00:00.123+01:00 stderr P GET /x", "containers (CRI): give what `kubectl logs"),
        ('web-1  | {"time": 1}', "JSON after other text: give each line from { on"),
        ('Jan  1 00:00:00 host app[1]: {"time": 1}', "JSON after other text"),
        ("[", "JSON over several lines"),
    ],
)
def test_a_log_that_is_not_as_the_server_wrote_it_is_named(line: str, why: str) -> None:
    assert why in counted([line]).refusal()
