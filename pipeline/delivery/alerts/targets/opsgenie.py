"""Opsgenie: Alert API v2, an alert for each regression."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote

from pipeline.delivery.alerts.markup import as_plain
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import OneAlert
from pipeline.delivery.alerts.targets.http import Http


class Opsgenie(OneAlert):
    """A team of Opsgenie. The alias is the regression's: an alert sent again is counted, not repeated."""

    kind: Literal["opsgenie"]
    key: Secret
    priority: Literal["P1", "P2", "P3", "P4", "P5"] = "P3"
    api: str = "https://api.opsgenie.com"

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Open an alert, add a note to it, or close it."""
        alias = f"smidgen-{note.alert.regression}"
        text = as_plain(note.lines)
        path, body = "", self._opening(note, alias, text)
        if thread and note.occasion != "unanswered":
            path = f"/{quote(alias, safe='')}/{'close' if note.occasion == 'resolved' else 'notes'}"
            body = {"source": "smidgen", "note": text[:25_000]}
        await http.call(
            "POST",
            f"{self.api}/v2/alerts{path}",
            params={"identifierType": "alias"} if path else None,
            json=body,
            headers={"Authorization": f"GenieKey {self.key.get_secret_value()}"},
        )
        return alias

    def _opening(self, note: Note, alias: str, text: str) -> dict[str, Any]:
        return {
            "message": note.title[:130],
            "alias": alias,
            "description": text[:15_000],
            "entity": note.alert.metric[:512],
            "source": "smidgen",
            "tags": ["smidgen", note.alert.service[:50]],
            "details": {"service": note.alert.service, "page": note.link},
            "priority": self.priority,
        }
