"""What a service says of one of its metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricMetadata:
    """Unit, kind and direction of a service-level metric; empty where nothing is said."""

    unit: str = ""  # UCUM, as OpenTelemetry writes it: s, ms, By, 1, %, {request}/s
    kind: str = ""  # what it measures, such as latency: pipeline.analysis.detect.metric_direction knows which
    direction: str = ""  # in which it gets worse: up, down or none

    def __bool__(self) -> bool:
        """Return whether anything is said."""
        return bool(self.unit or self.kind or self.direction)

    @property
    def plain_kind(self) -> str:
        """The kind in one spelling."""
        return self.kind.lower().replace("utilisation", "utilization")
