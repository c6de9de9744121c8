from __future__ import annotations

import re
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.logs import line_format, typical_line
from agents.logs.line_format import NOTHING
from agents.logs.log_time import log_time
from pipeline.model.errors import ConfigError

TIME = "10/Oct/2023:13:55:36 +0200"
COMBINED = f'10.0.0.1 - bob [{TIME}] "GET /cart/1?a=b HTTP/1.1" 200 2326 "-" "curl/8 (x) [y]"'
NGINX = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
    '"$http_referer" $request_time'
)
APACHE = '%h %l %u %t "%r" %>s %b "%{Referer}i" %D'
REQUEST = "GET /cart/1?a=b HTTP/1.1"


@pytest.mark.parametrize(
    ("format_", "line", "expected"),
    [
        pytest.param(
            '%(asctime)s %(levelname)s %(client_addr)s - "%(request_line)s" %(status_code)s',
            f'2026-01-01 00:00:05,000 INFO 10.0.0.1:9 - "{REQUEST}" 500 Internal Server Error',
            ("2026-01-01 00:00:05,000", REQUEST, "500", ""),
            id="uvicorn",
        ),
        pytest.param(
            '[$time_local] $http_x_user $status "$request"',
            f'[{TIME}] ada lovelace 200 "{REQUEST}"',
            None,
            id="a-name-of-two-words-where-one-is-configured",
        ),
        pytest.param(
            "auto",
            '{"time":"2026-01-01","method":"get","path":"/","status":"ok","status_code":500}',
            ("2026-01-01", "GET /", "500", ""),
            id="json-of-hapi-with-a-status-in-words",
        ),
        pytest.param(
            "auto",
            '{"time":"2026-01-01","method":"GET","path":"/","status":"503 Service Unavailable"}',
            ("2026-01-01", "GET /", "503", ""),
            id="json-with-a-phrase",
        ),
        pytest.param("auto", COMBINED, (TIME, REQUEST, "200", ""), id="combined"),
        pytest.param("common", COMBINED.partition(' "-"')[0], (TIME, REQUEST, "200", ""), id="common"),
        pytest.param(
            NGINX,
            f'10.0.0.1 - - [{TIME}] "{REQUEST}" 502 12 "http://x/ y" 0.012',
            (TIME, REQUEST, "502", "0.012"),
            id="nginx",
        ),
        pytest.param(
            "$msec|$request_method|$uri|$status",
            "1700000000.123|POST|/pay|201",
            ("1700000000.123", "POST /pay", "201", ""),
            id="nginx-own",
        ),
        pytest.param(
            APACHE, f'h - - [{TIME}] "{REQUEST}" 304 - "-" 1500', (TIME, REQUEST, "304", "1500"), id="apache"
        ),
        pytest.param(
            APACHE.replace('"', '\\"').replace(" %D", "\\t%D"),
            f'h - - [{TIME}] "{REQUEST}" 304 - "-"\t1500',
            (TIME, REQUEST, "304", "1500"),
            id="apache-as-it-stands-between-quotes",
        ),
        pytest.param(
            '%t "%m %U" %{ms}T',
            f'[{TIME}] "GET /x" 15',
            (TIME, "GET /x", "", "15"),
            id="apache-milliseconds",
        ),
        pytest.param("common", "nothing of the kind", None, id="no-such-line"),
        pytest.param("json", '{"time": 1700000000, "method": "GET"}', None, id="json-without-request"),
        pytest.param(
            "json",
            '{"ts": 1700000000, "request": {"uri": "/x"}}',
            ("1700000000", "- /x", "", ""),
            id="json-nested-request",
        ),
        pytest.param("json", '{"ts": 1700000000, "request": {"u": "/x"}}', None, id="json-no-request"),
        pytest.param(
            "json",
            '{"ts": 1700000000.5, "method": "GET", "path": "/x", "status": 200, "duration_ms": 12}',
            ("1700000000.5", "GET /x", "200", "12 ms"),
            id="json",
        ),
        pytest.param(
            "json",
            '{"ts": 1700000000.0, "request": "GET /x", "status": 200.0}',
            ("1700000000.0", "GET /x", "200", ""),
            id="json-status-as-float",
        ),
        pytest.param(
            "json",
            '{"ts": 1700000000, "request": "GET /x", "duration_ms": "12"}',
            ("1700000000", "GET /x", "", "12 ms"),
            id="json-duration-as-text",
        ),
        pytest.param(
            "json",
            '{"ts": 1700000000, "request": "GET /x", "duration_ms": "-"}',
            ("1700000000", "GET /x", "", "- ms"),
            id="json-duration-that-is-none",
        ),
        pytest.param(
            "common",
            f'h - - [{TIME}] "GET /a\\"b HTTP/1.1" 200 5',
            (TIME, 'GET /a\\"b HTTP/1.1', "200", ""),
            id="common-quote-within",
        ),
        pytest.param(
            APACHE,
            f'h - - [{TIME}] "GET /a\\"b" 200 - "x\\"y" 1500',
            (TIME, 'GET /a\\"b', "200", "1500"),
            id="apache-quote-within",
        ),
        pytest.param("json", "[1]", None, id="json-no-object"),
        pytest.param("json", "{", None, id="json-cut"),
    ],
)
def test_lines(format_: str, line: str, expected: tuple[str, str, str, str] | None) -> None:
    assert line_format(format_, line).parse(line) == expected


HEROKU = (
    'heroku{}at=info method=GET path="/a b?x=1" host=h.example fwd="10.0.0.1" dyno=web.1 connect=1ms '
    "service=18ms status=200 bytes=13"
)
CLOUDFLARE = (
    '{"ClientRequestMethod":"GET","ClientRequestURI":"/cart?x=1","EdgeResponseStatus":200,'
    '"EdgeStartTimestamp":"2026-02-10T12:00:00Z","EdgeTimeToFirstByteMs":28,"OriginResponseTime":0}'
)


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        (
            r'time=2026-02-10T12:00:00Z level=info msg="a \"b\" c" method=get path=/x '
            "status=200 duration=12.3ms",
            "logfmt",
            ("2026-02-10T12:00:00Z", "GET /x", "200", "12.3ms"),
        ),
        (
            "t=2026-02-10T12:00:00+0100 lvl=info method=GET path=/x status=200 took_ms=12",
            "logfmt",
            ("2026-02-10T12:00:00+0100", "GET /x", "200", "12 ms"),
        ),
        (
            "2026/02/10 12:00:00 level=info method=GET path=/x status=200 latency=1m2s",
            "logfmt",
            ("2026/02/10 12:00:00", "GET /x", "200", "1m2s"),
        ),
        (
            "I, [2026-02-10T12:00:00.5 #17]  INFO -- : method=GET path=/x controller=X action=show "
            "status=200 duration=58.3",
            "logfmt",
            ("2026-02-10T12:00:00.5", "GET /x", "200", "58.3 ms"),
        ),
        (
            "2026-02-10T12:00:00.5+00:00 " + HEROKU.format("[router]: "),
            "logfmt",
            ("2026-02-10T12:00:00.5+00:00", "GET /a b?x=1", "200", "18ms"),
        ),
        (
            "<158>1 2026-02-10T12:00:00.5+00:00 host " + HEROKU.format(" router - "),
            "logfmt",
            ("2026-02-10T12:00:00.5+00:00", "GET /a b?x=1", "200", "18ms"),
        ),
        (
            f"time:[{TIME}]\thost:10.0.0.1\treq:{REQUEST}\tstatus:200\treqtime_microsec:1200",
            "ltsv",
            (TIME, REQUEST, "200", "1200 us"),
        ),
        (
            f"time:{TIME}\tmethod:GET\turi:/x?a=1:2\tstatus:200\treqtime:0.012",
            "ltsv",
            (TIME, "GET /x?a=1:2", "200", "0.012 s"),
        ),
        (CLOUDFLARE, "json", ("2026-02-10T12:00:00Z", "GET /cart?x=1", "200", "28 ms")),
        (
            "1770724800.123    145 10.0.0.1 TCP_MISS/200 4512 GET http://x.example/a - HIER_DIRECT/1.2.3.4 -",
            "squid",
            ("1770724800.123", "GET http://x.example/a", "200", "145"),
        ),
        (
            "2026-02-10T12:00:00Z heroku[router]: at=error code=H12 method=GET path=/x dyno=web.1 fwd=a "
            "connect= service= status=503",
            "logfmt",
            ("2026-02-10T12:00:00Z", "GET /x", "503", ""),
        ),
        (
            '{"timeStamp":"2026-02-10T12:00:00Z","properties":{"httpMethod":"GET","requestUri":"/x",'
            '"httpStatus":200,"timeTaken":0.017}}',
            "json",
            ("2026-02-10T12:00:00Z", "GET /x", "200", "0.017 s"),
        ),
        (
            '{"timeStamp":"2026-02-10T12:00:00Z","properties":{"httpMethod":"GET","requestUri":"/x",'
            '"httpStatusCode":"200","timeTaken":17}}',
            "json",
            ("2026-02-10T12:00:00Z", "GET /x", "200", "17"),  # of the first version, in ms
        ),
        (
            f'owner bucket [{TIME}] 10.0.0.1 - 3E57 REST.GET.OBJECT k "{REQUEST}" 200 - 113 - 7 6 "-" "S3" -',
            "s3",
            (TIME, REQUEST, "200", "7"),
        ),
        (
            f'Oct 10 13:55:36 web nginx[12]: h - - [{TIME}] "{REQUEST}" 200 5',
            "common",
            (TIME, REQUEST, "200", ""),
        ),
        (f'[::1] - - [{TIME}] "{REQUEST}" 200 5', "common", (TIME, REQUEST, "200", "")),
        (COMBINED.replace("curl/8 (x) [y]", "a=1 b=2 c=3"), "common", (TIME, REQUEST, "200", "")),
        ("a=1 b=2 and no more", "common", None),
        ("level=info msg=started", "common", None),
        ('time=2026-02-10T12:00:00Z method=GET path="/x', "common", None),
    ],
)
def test_lines_whose_format_is_recognised(
    line: str, name: str, expected: tuple[str, str, str, str] | None
) -> None:
    format_ = line_format("auto", line)
    assert (format_.name, format_.parse(line)) == (name, expected)


@pytest.mark.parametrize(
    ("format_", "line", "time"),
    [
        ('%h %{%d/%b/%Y:%T}t "%r" %>s', 'h 10/Feb/2026:12:00:00 "GET /x" 200', "10/Feb/2026:12:00:00"),
        (
            '%h [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] "%r" %>s',
            'h [10/Feb/2026:12:00:00.123 +0100] "GET /x" 200',
            "10/Feb/2026:12:00:00.123 +0100",
        ),
        ('%{%F %T %z}t "%r" %>s', '2026-02-10 12:00:00 +0100 "GET /x" 200', "2026-02-10 12:00:00 +0100"),
        ('%{begin:%Y-%m-%dT%H:%M:%S}t "%r" %s', '2026-02-10T12:00:00 "GET /x" 200', "2026-02-10T12:00:00"),
        ('%{sec}t.%{usec_frac}t "%r" %s', '1770724800.123456 "GET /x" 200', "1770724800.123456"),
        ('%{%s}t "%r" %s', '1770724800 "GET /x" 200', "1770724800"),
        (
            "%{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}t \"%r\" %s",
            '2026-02-10T12:00:00.123+01:00 "GET /x" 200',
            "2026-02-10T12:00:00.123+01:00",
        ),
        (
            '%{dd/MMM/yyyy:HH:mm:ss Z}t "%r" %s',
            '10/Feb/2026:12:00:00 +0100 "GET /x" 200',
            "10/Feb/2026:12:00:00 +0100",
        ),
        ('%{time,yyyy-MM-dd HH:mm:ss} "%r" %s', '2026-02-10 12:00:00 "GET /x" 200', "2026-02-10 12:00:00"),
        (
            '%h %t "%r" %s %b "%{i,Referer}" "%{i,User-Agent}" %D',
            'h [10/Feb/2026:12:00:00 +0100] "GET /x" 200 5 "-" "c (x)" 12',
            "10/Feb/2026:12:00:00 +0100",
        ),
        (
            '%{DATE_TIME} "%{REQUEST_LINE}" %{RESPONSE_CODE}',
            '[10/Feb/2026:12:00:00 +0100] "GET /x" 200',
            "10/Feb/2026:12:00:00 +0100",
        ),
        (
            "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %{+Q}r",
            '10.0.0.1:9 [10/Feb/2026:12:00:00.123] in b/s1 0/0/1/11/12 200 5 "GET /x"',
            "10/Feb/2026:12:00:00.123",
        ),
        ("%trl %HM %HU %ST %Ta", "10/Feb/2026:12:00:00 +0100 GET /x 200 12", "10/Feb/2026:12:00:00 +0100"),
    ],
)
def test_times_and_requests_in_configured_forms(format_: str, line: str, time: str) -> None:
    parsed = line_format(format_).parse(line)
    assert parsed is not None
    assert parsed[:3] == (time, "GET /x", "200")


@pytest.mark.parametrize(
    "form",
    [
        *(
            "%{%d/%m/%Y %T}t",
            "%{%H:%M:%S}t",
            "%{%y%m%d}t",
            "%{%F}t",
            "%{%F %I:%M:%S}t",
            "%{%c}t",
            "%{msec_frac}t",
        ),
        *("%{dd/MM/yyyy HH:mm:ss}t", "%{yyyy-MM-dd hh:mm:ss}t", "%{time,MM/dd/yyyy HH:mm:ss} %{i,Host}"),
    ],
)
def test_forms_of_times_that_may_be_others_are_refused(form: str) -> None:
    with pytest.raises(
        ConfigError, match="--format: times in the form .* cannot be read, or may be others: %t"
    ):
        line_format(f'{form} "%r" %s')


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"log":"GET / 200\\n","stream":"stdout","time":"2026-02-10T12:00:00Z"}', "docker logs NAME"),
        ('{"MESSAGE":"GET /","__REALTIME_TIMESTAMP":"1"}', "journalctl -o cat"),
        (
            '{"at":"2026-02-10T12:00:00Z","verb":"GET","status":200}',
            "without time and target: --key .*at, verb, status",
        ),
        ('{"time":"2026-02-10T12:00:00Z","level":"info"}', "without target: --key .* there are time, level"),
        ("level=info method=GET path=/x status=200", "without time: --key"),
        ("{", "write one object a line"),
        ("2026/02/10 12:00:00 [error] 123#0: *1 open() failed", "nginx' error log"),
        ("time,method,path,status,duration", "CSV"),
        ('[{"time":"2026-02-10T12:00:00Z","path":"/x"},', "write one object a line"),
        ('INFO: 10.0.0.1:5 - "GET /x HTTP/1.1" 200 OK', "a request whose time does not stand"),
        ('Started GET "/x" for 10.0.0.1 at 2026-02-10 12:00:00', "Rails' log"),
        ("what is this", "is --format right"),
    ],
)
def test_lines_that_no_format_reads_are_named(line: str, what: str) -> None:
    format_ = line_format("auto", line)
    assert format_.parse(line) is None
    assert re.search(what, format_.explain(line))


def test_the_format_of_a_log_is_that_of_most_lines() -> None:
    router = "2026-02-10T12:00:00+00:00 " + HEROKU.format("[router]: ")
    head = ["", "2026-02-10T12:00:00+00:00 app[web.1]: Listening", '{"level":"info"}', router, router]
    assert typical_line(head) == router
    assert typical_line(["", "x"]) == "x"
    assert typical_line([""]) == ""
    w3c = ["#Version: 1.0", COMBINED, COMBINED]
    assert typical_line(w3c) == "#Version: 1.0"


def test_keys_of_json_can_be_named() -> None:
    format_ = line_format("json", keys={"target": "u", "time": "t"})
    assert format_.parse('{"t": "2023-10-10", "u": "/x", "path": "/y"}') == ("2023-10-10", "- /x", "", "")


def test_a_key_may_lead_into_an_object_whose_keys_have_dots() -> None:
    format_ = line_format("json", keys={"target": "attributes.url.path", "method": "a.b.c"})
    line = '{"time": "2023-10-10", "attributes": {"url.path": "/x"}, "a": {"b": {"c": "get"}}}'
    assert format_.parse(line) == ("2023-10-10", "GET /x", "", "")


def test_iis_says_its_columns_and_may_say_others() -> None:
    format_ = line_format("auto", "#Software: Microsoft Internet Information Services 10.0")
    assert format_.parse("#Software: Microsoft Internet Information Services 10.0") is NOTHING
    assert format_.parse("2023-10-10 13:55:36 GET /x 200 15") is None
    assert format_.parse("#Fields: date time cs-method cs-uri-stem sc-status time-taken") is NOTHING
    expected = ("2023-10-10T13:55:36Z", "GET /x", "200", "15 ms")
    assert format_.parse("2023-10-10 13:55:36 GET /x 200 15") == expected
    format_.parse("#Fields: time date cs-uri-stem cs-method time-taken sc-status")
    assert format_.parse("13:55:36 2023-10-10 /x GET 15 200") == expected


@pytest.mark.parametrize(
    ("format_", "keys", "option"),
    [
        *((text, None, "--format") for text in ("nonsense", "$remote_addr $status", "%h %>s", "%{%Y}t %r")),
        ("[$time_local]", None, "--format"),
        ("json", {"colour": "x"}, "--key"),
        ("common", {"time": "x"}, "--key"),
    ],
)
def test_formats_that_say_too_little_and_unknown_keys_are_refused(
    format_: str, keys: dict[str, str] | None, option: str
) -> None:
    with pytest.raises(ConfigError, match=option):
        line_format(format_, keys=keys or {})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (TIME, 1696938936.0),
        ("10/Oct/2023:13:55:36.125 +0200", 1696938936.125),
        ("10/Oct/2023:11:55:36.125", 1696938936.125),
        ("10/Oct/2023 11:55:36", 1696938936.0),
        ("2023/10/10 - 11:55:36", 1696938936.0),
        ("2023/10/10 11:55:36", 1696938936.0),
        ("Tue, 10 Oct 2023 11:55:36 GMT", 1696938936.0),
        ("10/Oct/2023:13:55:60 +0200", 1696938960.0),
        ("2023-10-10 11:55:36,125", 1696938936.125),
        ("20231010T115536Z", 1696938936.0),
        ("20231010", 1696896000.0),
        ("2023-10-29T02:30:00+02:00", 1698539400.0),  # the hour that the end of summer time repeats
        ("2023-10-29T02:30:00+01:00", 1698543000.0),
        ("2023-10-10T11:55:36Z", 1696938936.0),
        ("2023-10-10T11:55:36", 1696938936.0),
        ("1696938936.5", 1696938936.5),
        ("1696938936500", 1696938936.5),
        ("1696938936500000", 1696938936.5),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert log_time(text)[0] == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "10/Foo/2023:13:55:36 +0200", "0", "nan", "inf", "40/Oct/2023:1"),
        *("10/02/2026 12:00:00", "02/10/26:12:00:00", "10.02.2026 12:00", "10/Oct/23:13:55:36 +0200"),
        *("2026-02-10 12:00:00 CET", "20260210120000", "2026021012", "10022026", "260210"),
        *("10/Oct/2023:13:55:61 +0200", "2026-02-30T12:00:00Z"),
    ],
)
def test_what_is_no_time_or_may_be_two_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not between|not an ISO 8601 time|must be in|is out of|no second"):
        log_time(text)


@given(st.text())
def test_any_line_is_read_or_not(line: str) -> None:
    for format_ in ("common", "json", "w3c", NGINX, APACHE):
        parsed = line_format(format_).parse(line)
        assert parsed is None or len(parsed) == 4


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-02-10 12:00:00", 1770721200.0),
        ("2026/07/10 - 12:00:00", 1783677600.0),
        ("10/Feb/2026:12:00:00", 1770721200.0),
        ("10/Feb/2026:12:00:00 +0000", 1770724800.0),  # what says its offset is not changed
        ("2026-02-10T12:00:00Z", 1770724800.0),
        ("1770724800", 1770724800.0),
        ("2026-03-29 01:59:59", 1774745999.0),
        ("2026-03-29 03:00:00", 1774746000.0),
    ],
)
def test_times_without_an_offset_are_of_the_given_zone(text: str, seconds: float) -> None:
    assert log_time(text, ZoneInfo("Europe/Berlin"))[0] == seconds


@pytest.mark.parametrize("text", ["2026-03-29 02:30:00", "2026-10-25 02:30:00", "25/Oct/2026:02:30:00.5"])
def test_times_that_clocks_showed_twice_or_never_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="clocks in Europe/Berlin showed it twice, or never"):
        log_time(text, ZoneInfo("Europe/Berlin"))
    assert log_time(text)[1] is False
