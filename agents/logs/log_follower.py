"""Follower of a log: counts lines and publishes the counts as messages; each line counts in exactly one.

    read lines → count → write the state: position, open periods, messages → publish the messages

Messages are in the state before they are published. After a kill they are published again, and count once by
their ids; lines after the position, of which nothing was published, are read again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.logs.followed_log import FollowedLog
from agents.logs.line_format import LineFormat
from agents.logs.request_tally import RequestTally, TallyOptions
from agents.logs.request_type import NO_ROUTE, RequestTypes
from agents.logs.state_file import StateFile
from agents.publishing.message_queue import MessageQueue
from agents.publishing.pending import Pending
from pipeline.model import Outgoing
from pipeline.model.errors import ConfigError
from pipeline.telemetry.instruments import Sample
from pipeline.telemetry.metrics import AGENT_OMISSIONS, AGENT_REQUESTS

log = logging.getLogger(__name__)

LEARNT = 20_000
"""Requests at the beginning that are used to learn types before the first one is counted."""

SAVE_S = 5.0
"""Seconds between two writes of the state while no period ends: that much is read again after a kill."""

SAY_S = 600.0
"""Seconds between two log lines on what was left out."""

Offer = Callable[[Outgoing], None]


@dataclass(frozen=True, slots=True)
class Counting:
    """Settings for counting lines. ``format_of`` returns the format of a log from its first lines."""

    options: TallyOptions
    types: RequestTypes
    format_of: Callable[[Sequence[str]], LineFormat]

    def begin(self, head: Sequence[str]) -> RequestTally:
        """Return the tally of a log with these first lines."""
        return RequestTally(self.options, self.learn(head), self.types)

    def learn(self, head: Sequence[str], *, names: bool = True) -> LineFormat:
        """Return the format of a log with these first lines, and learn the types of requests from them."""
        format_ = self.format_of(head)
        # Parsed even if no names are learnt: comment lines of W3C's format name the columns of later lines.
        parsed = [fields for line in head[:LEARNT] if (fields := format_.parse(line)) and fields[1]]
        if names:
            self.types.learn([request for _, request, status, _ in parsed if status not in NO_ROUTE])
        return format_


class LogFollower:
    """Follows a log; each call of ``step`` is one round of its loop. ``state`` None keeps nothing.

    Raises:
        ConfigError: the log or the state cannot be read, or the state cannot be written.
    """

    def __init__(
        self, path: Path, counting: Counting, state: StateFile | None, outbox: MessageQueue, offer: Offer
    ) -> None:
        self._counting = counting
        self._state = state
        self._outbox = outbox
        self._offer = offer
        self._unsaved: list[Outgoing] = []  # messages that are not in the state yet
        self._has_news = False  # whether counted lines are not in the state yet
        self._kept = 0  # messages that are in the state
        self._saved_at = 0.0
        self._is_failing = False
        self._said: list[str] = []
        self._said_at = -math.inf
        saved = state.read() if state else None
        position = saved.position if saved else None
        self._log = FollowedLog(path, position, is_new=saved is not None)
        self._head = self._log.head()
        self._learns = not (saved and saved.types.types)
        if saved:
            counting.types.restore(saved.types)
        self.tally = RequestTally(counting.options, self._format(), counting.types)
        if saved:
            self._unsaved = self.tally.restore(saved.tally)
            for message in saved.outbox:
                outbox.put(Pending(Outgoing(message.topic, message.key, message.value.encode())))
        if state:
            self._write()

    def step(self, now: float) -> bool:
        """Read, count and publish what there is; return whether there may be more at once."""
        lines: list[str] = []
        if not self._unsaved and self._outbox.has_room(1, 1):
            lines = self._log.read()
            self._note_format(lines)
            self.tally.add(lines, now)
            # The clock ends a period only if all of its lines were read.
            self._unsaved = self.tally.close(now if self._log.is_at_end else None)
            self._has_news = self._has_news or bool(lines)
        is_behind = self._has_news or len(self._outbox.unconfirmed) < self._kept
        is_due = is_behind and not 0 <= now - self._saved_at < SAVE_S
        if (self._unsaved or is_due) and not self._save(now):
            return False
        messages, self._unsaved = self._unsaved, []
        for message in messages:
            self._offer(message)
        self._say(now)
        return bool(lines or messages)

    def samples(self) -> list[Sample]:
        """Return numbers as ``pipeline.telemetry.metrics`` names them; any thread may call it."""
        omissions = self.tally.omissions.counts().items()
        rows: list[Sample] = [(AGENT_OMISSIONS, {"reason": reason}, count) for reason, count in omissions]
        return [(AGENT_REQUESTS, {}, self.tally.requests), *rows]

    def problem(self) -> str:
        """Return why nothing is counted or published now, or empty text; any thread may call it."""
        if self._is_failing:
            return "the state cannot be written"
        if not self._outbox.has_room(1, 1):
            return "the buffer is full: lines wait in the log for the broker"
        return self.tally.refusal()

    def close(self, now: float) -> None:
        """Write the state a last time, after publishing has ended, and close the log."""
        if self._state:
            self._save(now)
        self._log.close()

    def _format(self) -> LineFormat:
        return self._counting.learn(self._head, names=self._learns)

    def _note_format(self, lines: list[str]) -> None:
        """Take the format from the first lines of a log that was missing or empty before."""
        if lines and not self._head:
            self._head = self._log.head() or lines
            self.tally.use(self._format())

    def _say(self, now: float) -> None:
        """Log what the tally left out, if it has changed and was not logged a short while ago."""
        if 0 <= now - self._said_at < SAY_S or (texts := self.tally.omissions.clauses()) == self._said:
            return
        self._said, self._said_at = texts, now
        log.warning("%s", "; ".join(texts))

    def _save(self, now: float) -> bool:
        """Write the state, if one is kept; return False if that failed, to be tried again later."""
        if not self._state:
            return True
        try:
            self._write()
        except ConfigError as error:
            if not self._is_failing:
                log.warning("%s; until the state can be written nothing is published", error)
            self._is_failing = True
            return False
        if self._is_failing:
            log.warning("the state can be written again")
        self._is_failing, self._has_news, self._saved_at = False, False, now
        return True

    def _write(self) -> None:
        assert self._state
        outbox = [*self._outbox.unconfirmed, *self._unsaved]
        self._state.write(
            self._log.position,
            self.tally.state(),
            self._counting.types.state(),
            outbox,
        )
        self._kept = len(outbox)
