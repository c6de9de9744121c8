from __future__ import annotations

import contextlib
import math
from typing import Any

import orjson
import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from agents.metrics import Readings, SeriesReading, read_otlp_json, read_otlp_metrics
from agents.metrics.exponential import Exponential
from agents.metrics.otlp import OTLP_METRICS
from pipeline.model.errors import InvalidMessage
from tests.support.metric_senders import add_metric, add_point, otlp_request

CUMULATIVE, DELTA = 2, 1


def read(request: Any) -> Readings:
    return read_otlp_metrics(request.SerializeToString())


def parts(found: Readings) -> list[tuple[str, float, object]]:
    return [(r.part, r.at, r.value) for r in found.readings]


def test_a_histogram_is_its_buckets_added_up() -> None:
    request = otlp_request("shop")
    data = add_metric(request, "took", "s").histogram
    data.aggregation_temporality = CUMULATIVE
    add_point(data, 20.0, 5.0, bucket_counts=[1, 2, 3], explicit_bounds=[0.1, 0.5])
    found = read(request)
    assert parts(found) == [("bucket", 0.1, 1.0), ("bucket", 0.5, 3.0), ("bucket", math.inf, 6.0)]
    labels = (("service.name", "shop"),)
    assert found.readings[0] == SeriesReading("took", labels, 20.0, 1.0, "bucket", 0.1, 5.0, False, "s")


def test_sums_gauges_and_summaries() -> None:
    request = otlp_request("shop")
    counter = add_metric(request, "c").sum
    counter.is_monotonic, counter.aggregation_temporality = True, DELTA
    add_point(counter, 2.0, 1.0, as_int=4)
    level = add_metric(request, "u").sum
    level.aggregation_temporality = CUMULATIVE
    add_point(level, 2.0, 1.0, as_double=-1.5)
    add_point(add_metric(request, "g").gauge, 2.0, as_double=0.5)
    summary = add_point(add_metric(request, "s").summary, 2.0, count=9)
    summary.quantile_values.add(quantile=0.99, value=3.0)
    found = read(request)
    assert parts(found) == [
        ("counter", 0.0, 4.0),
        ("gauge", 0.0, -1.5),
        ("gauge", 0.0, 0.5),
        ("count", 0.0, 9.0),
        ("quantile", 0.99, 3.0),
    ]
    assert [r.is_delta for r in found.readings] == [True, False, False, False, False]


def test_an_exponential_histogram() -> None:
    request = otlp_request("shop")
    data = add_metric(request, "took").exponential_histogram
    data.aggregation_temporality = CUMULATIVE
    point = add_point(data, 2.0, scale=3, zero_count=1)
    point.positive.offset = -2
    point.positive.bucket_counts.extend([1, 0, 2])
    assert read(request).readings[0].value == Exponential(3, 1.0, 0.0, {-2: 1.0, 0: 2.0}, {})


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param({"explicit_bounds": [0.5, 0.1], "bucket_counts": [1, 1, 1]}, id="bounds-descend"),
        pytest.param({"explicit_bounds": [0.5], "bucket_counts": [1]}, id="one-bucket-too-few"),
        pytest.param({"explicit_bounds": [math.nan, 1.0], "bucket_counts": [1, 1, 1]}, id="bound-is-nan"),
    ],
)
def test_a_metric_that_makes_no_sense_is_counted(spoil: dict[str, Any]) -> None:
    request = otlp_request("shop")
    data = add_metric(request, "took").histogram
    data.aggregation_temporality = CUMULATIVE
    add_point(data, 2.0, **spoil)
    add_point(add_metric(request, "g").gauge, 2.0, as_double=0.5)
    found = read(request)
    assert (len(found.readings), found.invalid) == (1, 1)
    assert found.first_invalid.startswith("took: ")


def test_a_histogram_that_says_no_temporality_is_counted() -> None:
    request = otlp_request("shop")
    add_point(add_metric(request, "took").histogram, 2.0, bucket_counts=[1, 1], explicit_bounds=[1.0])
    assert read(request).invalid == 1


def test_points_without_a_value_are_left_out() -> None:
    request = otlp_request("shop")
    add_point(add_metric(request, "g").gauge, 2.0, flags=1)
    assert read(request) == Readings(())


def test_json_says_the_same() -> None:
    request = otlp_request("shop")
    data = add_metric(request, "took", "s").histogram
    data.aggregation_temporality = CUMULATIVE
    add_point(data, 20.0, 5.0, bucket_counts=[1, 2, 3], explicit_bounds=[0.1, 0.5])
    spelt = OTLP_METRICS.as_json["Request"].FromString(request.SerializeToString())
    text = json_format.MessageToJson(spelt)
    assert '"explicitBounds"' in text
    assert read_otlp_json(text.encode()) == read(request)


@pytest.mark.parametrize("body", [b"", b"\xff", b'{"resourceMetrics": 3}', b"[" * 10_000])
def test_what_is_no_json_of_metrics_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidMessage, match="JSON"):
        read_otlp_json(body)


def test_fields_of_a_later_version_are_skipped() -> None:
    assert read_otlp_json(orjson.dumps({"resourceMetrics": [{"later": {"x": 1}}]})) == Readings(())


@given(st.binary())
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(InvalidMessage):
        read_otlp_metrics(body)


def test_streams_of_one_process_stay_apart_by_library_and_lists() -> None:
    request = otlp_request("shop")
    for scope in ("http.client.a", "http.client.b", ""):
        scoped = request.resource_metrics[0].scope_metrics.add()
        scoped.scope.name = scope.encode()
        data = scoped.metrics.add(name=b"c").sum
        data.is_monotonic, data.aggregation_temporality = True, CUMULATIVE
        add_point(data, 2.0, 1.0, as_int=4)
    for values in (("a", 1), ("a", 2)):
        point = add_point(data, 2.0, 1.0, as_int=4)
        items = point.attributes.add(key=b"tags").value.array_value.values
        items.add(string_value=values[0].encode())
        items.add(int_value=values[1])
        inner = point.attributes.add(key=b"map").value.kvlist_value.values.add(key=b"k")
        inner.value.bytes_value = b"\x01\xff"
    own = [dict(reading.labels) for reading in read(request).readings]
    assert [labels.get("otel_scope_name") for labels in own] == [
        "http.client.a",
        "http.client.b",
        *[None] * 3,
    ]
    assert [labels.get("tags") for labels in own[3:]] == ["[a,1]", "[a,2]"]
    assert own[4]["map"] == "{k:01ff}"
    spelt = OTLP_METRICS.as_json["Request"].FromString(request.SerializeToString())
    text = json_format.MessageToJson(spelt)
    assert read_otlp_json(text.encode()).readings == read(request).readings
