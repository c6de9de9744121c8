"""Prometheus' remote write, versions 1.0 and 2.0: series with samples, and native histograms.

The fields are those of ``prometheus.WriteRequest`` and ``io.prometheus.write.v2.Request``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.metrics.exponential import MAX_BUCKETS, Exponential
from agents.metrics.prometheus import reading_of
from agents.metrics.reading import Families, Family, InvalidCount, Labels, Reading, Readings
from agents.profiles.formats.protobuf import Fields, Schema, text_of

V2_TYPE = "io.prometheus.write.v2.Request"
"""Message that the content type of version 2.0 names."""

_TYPES = ("", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset")
"""Types of metrics, by their numbers."""

_GAUGE_HINT = 3  # of a native histogram that counts nothing up
_SCHEMAS = range(-4, 9)

_SPAN: Fields = {"offset": (1, "sint32", False), "length": (2, "uint32", False)}
_HISTOGRAM: Fields = {
    "schema": (4, "sint32", False),
    "zero_threshold": (5, "double", False),
    "zero_count_int": (6, "uint64", False),
    "zero_count_float": (7, "double", False),
    "negative_spans": (8, "Span", True),
    "negative_deltas": (9, "sint64", True),
    "negative_counts": (10, "double", True),
    "positive_spans": (11, "Span", True),
    "positive_deltas": (12, "sint64", True),
    "positive_counts": (13, "double", True),
    "reset_hint": (14, "int32", False),
    "timestamp": (15, "int64", False),
    "start_timestamp": (17, "int64", False),
}
_V1: Mapping[str, Fields] = {
    "Span": _SPAN,
    "Histogram": _HISTOGRAM,
    "Label": {"name": (1, "text", False), "value": (2, "text", False)},
    "Sample": {"value": (1, "double", False), "timestamp": (2, "int64", False)},
    "Metadata": {
        "type": (1, "int32", False),
        "metric_family_name": (2, "text", False),
        "unit": (5, "text", False),
    },
    "Series": {
        "labels": (1, "Label", True),
        "samples": (2, "Sample", True),
        "histograms": (4, "Histogram", True),
    },
    "Request": {"timeseries": (1, "Series", True), "metadata": (3, "Metadata", True)},
}
_V2: Mapping[str, Fields] = {
    "Span": _SPAN,
    "Histogram": _HISTOGRAM,
    "Sample": {
        "value": (1, "double", False),
        "timestamp": (2, "int64", False),
        "start_timestamp": (3, "int64", False),
    },
    "Metadata": {"type": (1, "int32", False), "unit_ref": (4, "uint32", False)},
    "Series": {
        "labels_refs": (1, "uint32", True),
        "samples": (2, "Sample", True),
        "histograms": (3, "Histogram", True),
        "metadata": (5, "Metadata", False),
        "created_timestamp": (6, "int64", False),
    },
    "Request": {"symbols": (4, "text", True), "timeseries": (5, "Series", True)},
}

REMOTE_WRITE = {1: Schema("remote write 1.0", _V1), 2: Schema("remote write 2.0", _V2)}
"""Version → its schema."""


def read_remote_write(body: bytes, families: dict[str, Family], *, content_type: str = "") -> Readings:
    """Read a request, which is unpacked already.

    Args:
        body: Of the request.
        families: Metadata of metrics so far, by name: version 1.0 sends it now and then, in requests of its
        own. The metadata of this request is added.
        content_type: Of the request; it names the message of version 2.0.

    Raises:
        InvalidMessage: it is no such request.
    """
    version = 2 if V2_TYPE in content_type else 1
    request = REMOTE_WRITE[version].read("Request", body)
    invalid = InvalidCount()
    series = _series_2(request, families) if version == 2 else _series_1(request, families)
    readings: list[Reading] = []
    samples = histograms = 0
    for labels, message, start in series:
        try:
            readings += _readings(labels, message, start, Families(families))
            samples, histograms = samples + len(message.samples), histograms + len(message.histograms)
        except ValueError as error:
            invalid.add(f"{dict(labels or ()).get('__name__', 'a series')[:100]}: {error}")
    return Readings(tuple(readings), invalid.count, invalid.first, samples, histograms)


def _series_1(request: Any, families: dict[str, Family]) -> Iterator[tuple[Labels | None, Any, float]]:
    """Yield each series of version 1.0 with its labels."""
    for metadata in request.metadata:
        families[text_of(metadata.metric_family_name)] = Family(_type(metadata.type), text_of(metadata.unit))
    for series in request.timeseries:
        yield tuple((text_of(label.name), text_of(label.value)) for label in series.labels), series, 0.0


def _series_2(request: Any, families: dict[str, Family]) -> Iterator[tuple[Labels | None, Any, float]]:
    """Yield each series of version 2.0 with its labels and start; None where a label is no symbol."""
    symbols = [text_of(symbol) for symbol in request.symbols]
    for series in request.timeseries:
        refs = series.labels_refs
        if (
            len(refs) % 2
            or any(ref >= len(symbols) for ref in refs)
            or series.metadata.unit_ref >= max(len(symbols), 1)
        ):
            yield None, series, 0.0
            continue
        labels = tuple((symbols[refs[i]], symbols[refs[i + 1]]) for i in range(0, len(refs), 2))
        type_ = _type(series.metadata.type)
        if type_:
            unit = symbols[series.metadata.unit_ref] if symbols else ""
            name = dict(labels).get("__name__", "")
            for ending in ("_bucket", "_count", "_sum") if type_ in ("histogram", "summary") else ():
                name = name.removesuffix(ending)
            families[name] = Family(type_, unit)
        yield labels, series, series.created_timestamp / 1000


def _readings(labels: Labels | None, series: Any, start: float, families: Families) -> Iterator[Reading]:
    """Yield the samples of a series.

    Raises:
        ValueError: its labels or a histogram make no sense.
    """
    if labels is None:
        raise ValueError("a label that is no symbol of the request")
    own = dict(labels)
    name = own.pop("__name__", "")
    if not name:
        raise ValueError("no __name__")
    rest = tuple(own.items())
    for sample in series.samples:
        begun = getattr(sample, "start_timestamp", 0) / 1000 or start
        reading = reading_of(name, rest, sample.timestamp / 1000, sample.value, families, start=begun)
        if reading:
            yield reading
    for histogram in series.histograms:
        if histogram.reset_hint == _GAUGE_HINT:
            continue
        yield Reading(
            name,
            tuple(sorted(rest)),
            histogram.timestamp / 1000,
            _exponential(histogram),
            "exponential",
            start=histogram.start_timestamp / 1000 or start,
            unit=families.of(name).unit,
        )


def _exponential(histogram: Any) -> Exponential:
    """Return a native histogram; its buckets are numbered by their upper bounds."""
    if histogram.schema not in _SCHEMAS:
        raise ValueError(f"a native histogram of schema {histogram.schema}")
    return Exponential(
        histogram.schema,
        histogram.zero_count_int + histogram.zero_count_float,
        histogram.zero_threshold,
        _buckets(histogram.positive_spans, histogram.positive_deltas, histogram.positive_counts),
        _buckets(histogram.negative_spans, histogram.negative_deltas, histogram.negative_counts),
    )


def _buckets(spans: Any, deltas: Any, counts: Any) -> dict[int, float]:
    """Return counts by bucket, from absolute counts or from differences to the previous bucket."""
    if sum(span.length for span in spans) != (len(counts) or len(deltas)) or len(deltas) > MAX_BUCKETS:
        raise ValueError("spans and buckets of a native histogram do not agree")
    values, so_far = list(counts), 0
    if not values:
        for delta in deltas:
            so_far += delta
            values.append(float(so_far))
    if values and not min(values) >= 0:
        raise ValueError("a bucket with a negative count")
    by_index: dict[int, float] = {}
    index, position = 0, 0
    for span in spans:
        index += span.offset
        for _ in range(span.length):
            if values[position]:
                by_index[index - 1] = values[position]
            index, position = index + 1, position + 1
    return by_index


def _type(number: int) -> str:
    return _TYPES[number] if 0 <= number < len(_TYPES) else ""
