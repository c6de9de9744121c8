"""Regressions and updates as rows, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.analysis.lifecycle import OpenRegression, Update
from pipeline.messages.events import encode_event, regression_event, update_event
from pipeline.messages.lifecycle import open_regression, regression_columns, update_columns
from pipeline.model import Regression
from pipeline.model.errors import InvalidMessage
from tests.support.builders import build_candidate

T0 = 1_700_000_000.0
CALLER = build_candidate("shop.caller", before=0.3, after=0.4)
OWN = replace(build_candidate("shop.f"), group=(CALLER,))
REPORTED = Regression("r", "shop", "live", OWN, T0 + 60)
OPEN = OpenRegression("r", OWN)
MORE = build_candidate("shop.more")


def rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


(ROW,) = rows(regression_columns([REPORTED], [encode_event(regression_event(REPORTED))]))


def update_rows(*updates: Update) -> list[dict[str, Any]]:
    return rows(update_columns(updates, [encode_event(update_event(update)) for update in updates]))


def test_what_was_reported_comes_back() -> None:
    found = open_regression(ROW, ())
    assert (found.id, found.levels) == ("r", {})
    assert found.candidate.metric == "shop.f"
    assert [(c.metric, c.before, c.after) for c in found.candidate.group] == [("shop.caller", 0.3, 0.4)]


def test_later_levels_and_joined_series_come_back() -> None:
    escalated = Update(
        "updated", OPEN, "shop", "live", T0 + 70, T0 + 65, 0.25, escalated=replace(CALLER, after=0.6)
    )
    joined = Update("updated", OPEN, "shop", "live", T0 + 80, T0 + 65, 0.26, joined=(MORE,))
    found = open_regression(ROW, update_rows(escalated, joined))
    assert found.levels == {("subroutine", "shop.f"): 0.26, ("subroutine", "shop.caller"): 0.6}
    assert found.own_level == 0.26
    assert [candidate.metric for candidate in found.candidate.group] == ["shop.caller", "shop.more"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("{}", id="no data"),
        pytest.param('{"data": 1}', id="data of another kind"),
        pytest.param('{"data": {"metric": "shop.f"}}', id="too little data"),
        pytest.param('{"data": {"metric": "shop.f", "group": 1}}', id="a group that is none"),
    ],
)
def test_an_event_that_cannot_be_read_is_invalid(event: str) -> None:
    with pytest.raises(InvalidMessage):
        open_regression({**ROW, "event": event}, ())
