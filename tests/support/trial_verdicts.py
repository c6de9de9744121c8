"""Verdicts on trials as the store holds them."""

from __future__ import annotations

from typing import Any

import orjson

SCORES = [{"model": "m", "false_positives": 0.03, "false_negatives": 0.1}]


def verdict_row(
    service: str, experiment: str, time: float, decision: str = "fail", revision: int = 1, **fields: Any
) -> dict[str, Any]:
    """Return a row of ``trial_verdicts`` with one metric, whose model was chosen by A/A experiments."""
    data = {"experiment": experiment, "complete": True, "releases_b": ["abc1234"], **fields}
    metric = {"metric": "cpu", "decision": decision, "threshold": 0.01, "alpha": 0.05, "model": "m"}
    metrics = [{**metric, "scores": data.pop("scores", SCORES)}]
    return {
        **{"id": f"{experiment}-{revision}", "service": service, "experiment": experiment, "time": time},
        **{"revision": revision, "decision": decision, "state": "published"},
        "event": orjson.dumps({"data": {**data, "metrics": metrics}}).decode(),
    }
