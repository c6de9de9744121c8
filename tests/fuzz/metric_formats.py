"""Decoders of service-level metrics and access logs: whatever they read becomes messages that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from agents.logs import RequestTally, RequestTypes, TallyOptions, line_format
from agents.metrics import (
    MetricMap,
    Readings,
    read_exposition,
    read_otlp_json,
    read_otlp_metrics,
    read_remote_write,
)
from agents.metrics.conversion import Conversion
from agents.metrics.remote_write import V2_TYPE
from pipeline.messages.measurements import decode_metric_points, encode_metric_points
from pipeline.messages.requests import decode_requests
from pipeline.model.errors import InvalidMessage
from tests.support.metric_senders import add_metric, add_point, otlp_request, write_request

NOW = 1_700_000_000.0
_ALL = MetricMap.model_validate(
    {
        "defaults": False,
        "metrics": [{"take": "*", "labels": ["a"]}],
        "wait": 0,
        "service": ["service.name", "a"],
    }
)

TOKENS = (
    b"# TYPE ",
    b" histogram\n",
    b'{le="+Inf"} ',
    b"_bucket",
    b"NaN",
    b"1e999",
    b"\n",
    b'\\"',
    b"_total",
)
LOG_TOKENS = (b" - - [", b"10/Oct/2023:13:55:36 +0000", b'] "GET /', b'" 200 ', b"\n", b"1e999", b"#Fields: ")


def check_remote_write(data: bytes) -> None:
    """Read bytes as both versions."""
    for content_type in ("", V2_TYPE):
        _converted(partial(read_remote_write, data, {}, content_type=content_type))


def check_otlp(data: bytes) -> None:
    """Read bytes as a protocol buffer and as JSON."""
    _converted(lambda: read_otlp_metrics(data))
    _converted(lambda: read_otlp_json(data))


def check_exposition(data: bytes) -> None:
    """Read bytes as a page of both formats."""
    text = data.decode(errors="replace")
    for openmetrics in (False, True):
        _converted(partial(read_exposition, text, NOW, openmetrics=openmetrics))


def check_access_log(data: bytes) -> None:
    """Read bytes as lines of every format."""
    lines = data.decode(errors="replace").split("\n")
    for format_ in (
        "common",
        "json",
        "w3c",
        '%t "%r" %>s %D',
        '[$time_local] "$request" $status $request_time',
    ):
        tally = RequestTally(
            TallyOptions("shop", "h1", latency=True, errors=True), line_format(format_), RequestTypes()
        )
        tally.add(lines)
        for message in [*tally.close(), *tally.finish()]:
            (decode_requests if message.topic == "requests" else decode_metric_points)(message.value)


def write_requests() -> Iterator[bytes]:
    """Yield requests of remote write."""
    bucket = {"__name__": "took_bucket", "le": "0.5", "a": "shop"}
    yield write_request([(bucket, NOW, 3.0), ({"__name__": "x_total", "a": "shop"}, NOW, 1.0)], {"x": 1})


def otlp_requests() -> Iterator[bytes]:
    """Yield requests of OTLP."""
    request = otlp_request("shop")
    explicit = add_metric(request, "took", "s").histogram
    explicit.aggregation_temporality = 2
    add_point(explicit, NOW, NOW - 10, bucket_counts=[1, 2], explicit_bounds=[0.5])
    sized = add_metric(request, "sized", "s").exponential_histogram
    sized.aggregation_temporality = 1
    add_point(sized, NOW, NOW - 10, scale=3).positive.bucket_counts.extend([1, 2])
    yield request.SerializeToString()
    yield b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "g", "gauge": {}}]}]}]}'


def pages() -> Iterator[bytes]:
    """Yield pages of metrics."""
    yield b'# TYPE took histogram\ntook_bucket{a="shop",le="+Inf"} 3 1700000000000 # {x="y"} 1\ntook_sum 4\n'


def access_logs() -> Iterator[bytes]:
    """Yield lines of logs."""
    yield b'h - - [10/Oct/2023:13:55:36 +0000] "GET /a/1 HTTP/1.1" 200 5\n' * 3
    yield b'{"time": 1700000000, "method": "GET", "path": "/x", "status": 200, "duration": 0.1}\n'


def _converted(read: Callable[[], Readings]) -> None:
    """Read twice, a moment apart, and convert: points can be sent and read again."""
    conversion = Conversion(_ALL)
    try:
        found = read()
    except InvalidMessage:
        return
    conversion.take(found.readings, NOW)
    for points in conversion.close(NOW + 1000):
        decode_metric_points(encode_metric_points(points))
