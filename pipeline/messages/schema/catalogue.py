"""Messages of each topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.messages.schema import events, inputs, requests, scans, trials

JSON = "application/json"
CLOUD_EVENT = "application/cloudevents+json"
BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Message:
    """A kind of message. ``payload`` is its declaration; None: any bytes."""

    name: str  # of its schema's file as well
    payload: type | None
    content_type: str = JSON
    headers: type | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """What a topic holds; topics.yaml says who writes and reads it."""

    title: str
    description: str
    messages: tuple[Message, ...]


PROFILE = Message("profile", inputs.Profile)
METRIC_POINTS = Message("metric-points", inputs.MetricPoints)
REQUEST_COUNTS = Message("request-counts", requests.RequestCounts)
CHANGE = Message("change", inputs.Change)
SILENCE = Message("silence", inputs.Silence)
VERDICT = Message("verdict", inputs.Verdict)
PROGRESS = Message("progress", scans.Progress)
SCAN = Message("scan", scans.Scan)
DETECTED = Message("regression-detected", events.RegressionDetected, CLOUD_EVENT)
UPDATED = Message("regression-updated", events.RegressionUpdated, CLOUD_EVENT)
RESOLVED = Message("regression-resolved", events.RegressionResolved, CLOUD_EVENT)
TRIAL_SIDE = Message("trial-side", trials.TrialSide)
EXPERIMENT_END = Message("experiment-end", trials.ExperimentEnd)
TRIAL_VERDICT = Message("trial-verdict", trials.TrialVerdict, CLOUD_EVENT)
DEAD_LETTER = Message("dead-letter", None, BYTES, headers=events.DeadLetterHeaders)

CHANNELS: Mapping[str, Channel] = {
    "profiles": Channel(
        "Stack samples",
        "A host's stack samples of one interval, aggregated and dictionary-encoded.",
        (PROFILE,),
    ),
    "metrics": Channel(
        "Service-level metrics",
        "Points of any service-level metric, such as throughput, and of set-up metrics that only explain.",
        (METRIC_POINTS,),
    ),
    "requests": Channel(
        "Requests by type",
        "What one host got in one period: requests by type, statuses by class, response times.",
        (REQUEST_COUNTS,),
    ),
    "changes": Channel("Deployed changes", "A deployed code or config change.", (CHANGE,)),
    "windows": Channel(
        "Progress",
        "Event time up to which a partition of a service is aggregated.",
        (PROGRESS,),
    ),
    "change-points": Channel("Scans with change points", "One scan of one service.", (SCAN,)),
    "filtered": Channel(
        "Scans without false alarms",
        "The same scan after the filters; what they dropped is in it.",
        (SCAN,),
    ),
    "unique": Channel(
        "Scans with one candidate a cause",
        "The same scan after deduplication; what was merged or dropped is in it.",
        (SCAN,),
    ),
    "regressions": Channel(
        "Regressions",
        "CloudEvents 1.0: a regression is detected, updated, resolved. A replay repeats the ids.",
        (DETECTED, UPDATED, RESOLVED),
    ),
    "feedback": Channel(
        "Feedback",
        "What people say of regressions: a cost that they announce, a mute with an owner and an end, and "
        "their verdict on an event.",
        (SILENCE, VERDICT),
    ),
    "trials": Channel(
        "Trials",
        "What each side of each trial of an experiment measured, and that an experiment has ended.",
        (TRIAL_SIDE, EXPERIMENT_END),
    ),
    "trial-verdicts": Channel(
        "Verdicts on trials",
        "CloudEvents 1.0: whether the new code of an experiment is worse. A replay repeats the ids.",
        (TRIAL_VERDICT,),
    ),
    "dead-letters": Channel(
        "Dead letters",
        "Messages that can never be used: original key and bytes; the origin and the reason as headers.",
        (DEAD_LETTER,),
    ),
}
"""By the topic's logical name, in the order of topics.yaml."""
