"""Messages: an alert in three lines and a link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote

from pipeline.delivery.alerts.alert import Alert, SuspectedChange
from pipeline.delivery.alerts.markup import Line, StyledText, shown, unlinked
from pipeline.delivery.alerts.trial_message import trial_entry, trial_lines, trial_title

Occasion = Literal["detected", "updated", "resolved", "unanswered", "digest", "test"]

_MOST_LISTED = 30
"""Most lines of a digest; further alerts are counted."""


@dataclass(frozen=True, slots=True)
class Note:
    """A message for a target. ``alerts`` are its subjects: one, except for a digest."""

    occasion: Occasion
    id: str  # the same if the message is sent again, so that a target can recognise it
    title: str
    lines: tuple[Line, ...]
    link: str  # empty if no dashboard is known
    alerts: tuple[Alert, ...]

    @property
    def alert(self) -> Alert:
        """The alert of the message; of a digest the first."""
        return self.alerts[0]

    @property
    def answerable(self) -> bool:
        """Whether a person can answer: a regression, until it is gone."""
        return self.occasion != "resolved" and self.alert.trial is None


def page_of(dashboard: str, alert: Alert) -> str:
    """Return the address of the page of a regression or experiment; empty without a dashboard.

    An address with ``{id}`` is of regressions alone.
    """
    base = dashboard.rstrip("/")
    if alert.trial:
        has_pages = bool(dashboard) and "{id}" not in dashboard
        path = "/".join(quote(name, safe="") for name in (alert.service, alert.trial.experiment))
        return f"{base}/trials/{path}" if has_pages else ""
    regression = quote(alert.regression, safe="")
    if "{id}" in dashboard:
        return dashboard.replace("{id}", regression)
    return f"{base}/regressions/{regression}" if dashboard else ""


def note_of(alert: Alert, dashboard: str, *, occasion: Occasion | None = None) -> Note:
    """Return the message of one alert: series, size, time and suspect."""
    event_occasion = occasion or alert.kind
    link = page_of(dashboard, alert)
    if alert.trial:
        title, lines = trial_title(alert.trial, alert.service), trial_lines(alert.trial, alert.service)
    else:
        title, lines = (
            _title(alert, event_occasion),
            (_what(alert, event_occasion), _how_much(alert), _whom(alert)),
        )
    rest: tuple[Line, ...] = ((StyledText("Open its page", "link", link),),) if link else ()
    return Note(event_occasion, alert.event, title, (*lines, *rest), link, (alert,))


def how_to_answer(event: str = "") -> Line:
    """Return the line on how to reply; with an event's id if a reply has to name it."""
    command = f"/smidgen false {event}".rstrip()
    return (
        StyledText("Answer by a reply: "),
        StyledText(command, "code"),
        StyledText(" and why; or "),
        StyledText("true", "code"),
        StyledText(", "),
        StyledText("expected", "code"),
        StyledText(", "),
        StyledText("fixed", "code"),
    )


def digest_of(alerts: Sequence[Alert], dashboard: str, note_id: str) -> Note:
    """Return the message of several alerts: a line each, the most expensive first."""
    order = sorted(
        alerts, key=lambda alert: (-(alert.waste_servers or 0), -abs(alert.relative or 1), alert.event)
    )
    lines: list[Line] = [_entry(alert, dashboard) for alert in order[:_MOST_LISTED]]
    if len(order) > _MOST_LISTED:
        lines.append((StyledText(f"and {len(order) - _MOST_LISTED} more"),))
    trials = sum(alert.trial is not None for alert in alerts)
    number = sum(alert.kind == "detected" and alert.trial is None for alert in alerts)
    services = len({alert.service for alert in alerts})
    title = f"Smidgen: {_count(number, 'regression')} in {_count(services, 'service')}"
    if trials:
        title += f", {_count(trials, 'verdict')} on trials"
    if updates := len(alerts) - number - trials:
        title += f", {_count(updates, 'follow-up')}"
    link = dashboard.rstrip("/") if dashboard and "{id}" not in dashboard else ""
    return Note("digest", note_id, title, tuple(lines), link, tuple(order))


def _entry(alert: Alert, dashboard: str) -> Line:
    link = page_of(dashboard, alert)
    ending: Line = (StyledText(" "), StyledText("page", "link", link)) if link else ()
    if alert.trial:
        return (*trial_entry(alert.trial, alert.service), *ending)
    verb = {"detected": "", "updated": f"{_update(alert)}: ", "resolved": "is resolved: "}[alert.kind]
    return (
        StyledText(shown(alert.service), "bold"),
        StyledText(" "),
        StyledText(shown(alert.metric), "code"),
        StyledText(f" {verb}{_levels(alert)}{_servers(alert)}"),
        *ending,
    )


def _title(alert: Alert, occasion: Occasion) -> str:
    name = f"{shown(alert.service)}: {shown(alert.metric)}"
    words = {
        "detected": _rise(alert),
        "updated": f"{_update(alert)}, {_rise(alert)}",
        "resolved": "is back to its level",
        "unanswered": f"{_rise(alert)}, and nobody has answered",
        "test": "is a test of this target",
    }
    return f"{name} {words.get(occasion, _rise(alert))}"


def _update(alert: Alert) -> str:
    return "has escalated" if abs(alert.size) > abs(alert.after - alert.before) else "is part of more"


def _rise(alert: Alert) -> str:
    if alert.relative is None:
        return "is new" if alert.is_share else "has a new level"
    if not alert.is_share:
        return f"{'rose' if alert.relative >= 0 else 'fell'} by {abs(alert.relative):.1%}"
    return f"takes {abs(alert.relative):.1%} {'more' if alert.relative >= 0 else 'less'} CPU"


def _what(alert: Alert, occasion: Occasion) -> Line:
    opening = {
        "detected": "Slower: ",
        "updated": "Update: ",
        "resolved": "Resolved: ",
        "unanswered": "Nobody has answered: ",
        "test": "Test: ",
    }[occasion]
    joined = f", with {alert.group_size} more series" if alert.group_size else ""
    return (
        StyledText(opening, "bold"),
        StyledText(shown(alert.metric), "code"),
        StyledText(" of "),
        StyledText(shown(alert.service), "bold"),
        StyledText(f" {_rise(alert) if occasion != 'resolved' else 'is back to its level'}{joined}"),
    )


def _how_much(alert: Alert) -> Line:
    return (StyledText(f"{_levels(alert)}{_servers(alert)}, since {_moment(alert.since)}"),)


def _whom(alert: Alert) -> Line:
    owners: Line = (StyledText(f" – owner {shown(', '.join(alert.owners))}"),) if alert.owners else ()
    if alert.suspect is None:
        words = {"detected": "No change is suspected", "resolved": "By no known change"}
        return (StyledText(words.get(alert.kind, "Suspects are those of its report")), *owners)
    return (*_change(alert.suspect, alert.kind == "resolved"), *owners)


def _change(change: SuspectedChange, fixed: bool) -> Line:
    score = f" (score {change.score:.2f})" if not fixed else ""
    author = f" by {unlinked(change.author)}" if change.author else ""
    return (
        StyledText("Ended by " if fixed else "Suspect: "),
        StyledText(shown(change.id)[:12], "code"),
        StyledText(f" {unlinked(change.title)}{author}{score}"),
    )


def _levels(alert: Alert) -> str:
    if alert.is_share:
        return f"{alert.before:.3%} → {alert.level:.3%} of CPU"
    return f"{alert.before:g} → {alert.level:g}"


def _servers(alert: Alert) -> str:
    if alert.waste_servers is None:
        return ""
    of = f" of {alert.servers:,.0f}" if alert.servers else ""
    number = f"{alert.waste_servers:,.0f}" if alert.waste_servers >= 100 else f"{alert.waste_servers:.3g}"
    return f", {number} servers{of}"


def _moment(epoch_s: float) -> str:
    return f"{datetime.fromtimestamp(epoch_s, UTC):%Y-%m-%d %H:%M} UTC"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
