"""Which messages are on which topic, who sends them and who reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.codec.schema import events, inputs, scans

JSON = "application/json"
CLOUD_EVENT = "application/cloudevents+json"
BYTES = "application/octet-stream"

OUTSIDE = "outside"
"""Who sends or reads that is no stage: agents, CI, subscribers, people."""


@dataclass(frozen=True, slots=True)
class Message:
    """A kind of message. ``payload`` is its declaration; None: any bytes."""

    name: str  # of its schema's file as well
    payload: type | None
    content_type: str = JSON
    headers: type | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """What a topic holds. ``senders`` and ``readers`` are stages, or OUTSIDE."""

    title: str
    description: str
    senders: tuple[str, ...]
    readers: tuple[str, ...]
    messages: tuple[Message, ...]


PROFILE = Message("profile", inputs.Profile)
METRIC_POINTS = Message("metric-points", inputs.MetricPoints)
CHANGE = Message("change", inputs.Change)
PROGRESS = Message("progress", scans.Progress)
SCAN = Message("scan", scans.Scan)
DETECTED = Message("regression-detected", events.RegressionDetected, CLOUD_EVENT)
UPDATED = Message("regression-updated", events.RegressionUpdated, CLOUD_EVENT)
RESOLVED = Message("regression-resolved", events.RegressionResolved, CLOUD_EVENT)
DEAD_LETTER = Message("dead-letter", None, BYTES, headers=events.DeadLetterHeaders)

CHANNELS: Mapping[str, Channel] = {
    "profiles": Channel(
        "Stack samples",
        "A host's stack samples of one interval, aggregated and dictionary-encoded.",
        (OUTSIDE,),
        ("aggregate",),
        (PROFILE,),
    ),
    "metrics": Channel(
        "Service-level metrics",
        "Points of any service-level metric, such as throughput, and of set-up metrics that only explain.",
        (OUTSIDE,),
        ("aggregate",),
        (METRIC_POINTS,),
    ),
    "changes": Channel(
        "Deployed changes", "A deployed code or config change.", (OUTSIDE,), ("aggregate",), (CHANGE,)
    ),
    "windows": Channel(
        "Progress",
        "Event time up to which a partition of a service is aggregated.",
        ("aggregate",),
        ("detect",),
        (PROGRESS,),
    ),
    "change-points": Channel(
        "Scans with change points", "One scan of one service.", ("detect",), ("filter",), (SCAN,)
    ),
    "filtered": Channel(
        "Scans without false alarms",
        "The same scan after the filters; what they dropped is in it.",
        ("filter",),
        ("dedup",),
        (SCAN,),
    ),
    "unique": Channel(
        "Scans with one candidate a cause",
        "The same scan after deduplication; what was merged or dropped is in it.",
        ("dedup",),
        ("rootcause",),
        (SCAN,),
    ),
    "regressions": Channel(
        "Regressions",
        "CloudEvents 1.0: a regression is detected, updated, resolved. A replay repeats the ids.",
        ("rootcause",),
        (OUTSIDE,),
        (DETECTED, UPDATED, RESOLVED),
    ),
    "feedback": Channel(
        "Feedback", "A person's verdict on an event. Reserved: no message is defined yet.", (), (), ()
    ),
    "dead-letters": Channel(
        "Dead letters",
        "Messages that can never be used: original key and bytes; the origin and the reason as headers.",
        ("aggregate", "detect", "filter", "dedup", "rootcause"),
        (OUTSIDE,),
        (DEAD_LETTER,),
    ),
}
"""By the topic's logical name, in the order of topics.yaml."""
