"""Verdicts of people on events, and the causes they confirmed, from which the ranking learns."""

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

    None as the service and "" as the event select all. ``pipeline.analysis.feedback.latest_verdicts`` turns
    verdicts into states.
    """
    equal = {"event": event} if event else {}
    return tuple(verdict_of_row(row) for row in store.rows(RowQuery("verdicts", service, equal=equal)))


def states_before(store: Store, scan: Scan) -> dict[str, Verdict]:
    """Return the states of a service's events by the verdicts given before a scan ended.

    The store keeps only the latest verdict of an author: one that a later verdict replaced is lost.
    """
    return latest_verdicts(
        verdict for verdict in gather_verdicts(store, scan.service) if verdict.time < scan.end
    )


def is_resolved_with_original(store: Store, scan: Scan, event: str, states: Mapping[str, Verdict]) -> bool:
    """Return whether an event is a duplicate whose original was resolved since that verdict."""
    original = original_of(event, states)
    if original == event:
        return False
    verdict_time = states[event].time
    return bool(
        store.rows(
            RowQuery(
                "updates",
                scan.service,
                verdict_time,
                scan.end,
                equal={"regression": original, "type": "resolved"},
            )
        )
    )


def gather_expected(store: Store, scan: Scan) -> list[Silence]:
    """Return the expectations that follow from verdicts on a service's events."""
    expectations = []
    for event, verdict in states_before(store, scan).items():
        if verdict.verdict != "expected":
            continue
        for row in store.rows(RowQuery("regressions", scan.service, equal={"id": event})):
            try:
                expectation = expectation_of(verdict, open_regression(row, ()).candidate)
            except InvalidMessage as error:
                log.warning("event %s makes no expectation: it is unreadable: %s", event, error)
                continue
            expectations += [expectation] if expectation else []
    return expectations


_Evidence = Mapping[str, Mapping[str, float]]


class ConfirmedCauses:
    """Reader of the causes that people confirmed, of all services; reads every event once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Evidence] = {}

    def gather(self, scan: Scan) -> list[Confirmation]:
        """Return the confirmations made before a scan ended, oldest first."""
        verdicts = [verdict for verdict in gather_verdicts(self._store) if verdict.time < scan.end]
        causes = sorted(
            confirmed_causes(verdicts).values(), key=lambda verdict: (verdict.time, verdict.event)
        )
        latest = causes[-LearningConfig().most :]
        self._known = {
            verdict.event: self._known.get(verdict.event) or self._evidence(verdict.service, verdict.event)
            for verdict in latest
        }
        return [Confirmation(self._known[verdict.event], verdict.subject) for verdict in latest]

    def _evidence(self, service: str, event: str) -> _Evidence:
        rows = self._store.rows(RowQuery("regressions", service, equal={"id": event}))
        return evidence_of(orjson.loads(rows[0]["event"])) if rows else {}


def evidence_of(event: Mapping[str, Any]) -> _Evidence:
    """Return the evidence on each suspect of an event; empty if an earlier version wrote the event."""
    suspects = event.get("data", {}).get("root_causes") or ()
    if not all("evidence" in suspect for suspect in suspects):
        return {}
    return {suspect["change"]["id"]: suspect["evidence"] for suspect in suspects}
