"""Regression events as JSON, and the alerts that they are."""

from __future__ import annotations

import json
from typing import Any

from pipeline.alerts.alert import Alert, alert_of
from pipeline.clock import to_iso

NOW = 1_790_000_000.0  # a Monday, 14:13 UTC

SUSPECT: dict[str, Any] = {
    "change": {
        **{"id": "8f2c11d0", "service": "shop", "time": NOW - 4000, "title": "Rules may be nested"},
        **{"author": "Ada", "summary": "", "files": ["shop/pricing/rules.py"]},
        **{"subroutines": [], "gates": []},
    },
    "score": 0.91,
    "factors": {},
}


def detected(number: str = "r1", *, service: str = "shop", time: float = NOW, **data: Any) -> dict[str, Any]:
    """Return a detected event; ``data`` replaces parts of its data."""
    given = {
        **{"service": service, "workload": "live", "metric": "shop.pricing.total"},
        **{"metric_kind": "subroutine", "kind": "short_term", "change_time": to_iso(time - 3600)},
        **{"detected_time": to_iso(time), "before": 0.06, "after": 0.08, "delta": 0.02, "relative": 1 / 3},
        **{"p_value": 1e-11, "statistic": 80.0, "group": [], "group_size": 0, "root_causes": [SUSPECT]},
        **{"cost_domains": [], "stacks": [], "servers": 1000.0, "waste_servers": 20.0, "passed": []},
        **data,
    }
    return _event(number, "detected", given, time)


def updated(regression: str, *, service: str = "shop", time: float = NOW + 60, **data: Any) -> dict[str, Any]:
    """Return an update of a regression that has escalated."""
    given = {**_course(regression, service, time, 0.1, 2.0), "grown": None, "joined": [], "joined_size": 0}
    return _event(f"{regression}-updated", "updated", {**given, **data}, time)


def resolved(
    regression: str, *, service: str = "shop", time: float = NOW + 120, **data: Any
) -> dict[str, Any]:
    """Return the resolution of a regression."""
    given = {**_course(regression, service, time, 0.06, 0.0), "resolved_by": []}
    return _event(f"{regression}-resolved", "resolved", {**given, **data}, time)


def alert(event: dict[str, Any] | None = None, **data: Any) -> Alert:
    """Return the alert of an event."""
    return alert_of(event or detected(**data))


def encoded(event: dict[str, Any]) -> bytes:
    """Return an event as its message has it."""
    return json.dumps(event).encode()


def _course(regression: str, service: str, time: float, level: float, share: float) -> dict[str, Any]:
    return {
        **{"service": service, "workload": "live", "metric": "shop.pricing.total"},
        **{"metric_kind": "subroutine", "kind": "short_term", "regression": regression},
        **{"regression_time": to_iso(NOW - 3600), "change_time": to_iso(time)},
        **{"detected_time": to_iso(time), "before": 0.06, "after": 0.08},
        **{"level": level, "share_remaining": share},
    }


def _event(number: str, kind: str, data: dict[str, Any], time: float) -> dict[str, Any]:
    return {
        **{"specversion": "1.0", "id": number, "type": f"smidgen.regression.{kind}"},
        **{"source": f"/smidgen/{data['service']}", "subject": data["metric"], "time": to_iso(time)},
        **{"datacontenttype": "application/json", "data": data},
    }
