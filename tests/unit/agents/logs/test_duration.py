"""Durations: what servers and frameworks write, in seconds; the unit is the field's, or is not known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format
from agents.logs.duration import NoDuration, read_duration, unit_of_key

START = 1_767_225_600  # 2026-01-01
CLF = "01/Jan/2026:00:00:05 +0000"
ISO = "2026-01-01T00:00:05Z"
JSON = {"time": ISO, "method": "GET", "path": "/cart", "status": 200}
IIS = "#Software: Microsoft Internet Information Services 10.0"
FIELDS = "#Fields: date time cs-method cs-uri-stem sc-status time-taken"
W3C = "2026-01-01 00:00:05 GET /cart 200"
NO_UNIT, UNREADABLE, ABSENT = NoDuration.UNITLESS, NoDuration.UNREADABLE, NoDuration.ABSENT


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [
        ("0.25", "s", 0.25),
        ("250", "ms", 0.25),
        ("250000", "us", 0.25),
        ("250000000", "ns", 0.25),
        ("2.5e-1", "s", 0.25),
        ("250ms", "s", 0.25),
        ("  1.5 ms", "", 0.0015),
        ("1.5µs", "", 1.5e-6),
        ("1.5μs", "", 1.5e-6),  # noqa: RUF001 the Greek mu
        ("1m2.5s", "", 62.5),
        ("1h0m0.5s", "", 3600.5),
        ("PT1M0.5S", "", 60.5),
        ("00:01:00.5000000", "", 60.5),
        ("0.500 : 0.100", "s", 0.6),
        ("0.500, 0.100", "s", 0.6),
        ("0.500,0.100 : 0.100", "s", 0.7),
        ("-, 0.100", "s", 0.1),
        ("0.001 0.100 0.002", "s", 0.103),
        ("0", "", 0.0),
        ("", "s", ABSENT),
        ("-", "s", ABSENT),
        ("-, -", "s", ABSENT),
        ("-1", "ms", ABSENT),
        ("0.000 -1 -1", "s", ABSENT),
        ("null", "s", ABSENT),
        ("250", "", NO_UNIT),
        ("0.500 : 0.100", "", NO_UNIT),
        ("0,500", "s", UNREADABLE),  # a decimal comma, or two numbers
        ("1,234.5ms", "", UNREADABLE),
        ("1_000", "ms", UNREADABLE),
        ("+109", "ms", UNREADABLE),  # HAProxy's of a request that had not ended
        ("-5", "ms", UNREADABLE),
        ("inf", "s", UNREADABLE),
        ("1e999", "s", UNREADABLE),
        ("5 parsecs", "s", UNREADABLE),
        ("fast", "s", UNREADABLE),
    ],
)
def test_texts(text: str, unit: str, seconds: float | NoDuration) -> None:
    assert read_duration(text, unit) == pytest.approx(seconds)
    assert isinstance(read_duration(text, unit), NoDuration) == isinstance(seconds, NoDuration)


@given(st.text(max_size=60), st.sampled_from(["", "s", "ns"]))
def test_any_text_is_a_duration_or_has_a_reason(text: str, unit: str) -> None:
    assert read_duration(text, unit) >= 0


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("duration_ms", "ms"),
        ("durationMs", "ms"),
        ("elapsedMilliseconds", "ms"),
        ("took-us", "us"),
        ("latency.ns", "ns"),
        ("duration_s", "s"),
        ("duration", ""),
        ("items", ""),
        ("latency_human", ""),
    ],
)
def test_units_at_the_end_of_keys(key: str, unit: str) -> None:
    assert unit_of_key(key) == unit


def _seconds(format_: str, *lines: str, unit: str = "", **keys: str) -> float | NoDuration:
    """Return the duration of the last line, as the tally would read it."""
    parsed = line_format(format_, lines[0], keys, unit)
    *_, fields = [parsed.parse(line) for line in lines]
    assert fields
    assert fields[1].split()[:2] == ["GET", "/cart"]
    return read_duration(fields[3], parsed.duration_unit)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        pytest.param({"latency": 250_000_000, "latency_human": "250ms"}, 0.25, id="echo"),
        pytest.param({"latency": 250_000_000, "remote_ip": "h", "bytes_in": 0}, 0.25, id="echo-5"),
        pytest.param({"latency": "250ms"}, 0.25, id="go-text"),
        pytest.param({"latency": 250}, NO_UNIT, id="no-framework"),
        pytest.param({"latency": 0.25}, NO_UNIT, id="zap-or-zerolog"),
        pytest.param({"duration": 0.25}, NO_UNIT, id="bare"),
        pytest.param({"duration": "fast"}, UNREADABLE, id="text"),
        pytest.param({"duration": None}, ABSENT, id="null"),
        pytest.param({"request_time": "0.250"}, 0.25, id="nginx-text"),
        pytest.param({"request_time": 0.25}, 0.25, id="nginx-number"),
        pytest.param({"request_time": 250}, NO_UNIT, id="not-nginx"),
        pytest.param({"request_time": "0.3", "upstream_response_time": "0.1"}, 0.3, id="nginx-whole"),
        pytest.param({"upstream_response_time": "0.150, 0.100"}, 0.25, id="nginx-list"),
        pytest.param({"duration": 250.5, "controller": "C", "action": "show"}, 0.2505, id="lograge"),
        pytest.param({"duration": 250, "response_flags": "-"}, 0.25, id="envoy"),
        pytest.param({"responseTime": 250, "req": {}, "res": {}}, 0.25, id="pino"),
        pytest.param({"responseTime": 250}, NO_UNIT, id="not-pino"),
        pytest.param({"elapsed_ms": 250}, 0.25, id="suffix"),
        pytest.param({"response_time_us": 250_000}, 0.25, id="suffix-us"),
        pytest.param({"elapsed_time_ms": 250}, 0.25, id="suffix-time"),
        pytest.param({"responseLatency": 250}, 0.25, id="api-gateway"),
        pytest.param({"durationMs": 250}, 0.25, id="camel"),
        pytest.param({"time_ms": 250}, ABSENT, id="a-time-and-no-duration"),
        pytest.param({"event": {"duration": 250_000_000}}, 0.25, id="ecs"),
        pytest.param({"event.duration": 250_000_000}, 0.25, id="ecs-flat"),
        pytest.param({"db_duration_ms": 3, "duration_ms": 250}, 0.25, id="beside-a-part"),
        pytest.param({"db_duration_ms": 3, "latency": "250ms"}, 0.25, id="before-a-part"),
        pytest.param({"upstream_latency_ms": 3}, ABSENT, id="a-part-alone"),
        pytest.param({"http_request_duration_seconds": 0.25}, 0.25, id="prefixes-of-the-whole"),
    ],
)
def test_fields_of_frameworks(fields: dict[str, object], seconds: float | NoDuration) -> None:
    assert _seconds("auto", json.dumps(JSON | fields)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        pytest.param(
            {
                "RequestMethod": "GET",
                "RequestPath": "/cart",
                "DownstreamStatus": 200,
                "Duration": 250_000_000,
            },
            0.25,
            id="traefik",
        ),
        pytest.param(
            {"RequestMethod": "GET", "RequestPath": "/cart", "StatusCode": 200, "Elapsed": 250.0},
            0.25,
            id="serilog",
        ),
        pytest.param(
            {"request": {"method": "GET", "uri": "/cart"}, "resp_headers": {}, "duration": 0.25},
            0.25,
            id="caddy",
        ),
        pytest.param(
            {"request": {"method": "GET", "uri": "/cart"}, "resp_headers": {}, "duration": "250ms"},
            0.25,
            id="caddy-text",
        ),
        pytest.param(
            {"request": {"method": "GET", "uri": "/cart"}, "resp_headers": {}, "duration": 250_000_000},
            NO_UNIT,
            id="caddy-ns-or-ms",
        ),
        pytest.param(
            {"httpRequest": {"requestMethod": "GET", "requestUrl": "/cart", "latency": "0.250s"}},
            0.25,
            id="google",
        ),
        pytest.param(
            {"request": {"method": "GET", "uri": "/cart"}, "latencies": {"request": 250, "kong": 1}},
            0.25,
            id="kong",
        ),
    ],
)
def test_lines_of_servers_in_json(line: dict[str, object], seconds: float | NoDuration) -> None:
    assert _seconds("auto", json.dumps({"time": ISO} | line)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("format_", "line", "seconds"),
    [
        pytest.param(
            "$time_iso8601 $request_method $uri $upstream_response_time $request_time",
            f"{ISO} GET /cart 0.100 0.250",
            0.25,
            id="nginx-the-whole-request",
        ),
        pytest.param(
            '[$time_local] "$request" "$upstream_response_time"',
            f'[{CLF}] "GET /cart" "0.150, 0.100"',
            0.25,
            id="nginx-list",
        ),
        pytest.param('%t "%r" %T %{ms}T %D', f'[{CLF}] "GET /cart" 0 250 250100', 0.2501, id="apache-finest"),
        pytest.param('%t "%r" %{s}T', f'[{CLF}] "GET /cart" 3', 3.0, id="apache-seconds"),
        pytest.param('%t "%r" %{us}T', f'[{CLF}] "GET /cart" 250000', 0.25, id="apache-microseconds"),
        pytest.param('%t "%r" %D %F', f'[{CLF}] "GET /cart" 250 1', NO_UNIT, id="tomcat-of-some-version"),
        pytest.param(
            '%(h)s %(t)s "%(r)s" %(s)s %(D)s', f'h [{CLF}] "GET /cart" 200 250000', 0.25, id="gunicorn-us"
        ),
        pytest.param('%(t)s "%(r)s" %(L)s', f'[{CLF}] "GET /cart" 0.250000', 0.25, id="gunicorn-decimal"),
        pytest.param('%(t)s "%(r)s" %(M)s', f'[{CLF}] "GET /cart" 250', 0.25, id="gunicorn-ms"),
        pytest.param('%(t)s "%(r)s" %(T)s', f'[{CLF}] "GET /cart" 2', 2.0, id="gunicorn-seconds"),
        pytest.param(
            "[%START_TIME%] %REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %RESPONSE_CODE% %DURATION%",
            f"[{ISO}] GET /cart 200 250",
            0.25,
            id="envoy-own",
        ),
        pytest.param(
            "[:date[iso]] :method :url :status :response-time ms - :total-time[1] ms",
            f"[{ISO}] GET /cart 200 240.0 ms - 250.0 ms",
            0.25,
            id="morgan",
        ),
        pytest.param(
            ':remote-addr [:date[clf]] ":method :url HTTP/:http-version" :status - :response-time ms',
            f'h [{CLF}] "GET /cart HTTP/1.1" 200 - 250.125 ms',
            0.250125,
            id="morgan-combined",
        ),
        pytest.param(
            '[$time_local] "$request" $upstream_response_time $request_time',
            f'[{CLF}] "GET /cart" 0.100, 0.140 0.250',
            0.25,
            id="nginx-after-a-list",
        ),
        pytest.param(
            '[$time_local] "$request" $upstream_addr $upstream_status $upstream_response_time $pipe',
            f'[{CLF}] "GET /cart" 10.0.0.1:80 : 10.0.0.2:80 404, 200 0.100 : 0.150 .',
            0.25,
            id="nginx-redirect-without-quotes",
        ),
        pytest.param(
            "$time_iso8601,$request_method,$uri,$upstream_response_time,$pipe",
            f"{ISO},GET,/cart,0.100, 0.150,.",
            0.25,
            id="nginx-list-between-commas",
        ),
        pytest.param(
            '$http_x_forwarded_for [$time_local] "$request" $request_time',
            f'10.0.0.1, 10.0.0.2,10.0.0.3 [{CLF}] "GET /cart" 0.250',
            0.25,
            id="proxies-in-a-list",
        ),
        pytest.param(
            '$remote_addr $time_local "$request" $status $request_time',
            f'h {CLF} "GET /cart" 200 0.250',
            0.25,
            id="nginx-time-without-brackets",
        ),
        pytest.param(
            '[$time_local] "$request" $request_time',
            f'[{CLF}] "GET /cart" 0.250 0.100',
            0.25,
            id="more-columns-than-the-format",
        ),
        pytest.param('%t "%r" %s (%D ms)', f'[{CLF}] "GET /cart" 200 (250 ms)', 0.25, id="spring-boot"),
        pytest.param('%t "%r" %s %Dms', f'[{CLF}] "GET /cart" 200 250ms', 0.25, id="unit-beside-%D"),
        pytest.param(
            '%t "%r" %s %Dus %F', f'[{CLF}] "GET /cart" 200 250000us 1', 0.25, id="unit-beside-%D-of-tomcat"
        ),
        pytest.param(
            ":date[web] :method :url :response-time ms",
            "Thu, 01 Jan 2026 00:00:05 GMT GET /cart 250.0 ms",
            0.25,
            id="morgan-web-date",
        ),
        pytest.param("auto", f'h - - [{CLF}] "GET /cart" 200 5 "-" "x"', ABSENT, id="combined"),
        pytest.param(
            "auto",
            f'h - - [{CLF}] "GET /cart" 200 5 "-" "x" 17 "web@docker" "http://h:80" 250ms',
            0.25,
            id="traefik-common",
        ),
        pytest.param(
            "auto",
            "haproxy[9]: h:3 [01/Jan/2026:00:00:05.123] http-in static/srv1 10/0/30/69/250 200 5 - - ---- "
            '1/1/1/1/0 0/0 {a} {} "GET /cart HTTP/1.1"',
            0.25,
            id="haproxy",
        ),
        pytest.param(
            "auto",
            '[GIN] 2026/01/01 - 00:00:05 | 200 |     250.5ms |       127.0.0.1 | GET      "/cart"',
            0.2505,
            id="gin",
        ),
        pytest.param(
            "auto",
            f'[{ISO}] "GET /cart HTTP/2" 204 - 154 0 250 100 "h" "nsq2http" "c" "l" "tcp://h:80"',
            0.25,
            id="envoy-default",
        ),
        pytest.param(
            "auto",
            f'[{ISO}] "GET /cart HTTP/1.1" 200 - via_upstream - "-" 0 5 250 3 "-" "curl" "i" "h" "h:80"',
            0.25,
            id="istio-default",
        ),
        pytest.param(
            "alb",
            "h2 2026-01-01T00:00:05.186641Z app/lb/1 h:2817 h:80 0.000 0.249 0.001 200 200 34 366 "
            '"GET /cart HTTP/1.1" "curl"',
            0.25,
            id="alb",
        ),
        pytest.param(
            "auto",
            '2026-01-01T00:00:05.186641Z lb h:2817 - -1 -1 -1 504 0 34 366 "GET /cart HTTP/1.1" "curl"',
            ABSENT,
            id="classic-elb-without-a-target",
        ),
    ],
)
def test_lines_of_servers(format_: str, line: str, seconds: float | NoDuration) -> None:
    assert _seconds(format_, line) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("heads", "line", "seconds"),
    [
        pytest.param([IIS, FIELDS], f"{W3C} 250", 0.25, id="iis"),
        pytest.param(["#Software: SGOS 6.7.4", FIELDS], f"{W3C} 250", 0.25, id="proxysg"),
        pytest.param(["#Software: WebLogic", FIELDS], f"{W3C} 0.250", 0.25, id="decimal-seconds"),
        pytest.param(["#Software: WebLogic", FIELDS], f"{W3C} 250", NO_UNIT, id="whole-number-of-others"),
        pytest.param(["#Version: 1.0", FIELDS], f"{W3C} 250", NO_UNIT, id="no-software"),
        pytest.param(["#Version: 1.0", FIELDS], f"{W3C} 59.917", NO_UNIT, id="no-software-decimal"),
        pytest.param(
            ["#Version: 1.0", "#Fields: date time x-edge-location cs-method cs-uri-stem time-taken"],
            "2026-01-01\t00:00:05\tFRA2\tGET\t/cart\t0.250",
            0.25,
            id="cloudfront",
        ),
        pytest.param(
            [IIS, "#Date: 2026-01-01 00:00:00", "#Fields: time cs-method cs-uri-stem time-taken"],
            "00:00:05 GET /cart 250",
            0.25,
            id="date-of-the-log",
        ),
    ],
)
def test_time_taken_is_in_the_unit_of_the_software(
    heads: list[str], line: str, seconds: float | NoDuration
) -> None:
    assert _seconds("auto", *heads, line) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("format_", "lines"),
    [
        ("auto", [json.dumps(JSON | {"latency": 250})]),
        ("auto", [json.dumps(JSON | {"request_time": 250})]),
        ("auto", ["#Version: 1.0", FIELDS, f"{W3C} 250"]),
        ('%t "%r" %D', [f'[{CLF}] "GET /cart" 250']),
    ],
)
def test_a_given_unit_is_that_of_bare_numbers(format_: str, lines: list[str]) -> None:
    assert _seconds(format_, *lines, unit="ms") == 0.25


def test_a_given_unit_leaves_texts_with_their_own() -> None:
    assert _seconds("auto", json.dumps(JSON | {"latency": "250ms"}), unit="s") == 0.25


def test_a_named_key_has_the_unit_at_its_end_or_none() -> None:
    line = json.dumps(JSON | {"took_us": 250_000, "x": 250, "duration_ms": 1})
    assert _seconds("json", line, duration="took_us") == 0.25
    assert _seconds("json", line, duration="x") is NO_UNIT
    assert _seconds("json", line, duration="y") is ABSENT


def test_what_is_no_duration_is_counted_and_said() -> None:
    took = [250, 260, "fast", None, "0.2s"]
    lines = [json.dumps(JSON | {"duration": value}) for value in took]
    tally = RequestTally(TallyOptions("shop", "h"), line_format("json"), RequestTypes())
    tally.add(lines)
    assert tally.table()["GET /cart"] == [5.0]
    assert tally.omissions.timed == 1
    assert tally.omissions.clauses() == [
        "1 have no duration",
        "1 have a duration that could not be read, such as 'fast'",
        "2 have a duration whose unit nothing says, such as 250: --duration-unit gives it",
    ]
