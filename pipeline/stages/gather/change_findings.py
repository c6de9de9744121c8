"""Findings on changes: verdicts of trials, and the reported regressions that changes caused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from pipeline.analysis.feedback.precision import WRONG
from pipeline.analysis.rootcause.trials import Caused, MetricFinding, TrialFinding, size_of
from pipeline.experiments.trials import MetricDecision
from pipeline.stages.gather.reported import Answered, gather_answered
from pipeline.storage.interface import RowQuery, Store

_UNKNOWN_FALSE_NEGATIVES = 0.5
"""Share of false negatives of a model not chosen by A/A experiments, whose false positives are alpha."""

_DECIDED = {MetricDecision.PASS.value: False, MetricDecision.FAIL.value: True}
"""Decision → whether it failed."""


def trial_findings(store: Store, service: str, start: float, end: float) -> tuple[TrialFinding, ...]:
    """Return the findings of the last verdict on each experiment of a service, with a time in [start, end).

    Only complete experiments have findings, for the metrics that passed or failed.
    """
    return tuple(finding for finding in all_findings(store, service, start, end) if finding.metrics)


def all_findings(store: Store, service: str, start: float, end: float) -> tuple[TrialFinding, ...]:
    """Return ``trial_findings`` with all experiments; those without a decided metric have no metrics."""
    latest: dict[str, Mapping[str, Any]] = {}
    columns = ("experiment", "revision", "event")
    rows = store.rows(RowQuery("trial_verdicts", service, start, end, columns=columns))
    for row in sorted(rows, key=lambda verdict_row: verdict_row["revision"]):
        latest[row["experiment"]] = row
    return tuple(_finding(orjson.loads(row["event"])["data"]) for row in latest.values())


def _finding(data: Mapping[str, Any]) -> TrialFinding:
    metrics = data["metrics"] if data["complete"] else ()
    return TrialFinding(
        (*data["releases_b"], data["experiment"]),
        tuple(_metric(metric) for metric in metrics if metric["decision"] in _DECIDED),
    )


def _metric(raw: Mapping[str, Any]) -> MetricFinding:
    score = next((score for score in raw["scores"] if score["model"] == raw["model"]), None)
    return MetricFinding(
        raw["metric"],
        _DECIDED[raw["decision"]],
        raw["threshold"],
        score["false_positives"] if score else raw["alpha"],
        score["false_negatives"] if score else _UNKNOWN_FALSE_NEGATIVES,
        raw["model"],
    )


MIN_SCORE = 0.5
"""Confidence from which the first suspect of an event counts as its root cause."""


def caused_regressions(store: Store, service: str, since: float, until: float) -> list[Caused]:
    """Return the regressions of a service with a known cause, that changed and were detected in a span.

    The cause is the one that a person named, or else the first suspect if it is likelier than not. Events
    with a verdict of false, cost shift or duplicate have none.
    """
    regressions: list[Caused] = []
    for answered in gather_answered(store, service, since, all_events=True):
        if answered.reported.detected_time < until and (
            caused := caused_by(answered, orjson.loads(answered.event))
        ):
            regressions.append(caused)
    return regressions


def caused_by(one: Answered, event: Mapping[str, Any]) -> Caused | None:
    """Return a reported regression with its cause; None if it is unknown. ``event`` is the CloudEvent."""
    if one.cause:
        cause = one.cause.subject
    elif one.state is not None and one.state.verdict in WRONG:
        return None
    else:
        cause = next(causes_of([event]), "")
    data = event["data"]
    relative = math.inf if data["relative"] is None else data["relative"]
    kind = one.reported.metric_kind
    size = size_of(kind, data["delta"], relative)
    return Caused(cause, kind, one.reported.metric, size) if cause else None


def causes_of(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the likeliest root cause of each event, if it is likelier than not."""
    for event in events:
        for suspect in list(event["data"].get("root_causes") or ())[:1]:
            if suspect["score"] >= MIN_SCORE:
                yield str(suspect["change"]["id"])
