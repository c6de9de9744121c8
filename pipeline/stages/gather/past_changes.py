"""Changes that production found to regress: root causes of reported regressions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from pipeline.analysis.feedback.precision import WRONG
from pipeline.analysis.rootcause.trials import Caused, size_of
from pipeline.stages.gather.reported import Answered, gather_answered
from pipeline.storage.interface import Store

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
