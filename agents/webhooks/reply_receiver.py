"""The receiver of replies: finds the event of what an alert wrote, and publishes what people say of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, get_args

from agents.webhooks.answers import Answer, Send, send_messages
from agents.webhooks.mapping import Forge, Source
from agents.webhooks.replies import Reply, Said, may_answer, read_answer, read_reply
from agents.webhooks.signatures import REDELIVERY_S
from pipeline.clock import Clock
from pipeline.codec.verdicts import verdict_from_json
from pipeline.errors import InvalidMessage, StoreUnavailable
from pipeline.kafka.feedback import feedback_message
from pipeline.model import Verdict
from pipeline.stages.gather.reported import find_reported
from pipeline.storage.interface import Store
from pipeline.storage.schema import EVER
from pipeline.telemetry import REPLIES, Sample

log = logging.getLogger(__name__)

Outcome = Literal["answered", "other", "unclear", "refused", "unknown"]
"""What became of a reply: a verdict; not meant for us; called us and could not be read; of somebody who may
not answer; on a merge request or issue that no alert wrote on."""


class ReplyReceiver:
    """Turns replies into verdicts. Nobody is answered there: what is unclear is counted and logged."""

    def __init__(self, store: Store, send: Send, *, clock: Clock) -> None:
        self._store = store
        self._send = send
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[Outcome] = Counter(dict.fromkeys(get_args(Outcome), 0))

    def samples(self) -> list[Sample]:
        """Return how many replies came, by what became of them."""
        with self._lock:
            return [(REPLIES, {"outcome": outcome}, count) for outcome, count in self._counts.items()]

    async def take(self, forge: Forge, payload: Mapping[str, Any], source: Source) -> Answer:
        """Publish the verdict of a reply; a repeated one has its time, author and event, and changes nothing.

        Raises:
            InvalidMessage: the field of the payload that is missing or wrong.
        """
        if source.answers is None:
            return Answer(200, "replies are not asked for")
        reply = read_reply(forge, payload)
        if reply is None:
            return Answer(200, "no new reply")
        if self._clock() - reply.time > REDELIVERY_S:
            return Answer(403, "older than three days")
        try:
            said = read_answer(reply.text)
        except InvalidMessage as error:
            return self._counted("unclear", reply, source, str(error))
        if said is None:
            return self._counted("other", reply, source, "speaks of something else")
        if not may_answer(reply, source.answers):
            return self._counted("refused", reply, source, "its author may not answer")
        try:
            return await self._answer(reply, said, source)
        except StoreUnavailable as error:
            log.warning("a reply of %s waits: %s", source.name, error)
            return Answer(503, "not published, try again")

    async def _answer(self, reply: Reply, said: Said, source: Source) -> Answer:
        events = await asyncio.to_thread(self._events, reply.thread, source)
        if not events:
            return self._counted("unknown", reply, source, "no alert wrote there")
        named = {event: service for event, service in events.items() if event.startswith(said.event)}
        if len(named) != 1:
            return self._counted("unclear", reply, source, f"could be about {len(named)} events: name one")
        ((event, service),) = named.items()
        subject = said.subject
        if said.verdict == "duplicate":
            others = await asyncio.to_thread(find_reported, self._store, subject)
            if len(others) != 1:
                return self._counted("unclear", reply, source, f"{subject} could be {len(others)} events")
            subject = others[0].id
        try:
            verdict = _verdict(event, service, said, subject, reply)
        except InvalidMessage as error:
            return self._counted("unclear", reply, source, str(error))
        answer = await send_messages(
            self._send, [feedback_message(verdict)], f"a reply on {reply.thread} of {source.name}", "verdict"
        )
        if answer.status == 200:
            self._count("answered")
        return answer

    def _events(self, thread: str, source: Source) -> dict[str, str]:
        """Return the reported regressions that alerts wrote of on a merge request or issue, with services."""
        assert source.answers
        services = {service for _, _, service in source.rules}
        return {
            row["regression"]: row["service"]
            for target in source.answers.targets
            for row in self._store.rows("alerts", None, *EVER, target=target, thread=thread)
            if row["service"] in services
        }

    def _counted(self, outcome: Outcome, reply: Reply, source: Source, why: str) -> Answer:
        self._count(outcome)
        if outcome != "other":
            log.info("a reply of %r on %s of %s: %s", reply.author, reply.thread, source.name, why)
        return Answer(200, f"{outcome}: {why}")

    def _count(self, outcome: Outcome) -> None:
        with self._lock:
            self._counts[outcome] += 1


def _verdict(event: str, service: str, said: Said, subject: str, reply: Reply) -> Verdict:
    words = {"author": reply.author, "comment": said.comment, "subject": subject}
    given = {
        "kind": "verdict",
        "event": event,
        "service": service,
        "verdict": said.verdict,
        "time": reply.time,
    }
    return verdict_from_json(given | {name: word for name, word in words.items() if word})
