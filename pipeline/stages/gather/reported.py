"""Reported regressions with what people said of them, for commands and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pipeline.analysis.feedback import (
    Judged,
    Reported,
    confirmed_causes,
    is_right,
    latest_verdicts,
)
from pipeline.analysis.feedback.labeller import Answers
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.messages.ledger import candidate_of_event
from pipeline.model import Verdict
from pipeline.model.errors import InvalidMessage
from pipeline.stages.gather.verdicts import gather_verdicts
from pipeline.storage.interface import Store


@dataclass(frozen=True, slots=True)
class Answered:
    """A reported regression, its state, and the cause that was confirmed of it."""

    reported: Reported
    state: Verdict | None
    cause: Verdict | None = None
    event: str = ""  # as it was published

    @property
    def judged(self) -> Judged | None:
        """The event with what people found and the steps before, None where they did not say.

        What steps said of an event that another version wrote may be unknown.
        """
        right = is_right(self.state, self.cause)
        if right is None:
            return None
        try:
            candidate = candidate_of_event(orjson.loads(self.event)["data"])
        except (InvalidMessage, orjson.JSONDecodeError, KeyError):
            return Judged(self.reported, right)
        return Judged(self.reported, right, candidate.passed, candidate.p_value)


def reported_of_row(row: Mapping[str, Any], resolved: float | None = None) -> Reported:
    """Return a reported regression of a row of ``regressions``; ``resolved`` is when it was."""
    return Reported(
        id=row["id"],
        service=row["service"],
        workload=row["workload"],
        metric_kind=row["metric_kind"],
        metric=row["metric"],
        change_time=row["time"],
        detected_time=row["detected_time"],
        before=row["before"],
        after=row["after"],
        resolved_time=resolved,
    )


def find_reported(store: Store, prefix: str) -> list[Reported]:
    """Return the reported regressions whose id begins so; the one that is it, if one is."""
    rows = store.rows("regressions", None, EARLIEST_S, LATEST_S, id_prefix=prefix)
    exact = [row for row in rows if row["id"] == prefix]
    return [reported_of_row(row) for row in exact or rows]


def gather_answered(
    store: Store, service: str | None = None, since: float = EARLIEST_S, *, all_events: bool = False
) -> list[Answered]:
    """Return the regressions with a change time from ``since`` on that somebody answered, oldest first.

    Of one service or of all; with ``all_events`` those that nobody answered, too.
    """
    said = gather_verdicts(store, service)
    states, causes = latest_verdicts(said), confirmed_causes(said)
    if not said and not all_events:
        return []
    resolved = {
        row["regression"]: row["time"]
        for row in store.rows("updates", service, since, LATEST_S, type="resolved")
    }
    return [
        Answered(
            reported_of_row(row, resolved.get(row["id"])),
            states.get(row["id"]),
            causes.get(row["id"]),
            row["event"],
        )
        for row in store.rows("regressions", service, since, LATEST_S)
        if all_events or row["id"] in states or row["id"] in causes
    ]


def gather_answers(store: Store, service: str | None = None, since: float = EARLIEST_S) -> dict[str, Answers]:
    """Return what people wrote and did about each event, by its id, oldest event first."""
    comments: dict[str, list[str]] = {}
    for one in gather_verdicts(store, service):
        if one.comment:
            comments.setdefault(one.event, []).append(one.comment)
    repairs = gather_repairs(store, service, since)
    return {
        one.reported.id: Answers(
            tuple(comments.get(one.reported.id, ())),
            one.state.verdict if one.state else None,
            repairs.get(one.reported.id, ()),
            one.reported.resolved_time is not None,
        )
        for one in gather_answered(store, service, since, all_events=True)
    }


def gather_repairs(
    store: Store, service: str | None = None, since: float = EARLIEST_S
) -> dict[str, tuple[str, ...]]:
    """Return the changes that ended each resolved regression, as far as they are known, by the event's id."""
    return {
        row["regression"]: _repaired_by(row["event"])
        for row in store.rows("updates", service, since, LATEST_S, type="resolved")
    }


def _repaired_by(event: str) -> tuple[str, ...]:
    """Return the changes that a resolution names, none of one that cannot be read."""
    try:
        named = orjson.loads(event)["data"].get("resolved_by") or ()
        return tuple(change["id"] for change in named)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return ()
