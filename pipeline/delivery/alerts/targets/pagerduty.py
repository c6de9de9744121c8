"""PagerDuty: Events API v2, an incident for each regression."""

from __future__ import annotations

from typing import Any, Literal

from pipeline.delivery.alerts.markup import as_plain
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import OneAlert
from pipeline.delivery.alerts.targets.http import Http
from pipeline.model.clock import to_iso


class PagerDuty(OneAlert):
    """A service of PagerDuty. The dedup_key is the regression's: an alert that is sent again pages nobody."""

    kind: Literal["pagerduty"]
    routing_key: Secret
    severity: Literal["critical", "error", "warning", "info"] = "warning"
    api: str = "https://events.pagerduty.com"

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Trigger an incident, or resolve it."""
        key = f"smidgen-{note.alert.regression}"
        event: dict[str, Any] = {
            "routing_key": self.routing_key.get_secret_value(),
            "event_action": "resolve" if note.occasion == "resolved" else "trigger",
            "dedup_key": key,
            "payload": {
                "summary": note.title[:1024],
                "source": note.alert.service,
                "severity": self.severity,
                "component": note.alert.metric,
                "timestamp": to_iso(note.alert.time),
                "custom_details": {"text": as_plain(note.lines), "workload": note.alert.workload},
            },
        }
        if note.link:
            event["links"] = [{"href": note.link, "text": "Open its page"}]
        await http.call("POST", f"{self.api}/v2/enqueue", json=event)
        return key
