"""Quiet hours, digests and limits, by the clock of a time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.delivery.alerts.schedule import Digest, Limit, QuietHours, next_digest, quiet_until, room
from pipeline.files.validation import validate
from pipeline.model.errors import ConfigError

NIGHT: dict[str, Any] = {"from": "22:00", "to": "07:00"}
WEEKEND: dict[str, Any] = {"days": ["sat", "sun"]}


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def quiet(*spans: dict[str, Any]) -> list[QuietHours]:
    return [validate(QuietHours, span, "quiet") for span in spans]


# 2026-09-21 is a Monday. Berlin is two hours ahead of UTC in summer, one in winter.
@pytest.mark.parametrize(
    ("spans", "zone", "now", "until"),
    [
        pytest.param([], "UTC", "2026-09-21T12:00", "2026-09-21T12:00", id="none"),
        pytest.param([NIGHT], "UTC", "2026-09-21T12:00", "2026-09-21T12:00", id="outside"),
        pytest.param([NIGHT], "UTC", "2026-09-21T22:00", "2026-09-22T07:00", id="its first moment"),
        pytest.param([NIGHT], "UTC", "2026-09-21T06:59", "2026-09-21T07:00", id="begun the day before"),
        pytest.param([NIGHT], "UTC", "2026-09-21T07:00", "2026-09-21T07:00", id="its end"),
        pytest.param([NIGHT], "Europe/Berlin", "2026-09-21T20:30", "2026-09-22T05:00", id="of a zone"),
        pytest.param([NIGHT], "Europe/Berlin", "2026-09-21T05:30", "2026-09-21T05:30", id="day there"),
        pytest.param([WEEKEND], "UTC", "2026-09-26T10:00", "2026-09-28T00:00", id="two whole days"),
        pytest.param(
            [NIGHT, WEEKEND], "UTC", "2026-09-25T23:00", "2026-09-28T07:00", id="a night, a weekend, a night"
        ),
        pytest.param(
            [{**NIGHT, "days": ["fri"]}], "UTC", "2026-09-26T03:00", "2026-09-26T07:00", id="day of its start"
        ),
        pytest.param(
            [NIGHT], "Europe/Berlin", "2026-10-24T21:00", "2026-10-25T06:00", id="the night of summer's end"
        ),
        pytest.param(
            [NIGHT], "Europe/Berlin", "2027-03-27T22:00", "2027-03-28T05:00", id="the night of its begin"
        ),
    ],
)
def test_quiet_hours_end(spans: list[dict[str, Any]], zone: str, now: str, until: str) -> None:
    assert quiet_until(quiet(*spans), zone, at(now)) == at(until)


def test_hours_that_never_end_give_an_end_nevertheless() -> None:
    always = quiet({"from": "00:00", "to": "12:00"}, {"from": "12:00", "to": "24:00"})
    assert quiet_until(always, "UTC", at("2026-09-21T12:00")) > at("2026-09-25T00:00")


@pytest.mark.parametrize(
    ("given", "zone", "now", "due"),
    [
        pytest.param({"at": "09:00"}, "UTC", "2026-09-21T08:00", "2026-09-21T09:00", id="today"),
        pytest.param({"at": "09:00"}, "UTC", "2026-09-21T09:00", "2026-09-22T09:00", id="tomorrow"),
        pytest.param({"at": "09:00"}, "Europe/Berlin", "2026-09-21T06:00", "2026-09-21T07:00", id="zone"),
        pytest.param(
            {"at": "09:00", "days": ["mon"]}, "UTC", "2026-09-21T10:00", "2026-09-28T09:00", id="next week"
        ),
        pytest.param({"every": "1h"}, "UTC", "2026-09-21T08:10", "2026-09-21T09:00", id="hourly"),
    ],
)
def test_a_digest_is_due(given: dict[str, Any], zone: str, now: str, due: str) -> None:
    assert next_digest(validate(Digest, given, "digest"), zone, at(now)) == at(due)


def test_a_limit_leaves_room() -> None:
    limit = validate(Limit, {"messages": 3, "per": "1h"}, "limit")
    assert room(None, [1.0], 2.0) is None
    assert room(limit, [], 0.0) == 3
    assert room(limit, [0.0, 10.0, 3599.0], 3600.0) == 1
    assert room(limit, [3000.0] * 5, 3600.0) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"from": "25:00"}, "from: should be a time"),
        ({"from": "24:30"}, "from: should be a time"),
        ({"from": True}, "from: should be a time"),
        ({"days": ["Monday"]}, "days.0: should be 'mon'"),
        ({"days": []}, "days: should hold at least 1"),
    ],
)
def test_wrong_hours_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        quiet(given)
    assert said in str(caught.value)


def test_a_time_without_quotes_is_what_yaml_makes_of_it() -> None:
    assert quiet({"from": 22 * 60, "to": 7 * 60}) == quiet(NIGHT)


@pytest.mark.parametrize("given", [{}, {"at": "09:00", "every": "1h"}])
def test_a_digest_has_one_way_to_be_due(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="give either at or every"):
        validate(Digest, given, "digest")
