"""The receiver of flag services' webhooks: each flip becomes a change, once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from agents.source.gates.flag_file import flips_between
from agents.source.gates.flag_set import FlagSet, flag_set_of
from agents.source.gates.flips import Flip
from agents.webhooks.answers import Answer, Send, send_changes
from agents.webhooks.flag_events import READERS
from agents.webhooks.flag_services import FlagServiceKind, FlagSource
from agents.webhooks.forge_event import section
from agents.webhooks.signatures import REDELIVERY_S, hex_signed, token_given
from pipeline.messages.fields import parse_object
from pipeline.model.clock import Clock
from pipeline.model.errors import InvalidMessage

log = logging.getLogger(__name__)

REMEMBERED = 10_000
"""Most deliveries that are remembered, so that one that is sent again is not published again."""

SIGNED_BY: Mapping[FlagServiceKind, str] = {
    "launchdarkly": "X-LD-Signature",
    "unleash": "Authorization",
    "flagsmith": "X-Flagsmith-Signature",
    "openfeature": "Authorization",
}
"""The header in which each kind of flag service shows that it knows the secret."""


_BODY_SIGNED = frozenset({"launchdarkly", "flagsmith"})
"""Kinds that sign the body, in which the time of the flip stands; the others send the secret itself."""


class FlagReceiver:
    """Checks, reads and publishes flips. Of a set of flags it remembers the last, as long as it lives."""

    def __init__(self, sources: Sequence[FlagSource], send: Send, *, clock: Clock) -> None:
        self._sources = sources
        self._send = send
        self._clock = clock
        self._done: OrderedDict[bytes, None] = OrderedDict()
        self._sets: dict[str, FlagSet] = {}

    async def receive(self, kind: FlagServiceKind, headers: Mapping[str, str], body: bytes) -> Answer:
        """Handle one delivery; one that was published is not published again."""
        signers = [
            source for source in self._sources if source.kind == kind and _signed(source, headers, body)
        ]
        if not signers:
            return Answer(401, "wrong or missing signature")
        key = hashlib.sha256(kind.encode() + b"\0" + body).digest()
        if key in self._done:
            return Answer(200, "already published")
        try:
            payload = await asyncio.to_thread(parse_object, body)
            answers = [await self._publish(source, payload) for source in signers]
        except InvalidMessage as error:
            return Answer(400, str(error))
        worst = max(answers, key=lambda answer: answer.status)
        if (
            worst.status == 200 and kind != "openfeature"
        ):  # whose events may be equal, and are two all the same
            self._remember(key)
        return worst

    async def _publish(self, source: FlagSource, payload: Mapping[str, Any]) -> Answer:
        now = self._clock()
        flags = _flag_set(payload) if source.kind == "openfeature" else None
        if flags is None:
            flips = READERS[source.kind](payload, now)
        else:
            previous = self._sets.get(source.name)
            flips = [] if previous is None else flips_between(previous, flags, time=now)
        if source.kind in _BODY_SIGNED and flips and now - max(flip.time for flip in flips) > REDELIVERY_S:
            return Answer(403, "older than three days")  # a recorded one, its signature is right for ever
        changes = source.changes(flips)
        what = f"{_named(flips)} of {source.name}"
        if changes:
            answer = await send_changes(self._send, changes, what)
        else:
            answer = Answer(200, f"nothing to publish for {what}" if flips else "nothing was flipped")
        if flags is not None and answer.status == 200:
            self._sets[source.name] = flags
        return answer

    def _remember(self, key: bytes) -> None:
        self._done[key] = None
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)


def _signed(source: FlagSource, headers: Mapping[str, str], body: bytes) -> bool:
    signature = headers.get(SIGNED_BY[source.kind], "")
    if source.kind in _BODY_SIGNED:
        return hex_signed(source.secret, signature, body)
    return token_given(source.secret, signature)


def _flag_set(payload: Mapping[str, Any]) -> FlagSet | None:
    """Return the flags of flagd's sync, as an object or as a text of JSON; None of anything else."""
    synced = payload.get("flagConfiguration", payload.get("flag_configuration"))
    if isinstance(synced, str):
        try:
            return flag_set_of(orjson.loads(synced))
        except orjson.JSONDecodeError as error:
            raise InvalidMessage(f"flagConfiguration: not JSON: {error}") from None
    if synced is not None:
        return flag_set_of(section({"flagConfiguration": synced}, "flagConfiguration"))
    return flag_set_of(payload) if isinstance(payload.get("flags"), dict) else None


def _named(flips: Sequence[Flip]) -> str:
    if len(flips) == 1:
        return f"the flip of {flips[0].gate[:200]!r}"
    return f"{len(flips)} flips"
