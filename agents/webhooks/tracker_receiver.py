"""The receiver of a tracker's webhooks: replies and closings of the issues that alerts opened there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from agents.webhooks.answers import WebhookAnswer
from agents.webhooks.jira import project_of, read_jira
from agents.webhooks.mapping import Tracker
from agents.webhooks.reply_receiver import ReplyReceiver
from agents.webhooks.signatures import github_signed
from pipeline.messages.fields import parse_object
from pipeline.model.errors import InvalidMessage

SIGNED_BY = "X-Hub-Signature"


class TrackerReceiver:
    """Checks and reads deliveries; a verdict that comes again is the same one, so none is remembered."""

    def __init__(self, trackers: Sequence[Tracker], replies: ReplyReceiver) -> None:
        self._trackers = trackers
        self._replies = replies

    async def receive(self, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        """Handle one delivery. Nothing of it is looked at before its signature is found right."""
        # WebSub's header, with the digest that GitHub sends under another name.
        signature_headers = {"X-Hub-Signature-256": headers.get(SIGNED_BY, "")}
        signers = [
            signer for signer in self._trackers if github_signed(signer.secret, signature_headers, body)
        ]
        if not signers:
            return WebhookAnswer(401, "wrong or missing signature")
        try:
            payload = await asyncio.to_thread(parse_object, body)
            heard = read_jira(payload)
            if heard is None:
                return WebhookAnswer(200, "no new reply")
            project = project_of(payload)
            tracker = next((signer for signer in signers if signer.name == project), None)
            if tracker is None:
                return WebhookAnswer(401, "wrong or missing signature")
            return await self._replies.hear(heard, tracker)
        except InvalidMessage as error:
            return WebhookAnswer(400, str(error))
