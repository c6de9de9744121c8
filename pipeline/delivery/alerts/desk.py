"""The desk: takes events in, stores deliveries, and sends due ones, each target for itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pipeline.delivery.alerts.alert import Alert, alert_of
from pipeline.delivery.alerts.delivery import (
    Delivery,
    Part,
    Source,
    batches,
    changed,
    deliveries,
    due_now,
    settled,
    thread_of,
    unannounced,
)
from pipeline.delivery.alerts.message import Note, digest_of, note_of
from pipeline.delivery.alerts.numbers import AlertNumbers
from pipeline.delivery.alerts.record import DeliveryRecord
from pipeline.delivery.alerts.rules import matching
from pipeline.delivery.alerts.rules_file import AlertRules
from pipeline.delivery.alerts.schedule import room
from pipeline.delivery.alerts.targets import Http, TargetRefused, TargetUnavailable, Unsuitable
from pipeline.kafka import Entry
from pipeline.messages.events import decode_event
from pipeline.model.clock import Clock
from pipeline.model.errors import InvalidMessage
from pipeline.model.units import DAY_S, HOUR_S
from pipeline.settings.config import hidden
from pipeline.telemetry.metrics import Sample

log = logging.getLogger(__name__)

FOLLOWED_S = 45 * DAY_S
"""Time for which a delivery is remembered: regressions are followed for 30 days."""

SEND_S = 20.0
"""Longest time of one message, with all requests that it needs."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, HOUR_S / 4
"""Pause of a target after it did not take a message; doubled each time, up to the second number."""

REFRESH_S = 60.0
"""Interval at which a digest reads the lines of other processes."""

DIGEST_PART: Part = ("regressions", 0)
"""Partition whose process sends the digests, so that there is one for all services."""


class Desk:
    """One process's share of the deliveries: those of its partitions."""

    def __init__(self, rules: AlertRules, record: DeliveryRecord, http: Http, clock: Clock) -> None:
        self._rules = rules
        self._record = record
        self._http = http
        self._clock = clock
        self._numbers = AlertNumbers(tuple(rules.targets), rules.plan.rules)
        self._known: dict[str, Delivery] = {}
        self._mine: frozenset[Part] = frozenset()
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._paused: dict[str, tuple[float, float]] = {}  # target → end of its pause, length of the next one
        self._refreshed = 0.0
        self._keeping = asyncio.Lock()  # arriving partitions read events together with stored deliveries

    @property
    def sources(self) -> tuple[Source, ...]:
        """The topics whose events it takes."""
        return self._rules.plan.sources

    @property
    def waiting(self) -> int:
        """Number of waiting deliveries of this process's partitions."""
        return sum(
            1 for delivery in self._known.values() if delivery.state == "waiting" and self._is_mine(delivery)
        )

    def samples(self) -> list[Sample]:
        """Return what this process has sent, and what waits of its partitions."""
        waiting = [
            delivery
            for delivery in self._known.values()
            if delivery.state == "waiting" and self._is_mine(delivery)
        ]
        paused = {target: until for target, (until, _) in self._paused.items()}
        return self._numbers.samples(waiting, paused, self._clock())

    async def arrived(self, partitions: frozenset[Part]) -> None:
        """Take partitions over, with the waiting deliveries of earlier processes."""
        await self.left(self._mine)
        async with self._keeping:
            self._known = settled(await self._record.load(self._clock() - FOLLOWED_S))
        self._mine = partitions
        self._refreshed = self._clock()

    async def left(self, _: frozenset[Part]) -> None:
        """Stop sending for all partitions, once running deliveries have ended and are stored."""
        self._mine = frozenset()
        if self._sending:
            await asyncio.wait(self._sending.values())

    async def take(self, entries: Sequence[Entry]) -> None:
        """Store the deliveries of events, so that the events' offsets can be committed."""
        async with self._keeping:
            await self._take(entries)

    async def _take(self, entries: Sequence[Entry]) -> None:
        made: list[Delivery] = []
        for entry in entries:
            alert = self._read(entry)
            if alert is None:
                continue
            now = self._clock()
            if alert.time < now - self._rules.max_age_s:
                log.info("event %s is older than max_age: no alert", alert.event)
                continue
            earlier = [
                delivery for delivery in self._known.values() if delivery.alert.regression == alert.regression
            ]
            new = deliveries(self._rules.plan, alert, entry.partition, earlier, now)
            if new and alert.kind != "resolved":
                self._numbers.matched(matching(self._rules.plan.rules, alert))
            self._known |= {delivery.id: delivery for delivery in new}
            made += new
        await self._record.write(made)

    def _read(self, entry: Entry) -> Alert | None:
        try:
            alert = alert_of(decode_event(entry.value))
        except (InvalidMessage, KeyError, TypeError, ValueError) as error:
            log.warning("partition %d offset %d is no event: %r", entry.partition, entry.offset, error)
            return None
        return replace(alert, owners=self._rules.owners.of(alert))

    async def tick(self) -> None:
        """Start sending due deliveries, to every target that is not being sent to."""
        await self._refresh()
        now = self._clock()
        mine = [
            delivery
            for delivery in self._known.values()
            if delivery.state == "waiting" and self._is_mine(delivery)
        ]
        for target, due in due_now(mine, now).items():
            until, _ = self._paused.get(target, (0.0, 0.0))
            if target not in self._sending and until <= now:
                task = asyncio.create_task(self._send_all(target, due))
                self._sending[target] = task
                task.add_done_callback(lambda done, target=target: self._ended(target, done))  # type: ignore[misc]

    def _ended(self, target: str, task: asyncio.Task[None]) -> None:
        self._sending.pop(target, None)
        if not task.cancelled() and (error := task.exception()):
            log.error("target %s: %s", target, self._hide(repr(error)), exc_info=error)
            self._numbers.ended(target, "failed")
            self._pause(target, 0.0)

    async def finish(self) -> None:
        """Finish running deliveries."""
        await self.left(self._mine)

    def _is_mine(self, delivery: Delivery) -> bool:
        return (DIGEST_PART if delivery.manner == "digest" else delivery.part) in self._mine

    async def _refresh(self) -> None:
        """Read lines of digests that other processes have stored since."""
        now = self._clock()
        digests = any(target.digest for target in self._rules.targets.values())
        if digests and DIGEST_PART in self._mine and now >= self._refreshed + REFRESH_S:
            self._refreshed = now
            stored = await self._record.load(now - self._rules.max_age_s - DAY_S)
            self._known = settled([*self._known.values(), *stored])

    async def _send_all(self, target: str, due: Sequence[Delivery]) -> None:
        """Send due deliveries to one target, until all are sent or the target takes no more."""
        if target not in self._rules.targets:
            await self._close(due, "dropped", detail="no such target any more")
            return
        now = self._clock()
        kind = self._rules.targets[target]
        due = [delivery for delivery in due if not await self._is_settled(delivery)]
        sent = {  # deliveries of one message have one time and one thread
            (delivery.changed, delivery.thread)
            for delivery in self._known.values()
            if delivery.target == target and delivery.state == "sent"
        }
        free = room(kind.limit, [at for at, _ in sent], now)
        for batch in batches(due, free, bundles=kind.bundles):
            if not all(map(self._is_mine, batch)) or not await self._send(target, batch):
                return

    async def _is_settled(self, delivery: Delivery) -> bool:
        """Drop a delivery that is no longer needed."""
        alert, now = delivery.alert, self._clock()
        given_up = now > delivery.due + self._rules.give_up_s
        reason = ""
        if given_up:
            reason = "given up"
        elif unannounced(self._known.values(), delivery):
            reason = "its report was not sent"
        elif delivery.manner == "unanswered" and await self._is_answered(alert):
            reason = "answered"
        if reason:
            self._numbers.ended(delivery.target, "dropped" if given_up else "left_out")
            await self._close([delivery], "dropped", detail=reason)
        return bool(reason)

    async def _is_answered(self, alert: Alert) -> bool:
        those = [
            delivery.alert
            for delivery in self._known.values()
            if delivery.alert.regression == alert.regression
        ]
        if any(delivery.kind == "resolved" for delivery in those):
            return True
        return await self._record.answered(alert.service, sorted({delivery.event for delivery in those}))

    async def _send(self, target: str, batch: Sequence[Delivery]) -> bool:
        """Send one message; return whether the next one may follow at once."""
        note = note_for(batch, self._rules.dashboard)
        thread = thread_of(self._known.values(), batch[0]) if len(batch) == 1 else ""
        try:
            async with asyncio.timeout(SEND_S):
                thread = await self._rules.targets[target].send(note, thread, self._http)
        except (TargetUnavailable, TimeoutError) as error:
            after_s = error.after_s if isinstance(error, TargetUnavailable) else 0.0
            self._numbers.ended(target, "failed")
            wait_s = self._pause(target, after_s)
            log.warning(
                "target %s: %s; once more in %.0f s", target, self._hide(str(error) or "no answer"), wait_s
            )
            return False
        except Unsuitable as error:
            self._numbers.ended(target, "left_out")
            await self._close(batch, "dropped", detail=str(error))
        except TargetRefused as error:
            self._numbers.ended(target, "dropped")
            log.error("target %s does not take event %s: %s", target, note.id, self._hide(str(error)))
            await self._close(batch, "dropped", detail=self._hide(str(error)))
        else:
            self._paused.pop(target, None)
            self._numbers.sent(target, batch, self._clock())
            log.info("target %s: sent %s", target, note.title)
            await self._close(batch, "sent", thread=thread)
        return True

    async def _close(
        self, batch: Iterable[Delivery], state: str, *, thread: str = "", detail: str = ""
    ) -> None:
        now = self._clock()
        closed = [
            changed(delivery, "sent" if state == "sent" else "dropped", now, thread=thread, detail=detail)
            for delivery in batch
        ]
        await self._record.write(closed)
        self._known |= {delivery.id: delivery for delivery in closed}

    def _pause(self, target: str, asked_s: float) -> float:
        _, next_s = self._paused.get(target, (0.0, FIRST_PAUSE_S))
        wait_s = max(asked_s, next_s)
        self._paused[target] = (self._clock() + wait_s, min(LONGEST_PAUSE_S, 2 * next_s))
        return wait_s

    def _hide(self, text: str) -> str:
        return hidden(text, self._rules.secrets)


def note_for(batch: Sequence[Delivery], dashboard: str) -> Note:
    """Return the text of a batch: of one alert a note, of several a digest."""
    first = batch[0]
    if len(batch) == 1 and first.manner != "digest":
        reminds = first.manner == "unanswered"
        return note_of(first.alert, dashboard, occasion="unanswered" if reminds else None)
    return digest_of([delivery.alert for delivery in batch], dashboard, first.id)
