"""Answers to webhooks, and the sending of their messages."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.source.changes.history import change_message
from pipeline.model import Change, Outgoing
from pipeline.model.errors import BrokerUnavailable, InvalidMessage

log = logging.getLogger(__name__)

Send = Callable[[Sequence[Outgoing]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and one plain line."""

    status: int
    text: str = ""


async def send_changes(send: Send, changes: Sequence[Change], what: str) -> Answer:
    """Publish changes and return an answer about it; ``what`` names their source."""
    return await send_messages(send, [change_message(change) for change in changes], what, "changes")


async def send_messages(send: Send, messages: Sequence[Outgoing], what: str, kinds: str) -> Answer:
    """Publish messages and return an answer with their number; ``kinds`` is their noun in the plural."""
    try:
        await send(messages)
    except BrokerUnavailable as error:
        log.warning("%s: not published: %s", what, error)
        return Answer(503, "not published, try again")
    except InvalidMessage as error:
        log.error("%s: refused by the broker: %s", what, error)
        return Answer(422, "refused by the broker")
    log.info("%s: published %d %s", what, len(messages), kinds)
    return Answer(200, f"published {len(messages)} {kinds} for {what}")
