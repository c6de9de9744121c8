"""Confirmed causes as the ranking learns from them: events with the evidence on each suspect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pipeline.analysis.feedback import Confirmation, LearningConfig, confirmed_causes
from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.model import Scan
from pipeline.stages.gather.verdicts import gather_verdicts
from pipeline.storage.interface import Store

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
        rows = self._store.rows("regressions", service, EARLIEST_S, LATEST_S, id=event)
        return evidence_of(orjson.loads(rows[0]["event"])) if rows else {}


def evidence_of(event: Mapping[str, Any]) -> _Evidence:
    """Return the evidence on each suspect of an event; empty of one that an earlier version wrote."""
    suspects = event.get("data", {}).get("root_causes") or ()
    if not all("evidence" in one for one in suspects):
        return {}
    return {one["change"]["id"]: one["evidence"] for one in suspects}
