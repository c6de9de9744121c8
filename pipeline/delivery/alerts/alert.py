"""An event as alerts see it: the properties that rules match and messages show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pipeline.delivery.alerts.outcome import MetricOutcome, TrialOutcome, outcome_of, thread_id
from pipeline.messages.events import RESOLVED, UPDATED
from pipeline.messages.fields import parse_object
from pipeline.messages.records import check, encode, read, to_json
from pipeline.messages.schema import alerts as shapes
from pipeline.messages.schema.trials import VERDICT
from pipeline.model.clock import from_iso
from pipeline.model.metric_kind import is_gcpu

AlertKind = Literal["detected", "updated", "resolved"]

EventKind = Literal["regression", "trial-fail", "trial-not-enough", "trial-pass"]
"""Subject of an event: a regression, whatever its state, or the verdict on an experiment."""

_KINDS: Mapping[str, AlertKind] = {UPDATED: "updated", RESOLVED: "resolved"}


@dataclass(frozen=True, slots=True)
class SuspectedChange:
    """The likeliest suspect of a regression, or the change that may have ended it."""

    id: str
    title: str = ""
    author: str = ""
    score: float = 0.0  # 0 to 1; of a fix it is 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """Properties of an event. Times are epoch seconds; levels are gCPU, or in the metric's own unit.

    A verdict on trials is a report, those after it are updates, and a pass resolves what failed. Its metric
    is the one that differs most; ``regression`` is what all verdicts on the experiment have in common.
    """

    event: str  # id
    kind: AlertKind
    regression: str  # id of the reporting event; its own if the event is a report
    service: str
    workload: str
    metric: str
    metric_kind: str
    time: float  # end of the scan that led to the event
    since: float  # change time, as it was reported
    before: float
    after: float  # as it was reported
    level: float  # where it is now
    relative: float | None = None  # the change as a share of the level before; None: there was none before
    p_value: float | None = None  # None: not known of an update
    servers: float | None = None
    waste_servers: float | None = None
    group_size: int = 0
    suspect: SuspectedChange | None = None
    owners: tuple[str, ...] = ()
    trial: TrialOutcome | None = None  # None: it is about a regression

    @property
    def about(self) -> EventKind:
        """Subject of the event, as rules match it."""
        if self.trial is None:
            return "regression"
        decisions: Mapping[str, EventKind] = {"fail": "trial-fail", "not enough": "trial-not-enough"}
        return decisions.get(self.trial.decision, "trial-pass")

    def by_metric(self) -> tuple[Alert, ...]:
        """Return the alert with each of its metrics; of a regression there is one."""
        alerts = tuple(_of_metric(self, metric) for metric in (self.trial.metrics if self.trial else ()))
        return alerts or (self,)

    @property
    def size(self) -> float:
        """Rise of the level above the one before."""
        return self.level - self.before

    @property
    def is_share(self) -> bool:
        """Whether levels are shares of the service's CPU."""
        return is_gcpu(self.metric_kind)

    @property
    def confidence(self) -> float | None:
        """Confidence that the level changed, 0 to 1."""
        return None if self.p_value is None else 1 - self.p_value


def alert_of(event: Mapping[str, Any]) -> Alert:
    """Read a decoded event; events of former versions may lack newer fields.

    The alert can be stored and sent: its fields are checked as those of a stored alert.

    Raises:
        KeyError, TypeError, ValueError, InvalidMessage: it lacks what every event has.
    """
    alert = _of_verdict(event) if event["type"] == VERDICT else _of_regression(event)
    check(shapes.Alert, to_json(alert))
    return alert


def _of_regression(event: Mapping[str, Any]) -> Alert:
    kind = _KINDS.get(str(event["type"]), "detected")
    data = event["data"]
    before, after = float(data["before"]), float(data["after"])
    level = float(data.get("level", after)) if kind != "detected" else after
    if grown := data.get("grown") or {}:
        level = max(level, float(grown["after"])) if grown["metric"] == data["metric"] else level
    return Alert(
        event=str(event["id"]),
        kind=kind,
        regression=str(data.get("regression", event["id"])),
        service=str(data["service"]),
        workload=str(data.get("workload", "")),
        metric=str(data["metric"]),
        metric_kind=str(data.get("metric_kind", "subroutine")),
        time=from_iso(event["time"]),
        since=from_iso(data.get("regression_time", data["change_time"])),
        before=before,
        after=after,
        level=level,
        relative=(level - before) / before if before else None,
        p_value=data.get("p_value"),
        servers=data.get("servers"),
        waste_servers=data.get("waste_servers"),
        group_size=int(data.get("group_size") or data.get("joined_size") or 0),
        suspect=_suspect(data, kind),
    )


def _of_verdict(event: Mapping[str, Any]) -> Alert:
    """Read a verdict on trials: its change is the release of side B, unless undecided."""
    outcome = outcome_of(event["data"])
    service, time = str(event["data"]["service"]), from_iso(event["time"])
    later: AlertKind = "updated" if outcome.revision > 1 else "detected"
    releases = outcome.releases_b if outcome.decision != "not enough" else ()
    alert = Alert(
        event=str(event["id"]),
        kind="resolved" if outcome.decision == "pass" else later,
        regression=thread_id(service, outcome.experiment),
        service=service,
        workload="",
        metric=outcome.experiment,
        metric_kind="service",
        time=time,
        since=time,
        before=0.0,
        after=0.0,
        level=0.0,
        suspect=SuspectedChange(releases[0], score=1.0) if len(releases) == 1 else None,
        trial=outcome,
    )
    return alert.by_metric()[0]


def _of_metric(alert: Alert, metric: MetricOutcome) -> Alert:
    before, after = metric.mean_a or 0.0, metric.mean_b or 0.0
    by_metric = replace(alert, metric=metric.metric, relative=metric.difference, p_value=metric.p_value)
    return replace(by_metric, before=before, after=after, level=after)


def _suspect(data: Mapping[str, Any], kind: AlertKind) -> SuspectedChange | None:
    """Return the likeliest suspect; of a resolved one the latest change that may have ended it."""
    if kind == "resolved":
        change, score = (data.get("resolved_by") or [None])[0], 0.0
    else:
        first = (data.get("root_causes") or [{}])[0]
        change, score = first.get("change"), float(first.get("score", 0))
    if not change:
        return None
    return SuspectedChange(
        id=str(change["id"]),
        title=str(change.get("title", "")),
        author=str(change.get("author", "")),
        score=score,
        files=tuple(map(str, (change.get("files") or [])[:50])),
    )


def encode_alert(alert: Alert) -> str:
    """Write an alert as JSON, as the store keeps it."""
    return encode(alert).decode()


def decode_alert(text: str) -> Alert:
    """Read the output of ``encode_alert``; fields that its version lacked are unknown.

    Raises:
        InvalidMessage: the field that is missing or wrong.
    """
    return read(Alert, check(shapes.Alert, parse_object(text.encode())))
