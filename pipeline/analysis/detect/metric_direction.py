"""Direction in which a service-level metric gets worse, from its metadata.

What is said of the direction itself counts first, then the kind, then the unit. Kinds are signals of a
service, named as in OpenTelemetry's semantic conventions, and units are UCUM as those prescribe it. They do
not say which way is good, so that only units stand here of which that is plain: a share (``1``, ``%``) may be
one of hits or of errors, and a rate of requests supply or demand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pipeline.model import Direction, MetricMetadata

Worse = Direction | Literal["none"]
"""Up: a rise is a regression; down: a drop is; none: neither is."""

DIRECTIONS: tuple[Worse, ...] = ("up", "down", "none")

KINDS: Mapping[str, Worse] = {
    "latency": "up",
    "errors": "up",
    "utilization": "up",
    "saturation": "up",
    "queue": "up",
    "usage": "up",
    "cost": "up",
    "demand": "up",
    "throughput": "down",
    "capacity": "down",
    "availability": "down",
    "success": "down",
    "hit_ratio": "down",
    "traffic": "none",
    "info": "none",
}
"""Kinds of metrics; one that does not stand here says nothing."""

_TIME = frozenset({"s", "ms", "us", "ns", "min", "h", "d"})
_BYTES = re.compile(r"([kMGTP]i?)?By")
_FAULTS = re.compile(r"\{((error|fault|failure|timeout|rejection|drop)s?|retry|retries)\}(/(s|min|h))?")


def worse_direction(metadata: MetricMetadata) -> Worse | None:
    """Return in which direction a metric gets worse; None where its metadata do not say."""
    for direction in DIRECTIONS:
        if metadata.direction == direction:
            return direction
    if metadata.plain_kind in KINDS:
        return KINDS[metadata.plain_kind]
    unit = metadata.unit
    if unit in _TIME or _BYTES.fullmatch(unit) or _FAULTS.fullmatch(unit):
        return "up"
    return None
