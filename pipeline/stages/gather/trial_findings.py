"""Verdicts on trials of changes, as root-cause analysis asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pipeline.analysis.rootcause.trials import MetricFinding, TrialFinding
from pipeline.experiments.trials import Decision
from pipeline.storage.interface import Store

_UNKNOWN_FALSE_NEGATIVES = 0.5
"""Of a model that was not chosen by A/A experiments; its false positives are alpha then."""

_DECIDED = {Decision.PASS.value: False, Decision.FAIL.value: True}
"""Decision → whether it failed."""


def trial_findings(store: Store, service: str, start: float, end: float) -> tuple[TrialFinding, ...]:
    """Return what the last verdicts on the experiments of a service found, those with a time in [start, end).

    Only whole experiments count, and of these the metrics that passed or failed.
    """
    return tuple(one for one in all_findings(store, service, start, end) if one.metrics)


def all_findings(store: Store, service: str, start: float, end: float) -> tuple[TrialFinding, ...]:
    """Return as ``trial_findings`` does every experiment, without metrics where none is decided."""
    latest: dict[str, Mapping[str, Any]] = {}
    columns = ("experiment", "revision", "event")
    rows = store.rows("trial_verdicts", service, start, end, columns=columns)
    for row in sorted(rows, key=lambda one: one["revision"]):
        latest[row["experiment"]] = row
    return tuple(_finding(orjson.loads(row["event"])["data"]) for row in latest.values())


def _finding(data: Mapping[str, Any]) -> TrialFinding:
    metrics = data["metrics"] if data["complete"] else ()
    return TrialFinding(
        (*data["releases_b"], data["experiment"]),
        tuple(_metric(one) for one in metrics if one["decision"] in _DECIDED),
    )


def _metric(one: Mapping[str, Any]) -> MetricFinding:
    score = next((score for score in one["scores"] if score["model"] == one["model"]), None)
    return MetricFinding(
        one["metric"],
        _DECIDED[one["decision"]],
        one["threshold"],
        score["false_positives"] if score else one["alpha"],
        score["false_negatives"] if score else _UNKNOWN_FALSE_NEGATIVES,
        one["model"],
    )
