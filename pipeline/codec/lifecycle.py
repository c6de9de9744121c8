"""Reported regressions and their updates as rows of the store, and back.

The rows hold the events as they were published. What a later scan has to know of a regression is read from
them, so that those that a former version wrote serve as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from pipeline.codec.events import update_id
from pipeline.codec.ledger import candidate_of_event
from pipeline.errors import InvalidMessage
from pipeline.lifecycle import OpenRegression, Update
from pipeline.model import Candidate, Regression, SeriesKey


def regression_columns(regressions: Sequence[Regression], events: Sequence[bytes]) -> dict[str, list[Any]]:
    """Return regressions and their events as columns of the table ``regressions``."""
    candidates = [regression.candidate for regression in regressions]
    return {
        "id": [regression.id for regression in regressions],
        "service": [regression.service for regression in regressions],
        "workload": [regression.workload for regression in regressions],
        "metric_kind": [candidate.metric_kind for candidate in candidates],
        "metric": [candidate.metric for candidate in candidates],
        "time": [candidate.change_time for candidate in candidates],
        "detected_time": [regression.detected_time for regression in regressions],
        "before": [candidate.before for candidate in candidates],
        "after": [candidate.after for candidate in candidates],
        "delta": [candidate.delta for candidate in candidates],
        "p_value": [candidate.p_value for candidate in candidates],
        "event": [event.decode() for event in events],
    }


def update_columns(updates: Sequence[Update], events: Sequence[bytes]) -> dict[str, list[Any]]:
    """Return updates and their events as columns of the table ``updates``."""
    reported = [update.regression.candidate for update in updates]
    return {
        "id": [update_id(update) for update in updates],
        "type": [update.kind for update in updates],
        "regression": [update.regression.id for update in updates],
        "service": [update.service for update in updates],
        "workload": [update.workload for update in updates],
        "metric_kind": [candidate.metric_kind for candidate in reported],
        "metric": [candidate.metric for candidate in reported],
        "time": [update.time for update in updates],
        "before": [candidate.before for candidate in reported],
        "after": [candidate.after for candidate in reported],
        "level": [update.level for update in updates],
        "share_remaining": [update.share_remaining for update in updates],
        "event": [event.decode() for event in events],
    }


def open_regression(row: Mapping[str, Any], updates: Sequence[Mapping[str, Any]]) -> OpenRegression:
    """Return a regression with what updates reported of it: later levels, and the series that joined it.

    Args:
        row: Of the table ``regressions``.
        updates: Its rows of the table ``updates``, oldest first, none of which resolved it.

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
