"""Microsoft Teams: the webhook of a workflow, which takes an Adaptive Card."""

from __future__ import annotations

from typing import Any, Literal

from pipeline.delivery.alerts.markup import StyledText, as_adaptive_card
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import Target
from pipeline.delivery.alerts.targets.http import Http


class Teams(Target):
    """A channel or chat. Its webhook has no threads."""

    kind: Literal["teams"]
    webhook: Secret

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Post a card."""
        card: dict[str, Any] = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "fallbackText": note.title,
            "body": as_adaptive_card([(StyledText(note.title, "bold"),), *note.lines]),
        }
        if note.link:
            card["actions"] = [{"type": "Action.OpenUrl", "title": "Open its page", "url": note.link}]
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
        await http.call(
            "POST", self.webhook.get_secret_value(), json={"type": "message", "attachments": [attachment]}
        )
        return ""
