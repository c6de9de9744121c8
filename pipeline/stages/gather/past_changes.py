"""Changes that production found to regress: root causes of reported regressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from pipeline.feedback.precision import WRONG
from pipeline.stages.gather.reported import gather_answered
from pipeline.storage.interface import Store

MIN_SCORE = 0.5
"""Confidence from which the first suspect of an event counts as its root cause."""


def regressed_changes(store: Store, service: str, since: float) -> frozenset[str]:
    """Return the ids of changes of a service that regressed since a time.

    Of each event it is the cause that a person named, or else the first suspect if it is likelier than not.
    Events that people call false, a cost shift or a duplicate have none.
    """
    found: set[str] = set()
    for one in gather_answered(store, service, since, all_events=True):
        if one.cause:
            found.add(one.cause.subject)
        elif one.state is None or one.state.verdict not in WRONG:
            found.update(causes_of([orjson.loads(one.event)]))
    return frozenset(found)


def causes_of(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the change that each event most likely has as its root cause, if one is likelier than not."""
    for event in events:
        for suspect in list(event["data"].get("root_causes") or ())[:1]:
            if suspect["score"] >= MIN_SCORE:
                yield str(suspect["change"]["id"])
