"""The kinds of metrics: this file is all that a new one needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

RegressionKind = Literal["short_term", "long_term"]
"""Which of the two detection paths found a regression (FBDetect §5.4.1)."""

MetricKind = Literal["subroutine", "endpoint", "metadata", "service"]
"""What a series measures: gCPU of a subroutine, endpoint or metadata value, or a service-level metric."""

AnnotationKind = Literal["endpoint", "metadata"]
"""What a stack frame can be annotated with (FBDetect §3.2, ``SetFrameMetadata``)."""


@dataclass(frozen=True, slots=True)
class KindMeasure:
    """What the series of one kind hold, and how their members are spelt in a stack."""

    gcpu: bool  # shares of the service's samples; else values in the metric's own unit, which may be negative
    prefix: str = ""  # before a member's name, where members are distinguished from subroutines


METRIC_KINDS: Mapping[MetricKind, KindMeasure] = {
    "subroutine": KindMeasure(gcpu=True),
    "endpoint": KindMeasure(gcpu=True, prefix="endpoint="),
    "metadata": KindMeasure(gcpu=True, prefix="metadata="),
    "service": KindMeasure(gcpu=False, prefix="service="),
}
"""Every kind; one of gCPU with a prefix annotates frames, and is an AnnotationKind too."""

_VALUES = frozenset(kind for kind, measure in METRIC_KINDS.items() if not measure.gcpu)


def is_gcpu(kind: str) -> bool:
    """Return whether series of a kind are shares of samples, and no values in a unit of their own."""
    return kind not in _VALUES
