"""The receiver of replies and closings: finds the event of what an alert wrote, and publishes the verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args

from agents.webhooks.answers import Answer, Send, send_messages
from agents.webhooks.closings import CLOSING_EVENTS, YIELDS_S, Closing, is_news, read_closing, said_by_closing
from agents.webhooks.mapping import AnswerRights, Forge, Source
from agents.webhooks.replies import REPLY_EVENTS, Reply, Said, may_answer, read_answer, read_reply
from agents.webhooks.signatures import REDELIVERY_S
from pipeline.analysis.feedback import latest_verdicts
from pipeline.messages.inputs import feedback_message
from pipeline.messages.verdicts import verdict_from_json
from pipeline.model import Verdict
from pipeline.model.clock import Clock
from pipeline.model.errors import InvalidMessage, StoreUnavailable
from pipeline.stages.gather.reported import find_reported
from pipeline.stages.gather.verdicts import gather_verdicts
from pipeline.storage.interface import RowQuery, Store
from pipeline.storage.schema import EVER
from pipeline.telemetry.instruments import Sample, counter, samples_of
from pipeline.telemetry.metrics import REPLIES

log = logging.getLogger(__name__)

Heard = Reply | Closing


class Answerable(Protocol):
    """A repository or a tracker's project in which alerts write and people answer."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def answers(self) -> AnswerRights | None:
        """Authors who may answer, and the targets."""

    @property
    def every_service(self) -> frozenset[str]:
        """The services whose events may be answered here."""


ANSWER_EVENTS: Mapping[Forge, tuple[str, str]] = {
    forge: (REPLY_EVENTS[forge], CLOSING_EVENTS[forge]) for forge in get_args(Forge)
}
"""The events that may bring answers."""

Outcome = Literal["answered", "other", "unclear", "refused", "unknown"]
"""What became of a reply: a verdict; not meant for us; called us and could not be read; of somebody who may
not answer; on a merge request or issue that no alert wrote on."""


class ReplyReceiver:
    """Turns replies and closings into verdicts. Nobody is answered there: what is unclear is counted."""

    def __init__(self, store: Store, send: Send, *, clock: Clock) -> None:
        self._store = store
        self._send = send
        self._clock = clock
        self._counts = counter(REPLIES, "outcome")
        for outcome in get_args(Outcome):
            self._counts.labels(outcome)

    def samples(self) -> list[Sample]:
        """Return the number of replies by outcome."""
        return samples_of(self._counts)

    async def take(self, forge: Forge, event: str, payload: Mapping[str, Any], source: Source) -> Answer:
        """Publish the verdict of a reply or a closing; the same once more changes nothing.

        Raises:
            InvalidMessage: the field of the payload that is missing or wrong.
        """
        if source.answers is None:
            return Answer(200, "replies are not asked for")
        closes = event == CLOSING_EVENTS[forge]
        heard = read_closing(forge, payload) if closes else read_reply(forge, payload)
        return await self.hear(heard, source) if heard else Answer(200, "no new reply")

    async def hear(self, heard: Heard, source: Answerable) -> Answer:
        """Publish the verdict of what was read, as ``take`` does."""
        if self._clock() - heard.time > REDELIVERY_S:
            return Answer(403, "older than three days")
        try:
            if isinstance(heard, Closing):
                return await self._take_closing(heard, source)
            return await self._take_reply(heard, source)
        except InvalidMessage as error:
            return self._counted("unclear", heard, source, str(error))
        except StoreUnavailable as error:
            log.warning("a reply of %s waits: %s", source.name, error)
            return Answer(503, "not published, try again")

    async def _take_reply(self, reply: Reply, source: Answerable) -> Answer:
        answer = read_answer(reply.text)
        if answer is None:
            return self._counted("other", reply, source, "speaks of something else")
        if not self._may_answer(reply, source):
            return self._counted("refused", reply, source, "its author may not answer")
        events = await asyncio.to_thread(self._events, reply.thread, source)
        if not events:
            return self._counted("unknown", reply, source, "no alert wrote there")
        event, service = _the_event(events, answer.event)
        if answer.verdict == "duplicate":
            originals = await asyncio.to_thread(find_reported, self._store, answer.subject)
            if len(originals) != 1:
                raise InvalidMessage(f"{answer.subject} could be {len(originals)} events")
            answer = replace(answer, subject=originals[0].id)
        return await self._publish(_verdict(event, service, answer, reply.author, reply.time), reply, source)

    async def _take_closing(self, closing: Closing, source: Answerable) -> Answer:
        events = await asyncio.to_thread(self._events, closing.thread, source)
        if not events:
            return self._counted("other", closing, source, "no alert opened it")
        if not self._may_answer(closing, source):
            return self._counted("refused", closing, source, "its author may not answer")
        event, service = _the_event(events)
        answer = said_by_closing(closing)
        if not await asyncio.to_thread(self._is_news, closing, answer, event, service):
            return self._counted("other", closing, source, "says nothing new")
        time = closing.time - YIELDS_S
        return await self._publish(_verdict(event, service, answer, closing.author, time), closing, source)

    async def _publish(self, verdict: Verdict, heard: Heard, source: Answerable) -> Answer:
        what = f"{_what(heard)} {heard.thread} of {source.name}"
        answer = await send_messages(self._send, [feedback_message(verdict)], what, "verdict")
        if answer.status == 200:
            self._counts.labels("answered").inc()
        return answer

    def _may_answer(self, heard: Heard, source: Answerable) -> bool:
        assert source.answers
        return may_answer(heard.author, heard.association, source.answers)

    def _events(self, thread: str, source: Answerable) -> dict[str, str]:
        """Return the reported regressions that alerts wrote of on a merge request or issue, with services."""
        assert source.answers
        return {
            row["regression"]: row["service"]
            for target in source.answers.targets
            for row in self._store.rows(
                RowQuery("alerts", None, *EVER, equal={"target": target, "thread": thread})
            )
            if row["service"] in source.every_service
        }

    def _is_news(self, closing: Closing, answer: Said, event: str, service: str) -> bool:
        states = latest_verdicts(gather_verdicts(self._store, service, event=event))
        state = states[event].verdict if event in states else None
        resolved = self._store.rows(
            RowQuery("updates", service, *EVER, equal={"regression": event, "type": "resolved"})
        )
        return is_news(closing, answer, state, bool(resolved))

    def _counted(self, outcome: Outcome, heard: Heard, source: Answerable, why: str) -> Answer:
        self._counts.labels(outcome).inc()
        if outcome != "other":
            log.info("%s %s of %s by %r: %s", _what(heard), heard.thread, source.name, heard.author, why)
        return Answer(200, f"{outcome}: {why}")


def _what(heard: Heard) -> str:
    return "the closing of" if isinstance(heard, Closing) else "a reply on"


def _the_event(events: Mapping[str, str], begins: str = "") -> tuple[str, str]:
    """Return the one event, with its service, whose id begins so."""
    named = [pair for pair in events.items() if pair[0].startswith(begins)]
    if len(named) != 1:
        raise InvalidMessage(f"could be about {len(named)} events: name one")
    return named[0]


def _verdict(event: str, service: str, answer: Said, author: str, time: float) -> Verdict:
    words = {"author": author, "comment": answer.comment, "subject": answer.subject}
    fields = {"kind": "verdict", "event": event, "service": service, "verdict": answer.verdict, "time": time}
    return verdict_from_json(fields | {name: word for name, word in words.items() if word})
