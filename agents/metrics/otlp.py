"""OTLP metrics: what OpenTelemetry's SDKs and collectors export, as a protocol buffer or as JSON.

The fields are those of ``opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from agents.metrics.exponential import MAX_BUCKETS, MAX_INDEX, MAX_SCALE, MIN_SCALE, Exponential, buckets_from
from agents.metrics.reading import LEVELS, InvalidCount, Labels, Part, Readings, SeriesReading
from agents.profiles.formats.protobuf import Fields, Schema, text_of

_DELTA, _CUMULATIVE = 1, 2
SCOPE = "otel_scope_name"
"""Label of the library that counts, as Prometheus names it: two of one process have series of their own."""

_NO_VALUE = 1
"""The flag of a point that was not recorded."""

_TIMES: Fields = {
    "start_time_unix_nano": (2, "fixed64", False),
    "time_unix_nano": (3, "fixed64", False),
}
_POINTS = "data_points"
OTLP_METRICS = Schema(
    "OTLP metrics",
    {
        "AnyValue": {
            "string_value": (1, "text", False),
            "bool_value": (2, "bool", False),
            "int_value": (3, "int64", False),
            "double_value": (4, "double", False),
            "array_value": (5, "Values", False),
            "kvlist_value": (6, "KeyValues", False),
            "bytes_value": (7, "bytes", False),
        },
        "Values": {"values": (1, "AnyValue", True)},
        "KeyValues": {"values": (1, "KeyValue", True)},
        "KeyValue": {"key": (1, "text", False), "value": (2, "AnyValue", False)},
        "Number": {
            **_TIMES,
            "as_double": (4, "double", False),
            "as_int": (6, "sfixed64", False),
            "attributes": (7, "KeyValue", True),
            "flags": (8, "uint32", False),
        },
        "Explicit": {
            **_TIMES,
            "count": (4, "fixed64", False),
            "bucket_counts": (6, "fixed64", True),
            "explicit_bounds": (7, "double", True),
            "attributes": (9, "KeyValue", True),
            "flags": (10, "uint32", False),
        },
        "Buckets": {"offset": (1, "sint32", False), "bucket_counts": (2, "uint64", True)},
        "Sized": {
            **_TIMES,
            "attributes": (1, "KeyValue", True),
            "scale": (6, "sint32", False),
            "zero_count": (7, "fixed64", False),
            "positive": (8, "Buckets", False),
            "negative": (9, "Buckets", False),
            "flags": (10, "uint32", False),
            "zero_threshold": (14, "double", False),
        },
        "AtQuantile": {"quantile": (1, "double", False), "value": (2, "double", False)},
        "Ranked": {
            **_TIMES,
            "count": (4, "fixed64", False),
            "quantile_values": (6, "AtQuantile", True),
            "attributes": (7, "KeyValue", True),
            "flags": (8, "uint32", False),
        },
        "Gauge": {_POINTS: (1, "Number", True)},
        "Sum": {
            _POINTS: (1, "Number", True),
            "aggregation_temporality": (2, "int32", False),
            "is_monotonic": (3, "bool", False),
        },
        "Histogram": {_POINTS: (1, "Explicit", True), "aggregation_temporality": (2, "int32", False)},
        "ExponentialHistogram": {_POINTS: (1, "Sized", True), "aggregation_temporality": (2, "int32", False)},
        "Summary": {_POINTS: (1, "Ranked", True)},
        "Metric": {
            "name": (1, "text", False),
            "unit": (3, "text", False),
            "gauge": (5, "Gauge", False),
            "sum": (7, "Sum", False),
            "histogram": (9, "Histogram", False),
            "exponential_histogram": (10, "ExponentialHistogram", False),
            "summary": (11, "Summary", False),
        },
        "Scope": {"name": (1, "text", False)},
        "ScopeMetrics": {"scope": (1, "Scope", False), "metrics": (2, "Metric", True)},
        "Resource": {"attributes": (1, "KeyValue", True)},
        "ResourceMetrics": {"resource": (1, "Resource", False), "scope_metrics": (2, "ScopeMetrics", True)},
        "Request": {"resource_metrics": (1, "ResourceMetrics", True)},
    },
)


def read_otlp_metrics(body: bytes) -> Readings:
    """Read a request of the metrics service, a protocol buffer.

    Raises:
        InvalidMessage: it is none.
    """
    return _read(OTLP_METRICS.read("Request", body))


def read_otlp_json(body: bytes) -> Readings:
    """Read a request of the metrics service in the JSON of protocol buffers.

    Raises:
        InvalidMessage: it is none.
    """
    return _read(OTLP_METRICS.read_json("Request", body))


def _read(request: Any) -> Readings:
    invalid, readings = InvalidCount(), []
    for resource in request.resource_metrics:
        shared = _attributes(resource.resource.attributes)
        for scoped in resource.scope_metrics:
            labels = {SCOPE: text_of(scoped.scope.name), **shared} if scoped.scope.name else shared
            for metric in scoped.metrics:
                try:
                    readings += list(_metric(metric, labels))
                except ValueError as error:
                    invalid.add(f"{text_of(metric.name)[:100]}: {error}")
    return Readings(tuple(readings), invalid.count, invalid.first)


def _metric(metric: Any, shared: Mapping[str, str]) -> Iterator[SeriesReading]:
    """Yield the readings of a metric.

    Raises:
        ValueError: it makes no sense.
    """
    for kind, read in _READERS.items():
        if not metric.HasField(kind):
            continue
        data = getattr(metric, kind)
        for point in data.data_points:
            if not point.flags & _NO_VALUE:
                yield from read(_Point(metric, data, point, shared))


class _Point:
    """A point of a metric, with what holds for all of its readings."""

    def __init__(self, metric: Any, data: Any, point: Any, shared: Mapping[str, str]) -> None:
        self.data, self.point = data, point
        self._is_sum = metric.HasField("sum")
        self._name, self._unit = text_of(metric.name), text_of(metric.unit)
        self._labels: Labels = tuple(sorted({**shared, **_attributes(point.attributes)}.items()))

    @property
    def is_delta(self) -> bool:
        """True if the point counts since the previous point.

        Raises:
            ValueError: it does not say.
        """
        if self.data.aggregation_temporality not in (_DELTA, _CUMULATIVE):
            raise ValueError("aggregation_temporality should be delta or cumulative")
        return bool(self.data.aggregation_temporality == _DELTA)

    def reading(
        self, part: Part, value: float | Exponential, at: float = 0.0, *, is_delta: bool = False
    ) -> SeriesReading:
        """Return a reading of the point; a level has no start, unless it is a sum that may fall."""
        is_stream = part not in LEVELS or self._is_sum
        return SeriesReading(
            self._name,
            self._labels,
            self.point.time_unix_nano / 1e9,
            value,
            part,
            at,
            self.point.start_time_unix_nano / 1e9 if is_stream else 0.0,
            is_delta,
            self._unit,
        )


def _gauge(point: _Point) -> Iterator[SeriesReading]:
    value = point.point.as_double + point.point.as_int  # one of them is given
    if math.isfinite(value):
        yield point.reading("gauge", value)


def _sum(point: _Point) -> Iterator[SeriesReading]:
    if not point.data.is_monotonic:
        if point.is_delta:
            raise ValueError("a delta sum that may fall has no level")
        yield from _gauge(point)
        return
    value = point.point.as_double + point.point.as_int
    if not (math.isfinite(value) and value >= 0):
        raise ValueError("a counter that is negative or no number")
    yield point.reading("counter", value, is_delta=point.is_delta)


def _explicit(point: _Point) -> Iterator[SeriesReading]:
    bounds, counts = list(point.point.explicit_bounds), list(point.point.bucket_counts)
    if len(counts) > MAX_BUCKETS:
        raise ValueError(f"more than {MAX_BUCKETS} buckets")
    if not counts:
        yield point.reading("count", float(point.point.count), is_delta=point.is_delta)
        return
    if len(counts) != len(bounds) + 1 or any(not a < b for a, b in zip(bounds, bounds[1:], strict=False)):
        raise ValueError("bounds should ascend, and be one less than the buckets")
    at_most = 0
    for bound, count in zip((*bounds, math.inf), counts, strict=True):
        at_most += count
        yield point.reading("bucket", float(at_most), bound, is_delta=point.is_delta)


def _exponential(point: _Point) -> Iterator[SeriesReading]:
    sized = point.point
    sides = (sized.positive, sized.negative)
    if not MIN_SCALE <= sized.scale <= MAX_SCALE or not 0 <= sized.zero_threshold < math.inf:
        raise ValueError(f"an exponential histogram of scale {sized.scale}")
    for side in sides:
        if len(side.bucket_counts) > MAX_BUCKETS or abs(side.offset) > MAX_INDEX:
            raise ValueError(f"more than {MAX_BUCKETS} buckets")
    positive, negative = (buckets_from(side.offset, [float(n) for n in side.bucket_counts]) for side in sides)
    value = Exponential(sized.scale, float(sized.zero_count), sized.zero_threshold, positive, negative)
    yield point.reading("exponential", value, is_delta=point.is_delta)


def _summary(point: _Point) -> Iterator[SeriesReading]:
    yield point.reading("count", float(point.point.count))
    for quantile in point.point.quantile_values:
        if math.isfinite(quantile.value) and 0 <= quantile.quantile <= 1:
            yield point.reading("quantile", quantile.value, quantile.quantile)


_READERS = {
    "gauge": _gauge,
    "sum": _sum,
    "histogram": _explicit,
    "exponential_histogram": _exponential,
    "summary": _summary,
}


def _attributes(attributes: Any) -> dict[str, str]:
    """Return attributes as texts."""
    texts = {}
    for attribute in attributes:
        text = _text(attribute.value)
        if text is not None:
            texts[text_of(attribute.key)] = text
    return texts


def _text(value: Any) -> str | None:
    """Return a value as a text, None if it has none; lists and maps are spelt like those of JSON."""
    set_fields = [field.name for field, _ in value.ListFields()]
    if not set_fields:
        return None
    content = getattr(value, set_fields[0])
    match set_fields[0], content:
        case "array_value", _:
            return f"[{','.join(_text(item) or '' for item in content.values)}]"
        case "kvlist_value", _:
            texts = sorted(_attributes(content.values).items())
            return f"{{{','.join(f'{key}:{text}' for key, text in texts)}}}"
        case "bytes_value", _:
            return str(content.hex())
        case _, bytes():
            return text_of(content)
        case _, bool():
            return "true" if content else "false"
        case _, float():
            return f"{content:.15g}"
        case _:
            return str(content)
