from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from agents.metrics import SeriesReading, read_exposition


def one(text: str, *, openmetrics: bool = False) -> SeriesReading:
    found = read_exposition(text, 1000.0, openmetrics=openmetrics)
    assert (found.invalid, len(found.readings)) == (0, 1), found
    return found.readings[0]


def registry() -> CollectorRegistry:
    """Return one metric of each type, with a value that breaks careless parsers."""
    registry = CollectorRegistry()
    counter = Counter("jobs", "Jobs.", ["kind"], registry=registry)
    counter.labels('a "b" \\ {c}, d\n').inc(3)
    Gauge("queue", "Waiting.", registry=registry).set(-2.5)
    histogram = Histogram("took_seconds", "Took.", buckets=(0.1, 1.0), registry=registry)
    for value in (0.05, 0.5, 5.0):
        histogram.observe(value, {"trace_id": "x#y"})
    Summary("size_bytes", "Size.", registry=registry).observe(12)
    return registry


@pytest.mark.parametrize("openmetrics", [False, True])
def test_what_the_usual_client_shows_is_read(openmetrics: bool) -> None:
    page = (generate_openmetrics if openmetrics else generate_latest)(registry()).decode()
    found = read_exposition(page, 1000.0, openmetrics=openmetrics)
    assert (found.invalid, found.first_invalid) == (0, "")
    read = {(r.name, r.part, r.at): (r.value, dict(r.labels), r.time) for r in found.readings}
    assert read == {
        ("jobs_total", "counter", 0.0): (3.0, {"kind": 'a "b" \\ {c}, d\n'}, 1000.0),
        ("queue", "gauge", 0.0): (-2.5, {}, 1000.0),
        ("took_seconds", "bucket", 0.1): (1.0, {}, 1000.0),
        ("took_seconds", "bucket", 1.0): (2.0, {}, 1000.0),
        ("took_seconds", "bucket", math.inf): (3.0, {}, 1000.0),
        ("took_seconds", "count", 0.0): (3.0, {}, 1000.0),
        ("size_bytes", "count", 0.0): (1.0, {}, 1000.0),
    }


@pytest.mark.parametrize(
    ("line", "name", "value", "time"),
    [
        pytest.param("x 1", "x", 1.0, 1000.0, id="plain"),
        pytest.param("x{} 1e3 5000", "x", 1000.0, 5.0, id="milliseconds"),
        pytest.param('x { a = "b" , } 0x10', "", 0.0, 0.0, id="hexadecimal-is-none"),
        pytest.param('{"http.server", a="b"} 2', "http.server", 2.0, 1000.0, id="quoted-name"),
        pytest.param('x{a="b"} +Inf', "", 0.0, 0.0, id="infinite"),
        pytest.param("x NaN", "", 0.0, 0.0, id="stale"),
        pytest.param("x", "", 0.0, 0.0, id="no-value"),
        pytest.param("x 1 2 3", "", 0.0, 0.0, id="too-many-words"),
        pytest.param("x 1_0", "", 0.0, 0.0, id="underscored"),
        pytest.param('x{a="b} 1', "", 0.0, 0.0, id="quote-left-open"),
        pytest.param("x{a} 1", "", 0.0, 0.0, id="label-without-value"),
        pytest.param('x_bucket{le="much"} 1', "", 0.0, 0.0, id="bound-is-no-number"),
        pytest.param('x_bucket{le="nan"} 1', "", 0.0, 0.0, id="bound-is-nan"),
    ],
)
def test_lines(line: str, name: str, value: float, time: float) -> None:
    found = read_exposition(line, 1000.0).readings
    assert [(r.name, r.value, r.time) for r in found] == ([(name, value, time)] if name else [])


def test_quantiles_of_summaries_have_their_rank() -> None:
    found = one('# TYPE rpc summary\nrpc{quantile="0.9",a="b"} 4')
    assert (found.part, found.at, found.labels) == ("quantile", 0.9, (("a", "b"),))


def test_seconds_and_the_end_of_openmetrics() -> None:
    assert (
        one("# UNIT took seconds\n# TYPE took gauge\ntook 1 12.5\n# EOF\ntook 2", openmetrics=True).time
        == 12.5
    )


def test_a_line_that_cannot_be_read_is_counted_and_named() -> None:
    found = read_exposition("x 1\nx{ 2\ny oops", 0.0)
    assert (len(found.readings), found.invalid) == (1, 2)
    assert found.first_invalid.startswith("line 2: ")


@given(st.text())
def test_any_text_is_read_without_a_failure(text: str) -> None:
    read_exposition(text, 0.0)
    read_exposition(f'x{{a="{text}"}} 1', 0.0)


def test_a_created_series_is_the_start_of_those_with_its_labels() -> None:
    page = read_exposition(
        """
# TYPE jobs counter
jobs_total{queue="a"} 7
jobs_created{queue="a"} 1.7e+09
jobs_total{queue="b"} 7
# TYPE d histogram
d_bucket{le="+Inf"} 3
d_created 1.6e+09
# TYPE late counter
late_total 1
late_created 9e+09
""",
        1.8e9,
    )
    starts = [(reading.name, reading.start) for reading in page.readings]
    assert starts == [("jobs_total", 1.7e9), ("jobs_total", 0), ("d", 1.6e9), ("late_total", 0)]
