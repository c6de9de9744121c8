from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.metrics import Readings, read_remote_write
from agents.metrics.exponential import Exponential
from agents.metrics.remote_write import REMOTE_WRITE, V2_TYPE
from pipeline.model.errors import InvalidMessage
from tests.support.metric_senders import write_request

V2 = f"application/x-protobuf;proto={V2_TYPE}"


def read_2(body: bytes) -> Readings:
    return read_remote_write(body, {}, content_type=V2)


def test_series_of_version_1() -> None:
    body = write_request(
        [
            ({"__name__": "a_total", "job": "shop"}, 10.5, 3.0),
            ({"__name__": "d_bucket", "le": "+Inf"}, 10.5, 4.0),
            ({"__name__": "g"}, 10.5, math.nan),
            ({"job": "nameless"}, 10.5, 1.0),
        ]
    )
    found = read_remote_write(body, {})
    assert [(r.name, r.part, r.at, r.value, r.time) for r in found.readings] == [
        ("a_total", "counter", 0.0, 3.0, 10.5),
        ("d", "bucket", math.inf, 4.0, 10.5),
    ]
    assert (found.invalid, found.first_invalid) == (1, "a series: no __name__")


def test_types_that_a_former_request_said_count() -> None:
    families: dict[str, object] = {}
    series = [({"__name__": "hits"}, 1.0, 1.0)]
    assert read_remote_write(write_request(series), families).readings[0].part == "gauge"  # type: ignore[arg-type]
    read_remote_write(write_request([], {"hits": 1}), families)  # type: ignore[arg-type]
    assert read_remote_write(write_request(series), families).readings[0].part == "counter"  # type: ignore[arg-type]


def test_series_of_version_2() -> None:
    request = REMOTE_WRITE[2]["Request"]()
    request.symbols.extend([b"", b"__name__", b"took_bucket", b"le", b"0.5", b"seconds"])
    series = request.timeseries.add(labels_refs=[1, 2, 3, 4])
    series.metadata.type, series.metadata.unit_ref = 3, 5
    series.samples.add(value=7, timestamp=2000, start_timestamp=500)
    request.timeseries.add(labels_refs=[1, 99]).samples.add(value=1)
    found = read_2(request.SerializeToString())
    reading = found.readings[0]
    assert (reading.name, reading.part, reading.at, reading.start, reading.unit) == (
        "took",
        "bucket",
        0.5,
        0.5,
        "seconds",
    )
    assert found.invalid == 1


def test_native_histograms_are_exponential_ones() -> None:
    request = REMOTE_WRITE[1]["Request"]()
    series = request.timeseries.add()
    series.labels.add(name=b"__name__", value=b"took")
    histogram = series.histograms.add(schema=2, zero_count_int=1, zero_threshold=1e-9, timestamp=1000)
    histogram.positive_spans.add(offset=1, length=2)
    histogram.positive_spans.add(offset=3, length=1)
    histogram.positive_deltas.extend([4, -1, 2])
    found = read_remote_write(request.SerializeToString(), {}).readings[0]
    assert found.value == Exponential(2, 1.0, 1e-9, {0: 4.0, 1: 3.0, 5: 5.0})
    histogram.positive_spans[0].length = 2**31
    assert read_remote_write(request.SerializeToString(), {}).invalid == 1


@pytest.mark.parametrize("content_type", ["", V2])
def test_what_is_no_request_is_refused(content_type: str) -> None:
    with pytest.raises(InvalidMessage, match="remote write"):
        read_remote_write(b"\xff" * 9, {}, content_type=content_type)


@given(st.binary())
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for content_type in ("", V2):
        with contextlib.suppress(InvalidMessage):
            read_remote_write(body, {}, content_type=content_type)
