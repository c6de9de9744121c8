"""Metrics of alerts for Prometheus: sent, failed with reason, waiting, and their delay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from pipeline.delivery.alerts.delivery import Delivery
from pipeline.delivery.alerts.rules import Rule
from pipeline.model.units import DAY_S, HOUR_S, MINUTE_S
from pipeline.telemetry.instruments import Sample, counter, histogram, samples_of
from pipeline.telemetry.metrics import ALERT_DELAY_S, ALERT_RULES, ALERTS, ALERTS_WAITING

Outcome = Literal["sent", "failed", "dropped", "left_out"]
"""Of a message: the target took it; it did not, and gets it once more; it refused it, or did not take it in
time; nobody needs it any more, or the target has nothing to say of it."""

Waits = Literal["due", "quiet", "late"]
"""Reasons why an alert waits: its turn; its hour; or a target that takes no messages."""

DELAY_BOUNDS_S = (1, 3, 10, 30, MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, HOUR_S, 6 * HOUR_S, DAY_S)


class AlertNumbers:
    """Counts of one process since its start; labels are few, since they are names of the rules file."""

    def __init__(self, targets: Sequence[str], rules: Sequence[Rule]) -> None:
        self._targets = tuple(targets)
        self._rules = tuple(rules)
        self._outcomes = counter(ALERTS, "target", "outcome")
        self._matched = counter(ALERT_RULES, "rule")
        self._delays = histogram(ALERT_DELAY_S, DELAY_BOUNDS_S, "target")
        for rule in rules:
            self._matched.labels(rule_name(rules, rule))
        for target in targets:
            self._delays.labels(target)
            for outcome in get_args(Outcome):
                self._outcomes.labels(target, outcome)

    def matched(self, rules: Iterable[Rule]) -> None:
        """Count an event that matches a rule."""
        for rule in rules:
            self._matched.labels(rule_name(self._rules, rule)).inc()

    def ended(self, target: str, outcome: Outcome) -> None:
        """Count the outcome of a message."""
        self._outcomes.labels(target, outcome).inc()

    def sent(self, target: str, batch: Iterable[Delivery], now: float) -> None:
        """Count a sent message, and the delay of each of its alerts."""
        self.ended(target, "sent")
        for delivery in batch:
            self._delays.labels(target).observe(max(now - delivery.due, 0.0))

    def samples(self, waiting: Iterable[Delivery], paused: Mapping[str, float], now: float) -> list[Sample]:
        """Return all counts so far, and the waiting deliveries.

        Args:
            waiting: Deliveries that have not been sent or dropped.
            paused: Until when targets are left alone, epoch seconds.
            now: Epoch seconds.
        """
        waits: Counter[tuple[str, Waits]] = Counter(
            (delivery.target, _reason(delivery, paused, now)) for delivery in waiting
        )
        values: list[Sample] = [
            (ALERTS_WAITING, {"target": target, "reason": reason}, waits[target, reason])
            for target in self._targets
            for reason in get_args(Waits)
        ]
        return values + samples_of(self._matched, self._outcomes, self._delays)


def rule_name(rules: Sequence[Rule], rule: Rule) -> str:
    """Return a rule's name, or its number from 1."""
    return rule.name or str(rules.index(rule) + 1)


def _reason(delivery: Delivery, paused: Mapping[str, float], now: float) -> Waits:
    if delivery.due > now:
        return "quiet"
    return "late" if paused.get(delivery.target, 0.0) > now else "due"
