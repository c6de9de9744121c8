"""Units and kinds of metrics by their names and units, and the metrics that are taken by default.

Names and units are those of OpenTelemetry's semantic conventions, and of Prometheus' naming practices.
"""

from __future__ import annotations

from typing import Any

ENDINGS: tuple[tuple[str, str], ...] = (
    ("_milliseconds", "ms"),
    ("_seconds", "s"),
    ("_bytes", "By"),
    ("_ratio", "1"),
    ("_percent", "%"),
)
"""Endings of names, without ``_total``, with their units in UCUM."""

UNITS = {
    "seconds": "s",
    "milliseconds": "ms",
    "bytes": "By",
    "ratio": "1",
    "ratios": "1",
    "percent": "%",
    "volts": "V",
}
"""Units of OpenMetrics and Prometheus, in UCUM."""

TIMES = frozenset({"s", "ms", "us", "ns", "min", "h"})
BYTES = frozenset({"By", "KiBy", "MiBy", "GiBy", "kBy", "MBy", "GBy"})

HTTP = ("http.server.request.duration", "http_server_request_duration_seconds")
_METHOD_ROUTE = ("http.request.method", "http_request_method", "method", "http.route", "http_route")

DEFAULTS: tuple[dict[str, Any], ...] = (
    {
        "take": [*HTTP, "http_request_duration_seconds", "http.server.duration"],
        "labels": [*_METHOD_ROUTE, "route", "handler"],
        "errors": {
            "http.response.status_code": "5??",
            "http_response_status_code": "5??",
            "http.status_code": "5??",
            "status_code": "5??",
            "status": "5*",
            "code": "5*",
        },
        "kind": "latency",
    },
    {
        "take": ["http_requests_total", "http_server_requests_total"],
        "labels": [*_METHOD_ROUTE, "handler"],
        "errors": {"code": "5*", "status": "5*", "status_code": "5??"},
        "kind": "throughput",
        "unit": "{request}",
    },
    {
        "take": [
            "rpc.server.duration",
            "rpc.server.call.duration",
            "rpc_server_duration_*",
            "rpc_server_call_duration_seconds",
            "grpc_server_handling_seconds",
        ],
        "labels": ["rpc.service", "rpc_service", "grpc_service", "rpc.method", "rpc_method", "grpc_method"],
        "kind": "latency",
    },
    {
        "take": ["process.memory.usage", "process_memory_usage_bytes", "process_resident_memory_bytes"],
        "kind": "usage",
        "unit": "By",
    },
    {"take": ["process.cpu.time", "process_cpu_seconds_total"], "kind": "usage", "unit": "s"},
)
"""Metrics taken unless a file names others: latency, traffic and errors of servers, memory and CPU."""


def unit_of(name: str, said: str) -> str:
    """Return the unit of a metric in UCUM; empty if neither its sender nor its name states one."""
    if said:
        return UNITS.get(said, said)
    base = name.removesuffix("_total")
    return next((unit for ending, unit in ENDINGS if base.endswith(ending)), "")


def kind_of(unit: str, *, is_distribution: bool) -> str:
    """Return the kind of a metric by its unit: observed times are latency, bytes of a gauge are usage."""
    if unit in TIMES and is_distribution:
        return "latency"
    return "usage" if unit in BYTES and not is_distribution else ""


def rate_unit(unit: str) -> str:
    """Return the unit of a counter's rate; CPU seconds a second are CPUs."""
    return "{cpu}" if unit == "s" else f"{unit or '1'}/s"
