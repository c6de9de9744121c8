"""The receiver of webhooks: its answers, and the messages that it publishes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from agents.source.gates.flips import flip_change
from agents.webhooks import github, gitlab
from agents.webhooks.answers import Answer, Send, send_changes
from agents.webhooks.deployments import deployed_changes
from agents.webhooks.environments import Environments
from agents.webhooks.flag_events import read_gitlab_flag
from agents.webhooks.forge_event import ForgeEvent
from agents.webhooks.mapping import Forge, ServiceMap, Source
from agents.webhooks.reply_receiver import ANSWER_EVENTS, ReplyReceiver
from agents.webhooks.signatures import REDELIVERY_S, github_signed, gitlab_signed
from pipeline.messages.fields import parse_object
from pipeline.model.clock import Clock
from pipeline.model.errors import InvalidMessage

log = logging.getLogger(__name__)

REMEMBERED = 10_000
"""Most deliveries that are remembered, so that one that is sent again is not published again."""

_SHOWN = 5  # remarks in one line of the log


class Receiver:
    """Checks, reads and publishes deliveries, each once.

    Nothing of a delivery is looked at before its signature over the raw body is found right for at least one
    repository of the forge, and it is published only if that repository is the one it speaks of.
    """

    def __init__(
        self, services: ServiceMap, send: Send, *, clock: Clock, replies: ReplyReceiver | None = None
    ) -> None:
        self._services = services
        self._replies = replies
        self._send = send
        self._clock = clock
        self._environments = Environments()
        self._done: OrderedDict[bytes, Answer] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Task[Answer]] = {}

    async def receive(self, forge: Forge, headers: Mapping[str, str], body: bytes) -> Answer:
        """Handle one delivery; one that is under way or was published is not published again."""
        signers = await asyncio.to_thread(self._signers, forge, headers, body)
        if not signers:
            return Answer(401, "wrong or missing signature")
        event = headers.get("X-GitHub-Event" if forge == "github" else "X-Gitlab-Event", "")
        if forge == "github" and event == "ping":
            return Answer(200, "pong")
        events = github.EVENTS if forge == "github" else gitlab.EVENTS
        if event not in events and not (self._replies and event in ANSWER_EVENTS[forge]):
            return Answer(204)
        key = _delivery(forge, headers, body)
        if key in self._done:
            return Answer(200, "already published")
        if key not in self._under_way:
            task = asyncio.ensure_future(self._handle(forge, event, signers, key, body))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(self._under_way[key])  # a sender that hangs up does not end it

    async def finish(self, timeout_s: float) -> None:
        """Wait for what is under way, for at most ``timeout_s`` seconds."""
        if self._under_way:
            await asyncio.wait(set(self._under_way.values()), timeout=timeout_s)

    def _signers(self, forge: Forge, headers: Mapping[str, str], body: bytes) -> list[Source]:
        """Return the repositories whose secret signed the body."""
        now = self._clock()
        sources = self._services.of(forge)
        right = {
            secret
            for secret in {source.secret for source in sources}
            if (
                github_signed(secret, headers, body)
                if forge == "github"
                else gitlab_signed(secret, headers, body, now)
            )
        }
        return [source for source in sources if source.secret in right]

    async def _handle(
        self, forge: Forge, event: str, signers: Sequence[Source], key: bytes, body: bytes
    ) -> Answer:
        try:
            payload = await asyncio.to_thread(parse_object, body)
            name = (github if forge == "github" else gitlab).repository_of(payload)
            source = self._services.find(forge, name)
            if source is None:
                return Answer(404, f"unknown repository {name[:200]!r}")
            if source not in signers:
                return Answer(401, "wrong or missing signature")
            if self._replies and event in ANSWER_EVENTS[forge]:
                return self._kept(key, await self._replies.take(forge, event, payload, source))
            if event == gitlab.FLAG_EVENT:
                return await self._publish_flips(payload, source, key)
            forge_event = _read(forge, event, payload)
        except InvalidMessage as error:
            hint = "; the webhook's content type should be application/json" if body[:1] != b"{" else ""
            return Answer(400, f"{error}{hint}")
        if forge_event is None:
            return Answer(200, "nothing was deployed")
        if forge == "github" and forge_event.time and self._clock() - forge_event.time > REDELIVERY_S:
            return Answer(403, "older than three days")  # a recorded one, its signature is right for ever
        return await self._publish(forge_event, source, key)

    async def _publish_flips(self, payload: Mapping[str, Any], source: Source, key: bytes) -> Answer:
        """Publish the flip of a feature flag event."""
        flips = read_gitlab_flag(payload, self._clock())
        changes = [
            flip_change(flip, service) for flip in flips for service in source.services("gate", flip.gate)
        ]
        what = f"the flip of {flips[0].gate[:200]!r} of {source.name}"
        if not changes:
            return Answer(200, f"nothing to publish for {what}")
        return self._kept(key, await send_changes(self._send, changes, what))

    async def _publish(self, forge_event: ForgeEvent, source: Source, key: bytes) -> Answer:
        now = self._clock()
        forge_event = self._environments.complete(forge_event, source)
        deployed = await asyncio.to_thread(deployed_changes, forge_event, source, now=now)
        what = f"{forge_event.occasion} {forge_event.name[:200]!r} of {source.name}"
        if not deployed.changes:
            return Answer(200, f"nothing to publish for {what}")
        answer = await send_changes(self._send, deployed.changes, what)
        if answer.status != 200:
            return answer
        self._environments.note(forge_event, source, now=now)
        if deployed.left_out:
            shown = "; ".join(deployed.left_out[:_SHOWN])
            log.warning("%s: left out: %s (%d remarks)", what, shown, len(deployed.left_out))
        self._remember(key, answer)
        return answer

    def _kept(self, key: bytes, answer: Answer) -> Answer:
        """Return an answer, and remember the delivery if it is done with."""
        if answer.status == 200:
            self._remember(key, answer)
        return answer

    def _remember(self, key: bytes, answer: Answer) -> None:
        self._done[key] = answer
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)


def _read(forge: Forge, event: str, payload: Mapping[str, Any]) -> ForgeEvent | None:
    return github.read_github(event, payload) if forge == "github" else gitlab.read_gitlab(event, payload)


def _delivery(forge: Forge, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return what distinguishes a delivery from others, the same when it is sent again.

    Of GitHub that is the body alone, which has the time of its event: the signature does not cover the id in
    the headers, so whoever has recorded a delivery could give it another. Bodies of GitLab have no time, and
    may be equal; it gives events that one event causes the same id.
    """
    names = ("Idempotency-Key", "webhook-id", "X-Gitlab-Event-UUID") if forge == "gitlab" else ()
    identity = next((headers[name] for name in names if headers.get(name)), "")
    digest = hashlib.sha256(body)
    digest.update(f"\0{forge}\0{identity}".encode(errors="replace"))
    return digest.digest()
