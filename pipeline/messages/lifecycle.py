"""Reported regressions and their updates as rows of the store, and back.

The rows hold the events as they were published. Later scans read regressions from these events, so events of
former versions can be read, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from pipeline.analysis.lifecycle import OpenRegression, Update
from pipeline.messages.events import update_id
from pipeline.messages.ledger import candidate_of_event
from pipeline.messages.records import columns_of
from pipeline.model import Candidate, Regression, SeriesKey
from pipeline.model.errors import InvalidMessage


def regression_columns(regressions: Sequence[Regression], events: Sequence[bytes]) -> dict[str, list[Any]]:
    """Return regressions and their events as columns of the table ``regressions``."""
    return columns_of(
        {
            "id": regression.id,
            "time": regression.candidate.change_time,
            "detected_time": regression.detected_time,
            "delta": regression.candidate.delta,
            "p_value": regression.candidate.p_value,
            **_common(regression, regression.candidate, event),
        }
        for regression, event in zip(regressions, events, strict=True)
    )


def update_columns(updates: Sequence[Update], events: Sequence[bytes]) -> dict[str, list[Any]]:
    """Return updates and their events as columns of the table ``updates``."""
    return columns_of(
        {
            "id": update_id(update),
            "type": update.kind,
            "regression": update.regression.id,
            "time": update.time,
            "level": update.level,
            "share_remaining": update.share_remaining,
            **_common(update, update.regression.candidate, event),
        }
        for update, event in zip(updates, events, strict=True)
    )


def _common(reported: Regression | Update, candidate: Candidate, event: bytes) -> dict[str, Any]:
    return {
        "service": reported.service,
        "workload": reported.workload,
        "metric_kind": candidate.metric_kind,
        "metric": candidate.metric,
        "before": candidate.before,
        "after": candidate.after,
        "event": event.decode(),
    }


def open_regression(row: Mapping[str, Any], updates: Sequence[Mapping[str, Any]]) -> OpenRegression:
    """Return a regression with the later levels and joined series that its updates reported.

    Args:
        row: Row of the table ``regressions``.
        updates: Its rows of the table ``updates``, oldest first, without a resolution.

    Raises:
        InvalidMessage: another version wrote an event that cannot be read.
    """
    try:
        return _open_regression(row, updates)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidMessage(f"{type(error).__name__}: {error}") from None


def _open_regression(row: Mapping[str, Any], updates: Sequence[Mapping[str, Any]]) -> OpenRegression:
    candidate = candidate_of_event(_data(row))
    levels: dict[SeriesKey, float] = {}
    joined: list[Candidate] = []
    for update in updates:
        data = _data(update)
        levels[SeriesKey(update["metric_kind"], update["metric"])] = update["level"]
        if escalated := data.get("grown"):
            levels[SeriesKey(escalated["metric_kind"], escalated["metric"])] = escalated["after"]
        defaults = {"kind": data["kind"], "p_value": 0.0}
        joined += [candidate_of_event({**defaults, **member}) for member in data.get("joined", ())]
    return OpenRegression(row["id"], replace(candidate, group=(*candidate.group, *joined)), levels)


def _data(row: Mapping[str, Any]) -> dict[str, Any]:
    data = orjson.loads(row["event"])["data"]
    if not isinstance(data, dict):
        raise InvalidMessage("data: should be an object")
    return data
