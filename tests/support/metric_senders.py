"""Requests of senders of metrics in their own protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.metrics.otlp import OTLP_METRICS
from agents.metrics.remote_write import REMOTE_WRITE


def write_request(
    series: Sequence[tuple[Mapping[str, str], float, float]], types: Mapping[str, int] | None = None
) -> bytes:
    """Return a request of remote write 1.0 with the labels, time and value of each series."""
    request = REMOTE_WRITE[1]["Request"]()
    for name, type_ in (types or {}).items():
        request.metadata.add(metric_family_name=name.encode(), type=type_)
    for labels, time, value in series:
        entry = request.timeseries.add()
        for name, text in sorted(labels.items()):
            entry.labels.add(name=name.encode(), value=text.encode())
        entry.samples.add(value=value, timestamp=round(time * 1000))
    data: bytes = request.SerializeToString()
    return data


def otlp_request(service: str) -> Any:
    """Return a request of OTLP with one resource; metrics are added by ``add_metric``."""
    request = OTLP_METRICS["Request"]()
    resource = request.resource_metrics.add()
    attribute = resource.resource.attributes.add(key=b"service.name")
    attribute.value.string_value = service.encode()
    resource.scope_metrics.add()
    return request


def add_metric(request: Any, name: str, unit: str = "") -> Any:
    """Return a new metric of a request."""
    return request.resource_metrics[0].scope_metrics[0].metrics.add(name=name.encode(), unit=unit.encode())


def add_point(data: Any, time: float, start: float = 0.0, **fields: Any) -> Any:
    """Return a new point of a metric's data, at a time in seconds."""
    point = data.data_points.add(**fields)
    point.time_unix_nano, point.start_time_unix_nano = round(time * 1e9), round(start * 1e9)
    return point
