"""Verdicts of people on events, and the causes that they confirmed, from which the ranking learns."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import orjson

from pipeline.analysis.feedback import (
    Confirmation,
    LearningConfig,
    confirmed_causes,
    expectation_of,
    latest_verdicts,
    original_of,
)
from pipeline.messages.lifecycle import open_regression
from pipeline.messages.verdicts import verdict_of_row
from pipeline.model import Scan, Silence, Verdict
from pipeline.model.errors import InvalidMessage
from pipeline.storage.interface import RowQuery, Store

log = logging.getLogger(__name__)


def gather_verdicts(store: Store, service: str | None = None, event: str = "") -> tuple[Verdict, ...]:
    """Return the latest verdict of each author and aspect, oldest first.

    Of one service or of all; of one event or of all. ``pipeline.analysis.feedback.latest_verdicts`` gives
    states.
    """
    equal = {"event": event} if event else {}
    return tuple(verdict_of_row(row) for row in store.rows(RowQuery("verdicts", service, equal=equal)))


def states_before(store: Store, scan: Scan) -> dict[str, Verdict]:
    """Return the states of a service's events by what was said before a scan ended.

    Of what an author said twice only the latest is kept: what a later verdict replaced is not known any more.
    """
    return latest_verdicts(one for one in gather_verdicts(store, scan.service) if one.time < scan.end)


def is_resolved_with_original(store: Store, scan: Scan, event: str, states: Mapping[str, Verdict]) -> bool:
    """Return whether an event is a duplicate of one that was resolved since that was said."""
    original = original_of(event, states)
    if original == event:
        return False
    said = states[event].time
    return bool(
        store.rows(
            RowQuery(
                "updates", scan.service, said, scan.end, equal={"regression": original, "type": "resolved"}
            )
        )
    )


def gather_expected(store: Store, scan: Scan) -> list[Silence]:
    """Return the expectations that verdicts make of a service's events."""
    found = []
    for event, said in states_before(store, scan).items():
        if said.verdict != "expected":
            continue
        for row in store.rows(RowQuery("regressions", scan.service, equal={"id": event})):
            try:
                one = expectation_of(said, open_regression(row, ()).candidate)
            except InvalidMessage as error:
                log.warning("event %s makes no expectation: it is unreadable: %s", event, error)
                continue
            found += [one] if one else []
    return found


_Evidence = Mapping[str, Mapping[str, float]]


class ConfirmedCauses:
    """Gathers what people confirmed, of every service of the store; an event is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Evidence] = {}

    def gather(self, scan: Scan) -> list[Confirmation]:
        """Return the confirmations made before a scan ended, oldest first."""
        said = [one for one in gather_verdicts(self._store) if one.time < scan.end]
        causes = sorted(confirmed_causes(said).values(), key=lambda one: (one.time, one.event))
        kept = causes[-LearningConfig().most :]
        self._known = {
            one.event: self._known.get(one.event) or self._evidence(one.service, one.event) for one in kept
        }
        return [Confirmation(self._known[one.event], one.subject) for one in kept]

    def _evidence(self, service: str, event: str) -> _Evidence:
        rows = self._store.rows(RowQuery("regressions", service, equal={"id": event}))
        return evidence_of(orjson.loads(rows[0]["event"])) if rows else {}


def evidence_of(event: Mapping[str, Any]) -> _Evidence:
    """Return the evidence on each suspect of an event; empty of one that an earlier version wrote."""
    suspects = event.get("data", {}).get("root_causes") or ()
    if not all("evidence" in one for one in suspects):
        return {}
    return {one["change"]["id"]: one["evidence"] for one in suspects}
