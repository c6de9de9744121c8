"""Findings on changes: what trials decided of them, and the reported regressions that they caused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from pipeline.analysis.feedback.precision import WRONG
from pipeline.analysis.rootcause.trials import Caused, MetricFinding, TrialFinding, size_of
from pipeline.experiments.trials import Decision
from pipeline.stages.gather.reported import Answered, gather_answered
from pipeline.storage.interface import RowQuery, Store

_UNKNOWN_FALSE_NEGATIVES = 0.5
"""Of a model that was not chosen by A/A experiments; its false positives are alpha then."""

_DECIDED = {Decision.PASS.value: False, Decision.FAIL.value: True}
"""Decision → whether it failed."""


def trial_findings(store: Store, service: str, start: float, end: float) -> tuple[TrialFinding, ...]:
    """Return what the last verdicts on the experiments of a service found, those with a time in [start, end).

    Only whole experiments count, and of these the metrics that passed or failed.
    """
    return tuple(one for one in all_findings(store, service, start, end) if one.metrics)


def all_findings(store: Store, service: str, start: float, end: float) -> tuple[TrialFinding, ...]:
    """Return as ``trial_findings`` does every experiment, without metrics where none is decided."""
    latest: dict[str, Mapping[str, Any]] = {}
    columns = ("experiment", "revision", "event")
    rows = store.rows(RowQuery("trial_verdicts", service, start, end, columns=columns))
    for row in sorted(rows, key=lambda one: one["revision"]):
        latest[row["experiment"]] = row
    return tuple(_finding(orjson.loads(row["event"])["data"]) for row in latest.values())


def _finding(data: Mapping[str, Any]) -> TrialFinding:
    metrics = data["metrics"] if data["complete"] else ()
    return TrialFinding(
        (*data["releases_b"], data["experiment"]),
        tuple(_metric(one) for one in metrics if one["decision"] in _DECIDED),
    )


def _metric(one: Mapping[str, Any]) -> MetricFinding:
    score = next((score for score in one["scores"] if score["model"] == one["model"]), None)
    return MetricFinding(
        one["metric"],
        _DECIDED[one["decision"]],
        one["threshold"],
        score["false_positives"] if score else one["alpha"],
        score["false_negatives"] if score else _UNKNOWN_FALSE_NEGATIVES,
        one["model"],
    )


MIN_SCORE = 0.5
"""Confidence from which the first suspect of an event counts as its root cause."""


def caused_regressions(store: Store, service: str, since: float, until: float) -> list[Caused]:
    """Return the regressions of a service with a known cause, that changed and were detected in a span.

    Of each event it is the cause that a person named, or else the first suspect if it is likelier than not.
    Events that people call false, a cost shift or a duplicate have none.
    """
    found: list[Caused] = []
    for one in gather_answered(store, service, since, all_events=True):
        if one.reported.detected_time < until and (caused := caused_by(one, orjson.loads(one.event))):
            found.append(caused)
    return found


def caused_by(one: Answered, event: Mapping[str, Any]) -> Caused | None:
    """Return a reported regression with its cause, None if that is not known; ``event`` is its event."""
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
    """Yield the change that each event most likely has as its root cause, if one is likelier than not."""
    for event in events:
        for suspect in list(event["data"].get("root_causes") or ())[:1]:
            if suspect["score"] >= MIN_SCORE:
                yield str(suspect["change"]["id"])
