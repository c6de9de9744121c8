"""Metadata of a service-level metric."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricMetadata:
    """Unit, kind and direction of a service-level metric, as its messages give them; else empty."""

    unit: str = ""  # UCUM, as OpenTelemetry writes it: s, ms, By, 1, %, {request}/s
    kind: str = ""  # such as latency; see pipeline.analysis.detect.metric_direction
    direction: str = ""  # the direction in which it gets worse: up, down or none

    def __bool__(self) -> bool:
        """Return whether any of them is given."""
        return bool(self.unit or self.kind or self.direction)

    @property
    def plain_kind(self) -> str:
        """The kind in lower case and in one spelling."""
        return self.kind.lower().replace("utilisation", "utilization")
