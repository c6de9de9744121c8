"""Deliveries: target, due time and state of each alert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import xxhash

from pipeline.delivery.alerts.alert import Alert
from pipeline.delivery.alerts.rules import AlertRule, matching
from pipeline.delivery.alerts.schedule import Digest, Limit, QuietHours, next_digest, quiet_until

Manner = Literal["single", "digest", "unanswered"]
"""Manners: a message of its own, a line of a digest, or a reminder that nobody has answered."""

State = Literal["waiting", "sent", "dropped"]


Source = Literal["regressions", "trial-verdicts"]
"""The topic that an event came on, by its logical name."""

Part = tuple[Source, int]
"""A partition of one of these topics."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Delivery of one alert to one target. Times are epoch seconds."""

    id: str  # from event, target and manner, so that each is made once
    alert: Alert
    target: str
    manner: Manner
    partition: int  # of the event on its topic
    due: float
    state: State = "waiting"
    changed: float = 0.0  # when it entered its state
    thread: str = ""  # the target's name of the conversation
    detail: str = ""  # why it waits, or was dropped

    @property
    def part(self) -> Part:
        """Partition of its event: the process that has it sends the delivery."""
        return ("trial-verdicts" if self.alert.trial else "regressions"), self.partition


class Manners(Protocol):
    """Times and manners of messages to a target."""

    @property
    def quiet(self) -> tuple[QuietHours, ...]:
        """Hours in which only urgent messages are sent."""

    @property
    def digest(self) -> Digest | None:
        """Times of digests; None: single messages."""

    @property
    def limit(self) -> Limit | None:
        """The most messages that the target gets."""

    @property
    def follow(self) -> bool:
        """Whether the target gets later events of a regression."""


@dataclass(frozen=True, slots=True)
class DeliveryPlan:
    """The rules with the manners of their targets."""

    rules: tuple[AlertRule, ...]
    manners: Mapping[str, Manners]
    zone: str = "UTC"

    @property
    def sources(self) -> tuple[Source, ...]:
        """Topics of the rules' events: verdicts on trials only if a rule matches these."""
        trials = any(event != "regression" for rule in self.rules for event in rule.events)
        return ("regressions", "trial-verdicts") if trials else ("regressions",)


def delivery_id(event: str, target: str, *, reminds: bool = False) -> str:
    """Derive the id of a delivery from its parts: a target gets each event once, and one reminder of it."""
    return xxhash.xxh3_128_hexdigest("\n".join((event, target, "reminder" if reminds else "")).encode())


def deliveries(
    plan: DeliveryPlan, alert: Alert, partition: int, known: Iterable[Delivery], now: float
) -> tuple[Delivery, ...]:
    """Return the deliveries of an alert that are not ``known`` yet.

    It goes once to each target of the rules that match it. Later events of a regression also go to every
    target that got an earlier one. ``known`` are the deliveries of the regression so far.
    """
    known = tuple(known)
    rules = matching(plan.rules, alert) if alert.kind != "resolved" else ()
    urgent = dict.fromkeys(_listening(plan, known), False) if alert.kind != "detected" else {}
    for rule in rules:
        urgent |= {target: rule.urgent or urgent.get(target, False) for target in rule.to}
    new = [_to(plan, alert, target, partition, now, urgent=loud) for target, loud in urgent.items()]
    if alert.kind == "detected" and alert.trial is None:  # nobody can answer an experiment
        new += _reminders(rules, alert, partition, now)
    present = {delivery.id for delivery in known}
    return tuple(delivery for delivery in new if delivery.id not in present)


def _listening(plan: DeliveryPlan, deliveries: Sequence[Delivery]) -> list[str]:
    """Return the targets that follow the regression; one may have left the file meanwhile."""
    return [
        delivery.target
        for delivery in deliveries
        if delivery.target in plan.manners
        and plan.manners[delivery.target].follow
        and (delivery.manner != "unanswered" or delivery.state == "sent")
    ]


def _to(
    plan: DeliveryPlan, alert: Alert, target: str, partition: int, now: float, *, urgent: bool
) -> Delivery:
    manners = plan.manners[target]
    name = delivery_id(alert.event, target)
    if manners.digest and not urgent:
        due = next_digest(manners.digest, plan.zone, now)
        return Delivery(name, alert, target, "digest", partition, due)
    due = now if urgent else quiet_until(manners.quiet, plan.zone, now)
    return Delivery(name, alert, target, "single", partition, due)


def _reminders(rules: Sequence[AlertRule], alert: Alert, partition: int, now: float) -> list[Delivery]:
    after_s: dict[str, float] = {}
    for rule in rules:
        if rule.unanswered:
            for target in rule.unanswered.to:
                after_s[target] = min(after_s.get(target, rule.unanswered.after_s), rule.unanswered.after_s)
    return [
        Delivery(
            delivery_id(alert.event, target, reminds=True),
            alert,
            target,
            "unanswered",
            partition,
            now + wait_s,
        )
        for target, wait_s in after_s.items()
    ]


def settled(found: Iterable[Delivery]) -> dict[str, Delivery]:
    """Return each delivery in its last state: once sent or dropped, it no longer waits."""
    states: dict[str, Delivery] = {}
    for delivery in found:
        former = states.get(delivery.id)
        if former is None or former.state == "waiting":
            states[delivery.id] = delivery
    return states


def due_now(waiting: Iterable[Delivery], now: float) -> dict[str, list[Delivery]]:
    """Return due deliveries by target, in the order of events, and within a regression in turn.

    An update waits for the report that it follows, for as long as that waits.
    """
    by_target: dict[str, list[Delivery]] = {}
    for delivery in waiting:
        by_target.setdefault(delivery.target, []).append(delivery)
    due = {}
    for target, those in by_target.items():
        those.sort(key=_order)
        held: set[str] = set()
        ready = []
        for delivery in those:
            if delivery.due > now and delivery.manner != "unanswered":
                held.add(delivery.alert.regression)
            elif delivery.due <= now and delivery.alert.regression not in held:
                ready.append(delivery)
        if ready:
            due[target] = ready
    return due


def _order(delivery: Delivery) -> tuple[float, int, str]:
    return (delivery.alert.time, ("detected", "updated", "resolved").index(delivery.alert.kind), delivery.id)


def thread_of(known: Iterable[Delivery], each: Delivery) -> str:
    """Return the conversation of a target about a regression; empty if there is none."""
    return next(
        (
            delivery.thread
            for delivery in sorted(known, key=_order)
            if delivery.target == each.target
            and delivery.alert.regression == each.alert.regression
            and delivery.thread
        ),
        "",
    )


def unannounced(known: Iterable[Delivery], each: Delivery) -> bool:
    """Return whether the target never got the report that an update or resolution follows."""
    if each.alert.kind == "detected":
        return False
    those = [o for o in known if o.target == each.target and o.alert.regression == each.alert.regression]
    return each.alert.kind == "resolved" and not any(delivery.state == "sent" for delivery in those)


def batches(due: Sequence[Delivery], free: int | None, *, bundles: bool) -> list[list[Delivery]]:
    """Group deliveries into messages: digests together, and single ones beyond a limit.

    ``free`` is the number of messages that the limit leaves, None for any. Further deliveries are left out,
    and wait.
    """
    together = [delivery for delivery in due if delivery.manner == "digest"]
    groups = [together] if together else []
    groups += [[delivery] for delivery in due if delivery.manner != "digest"]
    if free is None or len(groups) <= free:
        return groups
    if free == 0 or not bundles:
        return groups[:free]
    return [*groups[: free - 1], [delivery for batch in groups[free - 1 :] for delivery in batch]]


def changed(each: Delivery, state: State, now: float, *, thread: str = "", detail: str = "") -> Delivery:
    """Return a delivery in another state."""
    return replace(each, state=state, changed=now, thread=thread or each.thread, detail=detail)
