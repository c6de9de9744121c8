"""Silenced regressions as rows of the store, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from pipeline.analysis.lifecycle import OpenRegression, Silenced, SilenceDecision, SilencedState
from pipeline.messages.ledger import candidate_of_event
from pipeline.messages.records import columns_of
from pipeline.model import Regression
from pipeline.model.errors import InvalidMessage


def silenced_columns(
    rows: Sequence[tuple[Regression, SilencedState, SilenceDecision, Mapping[str, Any]]], scan_end: float
) -> dict[str, list[Any]]:
    """Return what a scan notes of silenced regressions, one at least, as columns of the table ``silenced``.

    Args:
        rows: Each regression, what has become of it, what was decided, and its event as it would be.
        scan_end: Of the scan, epoch seconds.
    """
    return columns_of(
        {
            "id": regression.id,
            "service": regression.service,
            "workload": regression.workload,
            "time": regression.candidate.change_time,
            "scan_end": scan_end,
            "state": state,
            "silence": _silence_of(decision, state),
            "size": decision.size,
            "error": decision.error,
            "event": orjson.dumps(event).decode(),
        }
        for regression, state, decision, event in rows
    )


def _silence_of(decision: SilenceDecision, state: SilencedState) -> str:
    """Return the id of what silences a regression, or of the announced cost beyond which it goes."""
    kind = "muted" if state == "muted" else "expected"
    named = [one.silence.id for one in decision.applied if one.silence.kind == kind]
    return named[-1] if named else ""


def silenced_of_row(row: Mapping[str, Any]) -> Silenced:
    """Return a silenced regression of a row of the table ``silenced``.

    Raises:
        InvalidMessage: another version wrote an event that cannot be read.
    """
    try:
        data = orjson.loads(row["event"])["data"]
        regression = OpenRegression(row["id"], candidate_of_event(data))
        suspects = suspected(data.get("root_causes") or ())
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidMessage(f"{type(error).__name__}: {error}") from None
    return Silenced(regression, row["workload"], row["state"], row["silence"], suspects)


def suspected(root_causes: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the ids of an event's first suspect and of what that switches."""
    return frozenset(
        str(change["id"])
        for suspect in root_causes[:1]
        for change in (suspect["change"], *suspect.get("switches", ()))
    )
