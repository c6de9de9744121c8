"""Reported regressions with the verdicts of people, for commands and pages, and as truth of backtests.

Truth files let backtests try other settings (KDD 2018 §3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pipeline.analysis.feedback import (
    AnsweredEvent,
    FixState,
    Reported,
    confirmed_causes,
    fix_state,
    is_right,
    latest_verdicts,
)
from pipeline.analysis.feedback.labeller import Answers
from pipeline.analysis.lifecycle.recovery import span_s
from pipeline.messages.fields import EARLIEST_S
from pipeline.messages.ledger import candidate_of_event
from pipeline.model import Verdict
from pipeline.model.clock import to_iso
from pipeline.model.errors import InvalidMessage
from pipeline.model.metric_kind import is_gcpu
from pipeline.settings.workloads import Workload
from pipeline.stages.gather.verdicts import gather_verdicts
from pipeline.storage.interface import RowQuery, Store


@dataclass(frozen=True, slots=True)
class Answered:
    """A reported regression with its state and its confirmed cause."""

    reported: Reported
    state: Verdict | None
    cause: Verdict | None = None
    event: str = ""  # as it was published

    @property
    def judged(self) -> AnsweredEvent | None:
        """The event with the verdict of people and the decisions of steps; None without a verdict.

        The decisions may be unknown if another version wrote the event.
        """
        right = is_right(self.state, self.cause)
        if right is None:
            return None
        try:
            candidate = candidate_of_event(orjson.loads(self.event)["data"])
        except (InvalidMessage, orjson.JSONDecodeError, KeyError):
            return AnsweredEvent(self.reported, right)
        return AnsweredEvent(self.reported, right, candidate.passed, candidate.p_value)


def reported_of_row(row: Mapping[str, Any], resolved: float | None = None) -> Reported:
    """Return the reported regression of a row of ``regressions``; ``resolved`` is the time of that."""
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
    """Return the reported regressions whose id begins with ``prefix``, or only the one whose id it is."""
    rows = store.rows(RowQuery("regressions", None, id_prefix=prefix))
    exact = [row for row in rows if row["id"] == prefix]
    return [reported_of_row(row) for row in exact or rows]


def gather_answered(
    store: Store, service: str | None = None, since: float = EARLIEST_S, *, all_events: bool = False
) -> list[Answered]:
    """Return the regressions with a change time from ``since`` on that have a verdict, oldest first.

    They are of one service, or of all with None; ``all_events`` adds those without a verdict.
    """
    verdicts = gather_verdicts(store, service)
    states, causes = latest_verdicts(verdicts), confirmed_causes(verdicts)
    if not verdicts and not all_events:
        return []
    resolved = {
        row["regression"]: row["time"]
        for row in store.rows(RowQuery("updates", service, since, equal={"type": "resolved"}))
    }
    return [
        Answered(
            reported_of_row(row, resolved.get(row["id"])),
            states.get(row["id"]),
            causes.get(row["id"]),
            row["event"],
        )
        for row in store.rows(RowQuery("regressions", service, since))
        if all_events or row["id"] in states or row["id"] in causes
    ]


def gather_answers(store: Store, service: str | None = None, since: float = EARLIEST_S) -> dict[str, Answers]:
    """Return the comments, verdict and repairs of each event, by its id, oldest event first."""
    comments: dict[str, list[str]] = {}
    for entry in gather_verdicts(store, service):
        if entry.comment:
            comments.setdefault(entry.event, []).append(entry.comment)
    repairs = gather_repairs(store, service, since)
    return {
        entry.reported.id: Answers(
            tuple(comments.get(entry.reported.id, ())),
            entry.state.verdict if entry.state else None,
            repairs.get(entry.reported.id, ()),
            entry.reported.resolved_time is not None,
        )
        for entry in gather_answered(store, service, since, all_events=True)
    }


def gather_repairs(
    store: Store, service: str | None = None, since: float = EARLIEST_S
) -> dict[str, tuple[str, ...]]:
    """Return the known changes that ended each resolved regression, by the event's id."""
    return {
        row["regression"]: _repaired_by(row["event"])
        for row in store.rows(RowQuery("updates", service, since, equal={"type": "resolved"}))
    }


def _repaired_by(event: str) -> tuple[str, ...]:
    """Return the changes that a resolution names; none if it cannot be read."""
    try:
        named = orjson.loads(event)["data"].get("resolved_by") or ()
        return tuple(change["id"] for change in named)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return ()


def due_s(workload: Workload) -> float:
    """Return the seconds after a repair by which scans of a workload must have seen the regression gone."""
    return (
        span_s(workload.analysis_s + workload.extended_s, workload.historical_s) + workload.rerun_interval_s
    )


def gather_fixes(
    store: Store, answered: Sequence[Answered], workloads: Mapping[str, Workload]
) -> dict[str, FixState]:
    """Return the state of the fix of each regression whose verdict is ``fixed``, by the event's id.

    Regressions of an unknown workload are left out.
    """
    fixed = [entry for entry in answered if entry.state and entry.state.verdict == "fixed"]
    last_scans: dict[tuple[str, str], float] = {}
    states: dict[str, FixState] = {}
    for entry in fixed:
        reported, verdict = entry.reported, entry.state
        workload = workloads.get(reported.workload)
        if workload is None or verdict is None:
            continue
        key = (reported.service, reported.workload)
        if key not in last_scans:
            rows = store.rows(RowQuery("scans", reported.service, equal={"workload": reported.workload}))
            last_scans[key] = max((row["time"] for row in rows), default=EARLIEST_S)
        states[reported.id] = fix_state(verdict, reported, last_scans[key], due_s(workload))
    return states


_KINDS = {"false": "transient", "cost-shift": "cost_shift"}
"""Verdict → kind of truth, for events that are not to be reported. A duplicate has its original's truth."""


def truth_of(answered: Sequence[Answered]) -> list[dict[str, Any]]:
    """Return the verdicts on gCPU series as rows of a truth file, one per event."""
    rows = []
    for entry in answered:
        reported, state = entry.reported, entry.state
        right = is_right(state, entry.cause)
        kind = "regression" if right else _KINDS.get(state.verdict) if state else None
        if right is None or kind is None or not is_gcpu(reported.metric_kind):
            continue
        rows.append(
            {
                **{"id": reported.id, "kind": kind, "service": reported.service},
                **{"subroutines": [reported.metric], "metric_kind": reported.metric_kind},
                **{"start": to_iso(reported.change_time), "end": None, "delta": reported.delta},
                "change": entry.cause.subject if entry.cause else None,
            }
        )
    return rows
