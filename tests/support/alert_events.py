"""Regression events as JSON, and their alerts."""

from __future__ import annotations

import json
from typing import Any

from pipeline.delivery.alerts.alert import Alert, alert_of
from pipeline.model.clock import to_iso

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
    fields = {
        **{"service": service, "workload": "live", "metric": "shop.pricing.total"},
        **{"metric_kind": "subroutine", "kind": "short_term", "change_time": to_iso(time - 3600)},
        **{"detected_time": to_iso(time), "before": 0.06, "after": 0.08, "delta": 0.02, "relative": 1 / 3},
        **{"p_value": 1e-11, "statistic": 80.0, "group": [], "group_size": 0, "root_causes": [SUSPECT]},
        **{"cost_domains": [], "stacks": [], "servers": 1000.0, "waste_servers": 20.0, "passed": []},
        **data,
    }
    return _event(number, "detected", fields, time)


def updated(regression: str, *, service: str = "shop", time: float = NOW + 60, **data: Any) -> dict[str, Any]:
    """Return an update of a regression that has escalated."""
    fields = {**_course(regression, service, time, 0.1, 2.0), "grown": None, "joined": [], "joined_size": 0}
    return _event(f"{regression}-updated", "updated", {**fields, **data}, time)


def resolved(
    regression: str, *, service: str = "shop", time: float = NOW + 120, **data: Any
) -> dict[str, Any]:
    """Return the resolution of a regression."""
    fields = {**_course(regression, service, time, 0.06, 0.0), "resolved_by": []}
    return _event(f"{regression}-resolved", "resolved", {**fields, **data}, time)


def alert(event: dict[str, Any] | None = None, **data: Any) -> Alert:
    """Return the alert of an event."""
    return alert_of(event or detected(**data))


def encoded(event: dict[str, Any]) -> bytes:
    """Return an event in the form of its message."""
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


def verdict(
    experiment: str = "pr-7",
    decision: str = "fail",
    *,
    revision: int = 1,
    service: str = "shop",
    time: float = NOW,
    **data: Any,
) -> dict[str, Any]:
    """Return the verdict on an experiment; ``data`` replaces parts of its data."""
    fields = {
        **{"service": service, "experiment": experiment, "revision": revision, "decision": decision},
        **{"complete": True, "trials": 8, "expected_trials": 8, "half_trials": 0},
        **{"releases_a": ["3f2a"], "releases_b": ["9bc1d00"]},
        "machines": [{"side": "A", "factors": {"type": "m5"}, "trials": 8}],
        "metrics": [outcome("cpu", decision, 0.05), outcome("latency", "not enough", -0.02)],
        "metrics_size": 2,
        **data,
    }
    return {
        **{
            "specversion": "1.0",
            "id": f"{experiment.encode().hex()}-{revision}",
            "type": "smidgen.trial.verdict",
        },
        **{"source": f"/smidgen/{service}", "subject": experiment, "time": to_iso(time)},
        **{"datacontenttype": "application/json", "data": fields},
    }


def outcome(metric: str, decision: str, difference: float | None, **own: Any) -> dict[str, Any]:
    """Return a verdict's outcome for one metric."""
    measured = difference is not None
    bounds = (difference - 0.01, difference + 0.01) if difference is not None else (None, None)
    return {
        **{"metric": metric, "decision": decision, "threshold": 0.02, "alpha": 0.05, "direction": "up"},
        **{"mean_a": 100.0, "mean_b": 100.0 * (1 + (difference or 0)), "difference": difference},
        **{"low": bounds[0], "high": bounds[1], "p_value": 0.0005 if measured else None},
        **{"model": "paired-t-test", "trials": 8, "trials_needed": 40},
        **{"warm_up": [3], "unsteady": [], "scores": [], **own},
    }
