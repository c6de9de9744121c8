"""Alertmanager of Prometheus: API v2, an alert for each regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pipeline.delivery.alerts.alert import Alert
from pipeline.delivery.alerts.markup import as_plain
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import OneAlert
from pipeline.delivery.alerts.targets.http import Http
from pipeline.model.clock import to_iso
from pipeline.model.units import DAY_S

_FOLLOWED_S = 31 * DAY_S
"""Time after which an alert ends by itself: regressions are followed for 30 days from their change point."""


class Alertmanager(OneAlert):
    """An Alertmanager, or Mimir's or Grafana's. Equal labels are one alert, so nothing is repeated."""

    kind: Literal["alertmanager"]
    url: str
    token: Secret | None = None
    labels: dict[str, str] = {}

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Fire an alert, with an end in the future, or end it."""
        alert = note.alert
        resolved = note.occasion == "resolved"
        sent: dict[str, Any] = {
            "labels": _labels(alert, self.labels),
            "annotations": {"summary": note.title, "description": as_plain(note.lines)},
            "startsAt": to_iso(alert.since),
            "endsAt": to_iso(alert.time if resolved else max(alert.since, alert.time) + _FOLLOWED_S),
        }
        if note.link:
            sent["generatorURL"] = note.link
        token = {"Authorization": f"Bearer {self.token.get_secret_value()}"} if self.token else {}
        await http.call("POST", f"{self.url.rstrip('/')}/api/v2/alerts", json=[sent], headers=token)
        return alert.regression


def _labels(alert: Alert, own: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that identify an alert, whichever metric of an experiment leads."""
    name = "SmidgenTrial" if alert.trial else "SmidgenRegression"
    subject = {"experiment": alert.trial.experiment} if alert.trial else {"metric": alert.metric}
    labels = {"service": alert.service, **subject, "regression": alert.regression}
    return {"alertname": name, "severity": "warning", **own, **labels}
