"""Times in ISO 8601 as people and programs write them, and those that may be another time."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.clock import from_iso, has_date_digits, to_iso
from pipeline.model.errors import InvalidMessage


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("20260210", "2026-02-10T00:00:00+00:00"),
        ("2026-02-10", "2026-02-10T00:00:00+00:00"),
        ("2026-041", "2026-02-10T00:00:00+00:00"),
        ("2026-W07-2", "2026-02-10T00:00:00+00:00"),
        ("2026W072", "2026-02-10T00:00:00+00:00"),
        ("2026-W07", "2026-02-09T00:00:00+00:00"),
        ("2026-02-10T12", "2026-02-10T12:00:00+00:00"),
        ("20260210T1200", "2026-02-10T12:00:00+00:00"),
        ("2026-02-10 12:00:00 +0100", "2026-02-10T11:00:00+00:00"),  # git's --date=iso
        ("2026-02-10T12:00:00-05:30", "2026-02-10T17:30:00+00:00"),
        ("2026-02-10t12:00:00z", "2026-02-10T12:00:00+00:00"),
        ("2026-02-10 12:00:00 UTC", "2026-02-10T12:00:00+00:00"),
        ("2026-02-10 12:00:00,5", "2026-02-10T12:00:00.500000+00:00"),
        ("2026-02-10T12:00:00.123456789Z", "2026-02-10T12:00:00.123456+00:00"),
        ("2026-02-10T24:00:00Z", "2026-02-11T00:00:00+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"),
        ("2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00+00:00"),  # the end of summer time: this hour
        ("2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00+00:00"),  # and the same once more
        ("2024-366", "2024-12-31T00:00:00+00:00"),
        ("2026/02/10", "2026-02-10T00:00:00+00:00"),
        ("2026/2/1 9:05", "2026-02-01T09:05:00+00:00"),
        ("2026-2-1 09:05:30", "2026-02-01T09:05:30+00:00"),
        ("2026.02.10 12:00:00 +01:00", "2026-02-10T11:00:00+00:00"),
    ],
)
def test_iso_times(text: str, same: str) -> None:
    assert from_iso(text) == datetime.fromisoformat(same).timestamp()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10/02/2026", "day, month and year may be meant in another order"),
        ("02/10/26 12:00", "day, month and year may be meant in another order"),
        ("10.02.2026", "day, month and year may be meant in another order"),
        *((text, "one is 2026-01-31T12:00") for text in ("2026/02-10", "2026/13/02", "2026/02", "2026.02")),
        ("26/02/10", "day, month and year may be meant in another order"),
        ("26-02-10", "day, month and year may be meant in another order"),
        ("202602", "digits alone may be a date or a number"),
        ("260210", "digits alone may be a date or a number"),
        ("10022026", "digits alone may be a date or a number"),
        ("2026021012", "digits alone may be a date or a number"),
        ("20260210120000", "digits alone may be a date or a number"),
        ("2026-02-10 12:00 CET", r"should be an offset such as \+01:00"),
        ("2026-02-10T12:00 Europe/Berlin", r"should be an offset such as \+01:00"),
        *((text, "one is 2026-01-31T12:00") for text in ("", "now", "2026-02-30", "2026-02-10T24:01")),
        *((text, r"'[^':]*' \(one is") for text in ("2026-02-10 12 PM", "10 Feb 2026 GMT")),
        *((text, "one is 2026-01-31T12:00") for text in ("2023-366", "2026-000", "2026-02-10T12:61")),
        *((text, "one is 2026-01-31T12:00") for text in ("2026021012000", "20260210123", "٢٠٢٦-02-10")),
        *((text, "one is 2026-01-31T12:00") for text in ("2026-02-10x12:00", "2026-02-10T12:00+25:00")),
    ],
)
def test_what_is_no_time_or_may_be_another_one_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidMessage, match=why):
        from_iso(text)


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_python_s_own_times_are_the_same(moment: datetime) -> None:
    assert from_iso(moment.isoformat()) == moment.timestamp()
    assert from_iso(to_iso(moment.timestamp())) == pytest.approx(moment.timestamp(), abs=1e-3)


@given(st.text(st.sampled_from("0123456789-:TWZ+ ./"), max_size=30))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidMessage):
        assert isinstance(from_iso(text), float)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("20260210", "10022026", "260210", "2026021023", "20260210120000")),
        *(
            (text, False)
            for text in ("1700000000", "1700000000000", "86400", "600000", "20261310", "2026", "")
        ),
    ],
)
def test_digits_that_may_be_a_date(text: str, expected: bool) -> None:
    assert has_date_digits(text) is expected
