"""Annotations of Grafana: a regression is a mark, or a region once it is resolved."""

from __future__ import annotations

from typing import Any, Literal

from pipeline.delivery.alerts.markup import as_html
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import OneAlert
from pipeline.delivery.alerts.targets.http import Http


class Grafana(OneAlert):
    """A Grafana. An annotation is looked for by its tags before it is made, so there is one of each."""

    kind: Literal["grafana"]
    url: str
    token: Secret
    tags: tuple[str, ...] = ()

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Make an annotation at the change time, rewrite its text, or end it."""
        alert = note.alert
        own = f"smidgen-{alert.regression}"
        base = f"{self.url.rstrip('/')}/api/annotations"
        headers = {"Authorization": f"Bearer {self.token.get_secret_value()}"}
        if not thread:
            annotations = await http.call("GET", base, params={"tags": own, "limit": "1"}, headers=headers)
            thread = str(annotations[0]["id"]) if isinstance(annotations, list) and annotations else ""
        content: dict[str, Any] = {"text": as_html(note.lines)}
        if note.occasion == "resolved":
            content["timeEnd"] = int(alert.time * 1000)
        if thread:
            await http.call("PATCH", f"{base}/{thread}", json=content, headers=headers)
            return thread
        tags = ["smidgen", "trial" if alert.trial else "regression", alert.service, own, *self.tags]
        content |= {"time": int(alert.since * 1000), "tags": tags}
        made = await http.call("POST", base, json=content, headers=headers)
        return str(made["id"])
