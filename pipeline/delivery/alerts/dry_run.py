"""Dry runs: messages that rules would send of events, and a test message to each target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline.delivery.alerts.alert import Alert, SuspectedChange, alert_of
from pipeline.delivery.alerts.delivery import Delivery, Source, deliveries
from pipeline.delivery.alerts.desk import note_for
from pipeline.delivery.alerts.markup import as_plain, unbroken
from pipeline.delivery.alerts.message import note_of
from pipeline.delivery.alerts.rules_file import AlertRules
from pipeline.delivery.alerts.targets import Http, OneAlert, TargetRefused, TargetUnavailable
from pipeline.kafka import Entry
from pipeline.messages.events import decode_event
from pipeline.model.clock import to_iso
from pipeline.settings.config import hidden


class DryRun:
    """Rules over events, with nothing sent and nothing kept."""

    def __init__(self, rules: AlertRules) -> None:
        self._rules = rules
        self._known: list[Delivery] = []

    @property
    def sources(self) -> tuple[Source, ...]:
        """The topics whose events it takes."""
        return self._rules.plan.sources

    def lines(self, entry: Entry, now: float) -> Iterator[str]:
        """Yield the deliveries of one event: target, time, and message.

        Raises:
            InvalidMessage: it is no event.
        """
        alert = alert_of(decode_event(entry.value))
        alert = replace(alert, owners=self._rules.owners.of(alert))
        earlier = [delivery for delivery in self._known if delivery.alert.regression == alert.regression]
        made = deliveries(self._rules.plan, alert, entry.partition, earlier, now)
        self._known += [
            delivery if delivery.manner == "unanswered" else replace(delivery, state="sent")
            for delivery in made
        ]
        if not made:
            named = alert.trial.experiment if alert.trial else alert.metric
            yield f"{to_iso(alert.time)} {alert.service} {named} {alert.kind}: no target"
        for delivery in made:
            note = note_for([delivery], self._rules.dashboard)
            when = "now" if delivery.due <= now else to_iso(delivery.due)
            yield f"{delivery.target} ({delivery.manner}, {when}): {unbroken(note.title)}"
            yield from (f"    {line}" for line in unbroken(as_plain(note.lines)).splitlines())


def example(now: float) -> Alert:
    """Return an alert for tests, without an event."""
    return Alert(
        event=f"test-{int(now)}",
        kind="detected",
        regression=f"test-{int(now)}",
        service="smidgen-test",
        workload="test",
        metric="shop.pricing.PriceList.total",
        metric_kind="subroutine",
        time=now,
        since=now - 3600,
        before=0.0646,
        after=0.0854,
        level=0.0854,
        relative=0.322,
        servers=41_250.0,
        waste_servers=858.0,
        suspect=SuspectedChange("8f2c11d0", "This is a test; nothing is slower", "Ada", 0.91),
    )


async def send_test(rules: AlertRules, names: Sequence[str], now: float) -> dict[str, str]:
    """Send a test message to targets and return each one's error; empty for those without one.

    Where a target has a state for each regression, the test is resolved at once.
    """
    http = Http()
    note = note_of(example(now), rules.dashboard, occasion="test")
    errors = {}
    try:
        for name in names:
            target = rules.targets[name]
            try:
                thread = await target.send(note, "", http)
                if isinstance(target, OneAlert):
                    resolved = note_of(replace(note.alert, kind="resolved", suspect=None), rules.dashboard)
                    await target.send(resolved, thread, http)
                errors[name] = ""
            except (TargetUnavailable, TargetRefused) as error:
                errors[name] = hidden(str(error), rules.secrets)
    finally:
        await http.close()
    return errors
