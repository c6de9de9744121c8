"""A webhook of your own: JSON, signed by Standard Webhooks (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
from typing import Annotated, Literal

import orjson
from pydantic import Field

from pipeline.delivery.alerts.markup import as_plain
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import Target
from pipeline.delivery.alerts.targets.http import Http
from pipeline.model.clock import system_clock

_PREFIX = "whsec_"


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header ``webhook-signature`` of a message; a secret ``whsec_…`` is a key in base64."""
    key = secret.encode()
    if secret.startswith(_PREFIX):
        with contextlib.suppress(binascii.Error):
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


class Webhook(Target):
    """An HTTP address. The header ``webhook-id`` repeats when a message is sent once more."""

    kind: Literal["webhook"]
    url: Annotated[str, Field(pattern=r"^https?://")] | Secret
    secret: Secret | None = None

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Post the text, and the facts of each alert."""
        body = orjson.dumps(
            {
                "id": note.id,
                "occasion": note.occasion,
                "title": note.title,
                "text": as_plain(note.lines),
                "link": note.link,
                "alerts": note.alerts,
            }
        )
        message_id, now = f"{note.id}.{note.occasion}", int(system_clock())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(now),
        }
        if self.secret is not None:
            headers["webhook-signature"] = signature(self.secret.get_secret_value(), message_id, now, body)
        url = self.url if isinstance(self.url, str) else self.url.get_secret_value()
        await http.call("POST", url, body=body, headers=headers)
        return note.alert.regression
