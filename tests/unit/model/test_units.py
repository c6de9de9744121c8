from __future__ import annotations

import pytest

from pipeline.model.units import (
    _SPELLINGS,
    TIME_UNITS,
    UNIT_S,
    format_duration,
    parse_duration_s,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("30m", 1800.0),
        ("2h", 7200.0),
        ("10d", 864_000.0),
        (" 5 m ", 300.0),
        (0, 0.0),
        (90, 90.0),
        (0.5, 0.5),
        ("0.5", 0.5),
    ],
)
def test_durations_are_read(value: object, seconds: float) -> None:
    assert parse_duration_s(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("30 minutes", id="unknown unit"),
        pytest.param("30M", id="wrong case"),
        pytest.param("-5m", id="negative text"),
        pytest.param(-1, id="negative number"),
        pytest.param(float("nan"), id="nan"),
        pytest.param(float("inf"), id="infinite"),
        pytest.param("", id="empty"),
        pytest.param("1h30m", id="two units"),
        pytest.param(True, id="boolean"),
        pytest.param(None, id="null"),
        pytest.param([1], id="list"),
    ],
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration_s(value)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("512B", 512),
        ("1KiB", 1024),
        ("1.5KiB", 1536),
        ("16MiB", 16 * 1024**2),
        ("2GiB", 2 * 1024**3),
        (7, 7),
        ("7", 7),
    ],
)
def test_sizes_are_read(value: object, size: int) -> None:
    assert parse_size_bytes(value) == size


@pytest.mark.parametrize(
    "value",
    [
        "9" * 400,
        "9" * 19 + "GiB",
        2**63,
        10**5000,
        "16MB",
        "-16",
        "-1KiB",
        "0",
        "0KiB",
        "0.5B",
        0,
        -1,
        1.5,
        True,
        None,
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) or value < 2**64 else "vast",
)
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size_bytes(value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(864_000, "10d"), (7200, "2h"), (5400, "90m"), (90, "90s"), (1.5, "1.5s"), (0.25, "0.25s"), (0, "0s")],
)
def test_durations_are_written_in_the_largest_whole_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration_s(text) == seconds


def test_a_spelling_means_one_unit() -> None:
    assert {TIME_UNITS[unit] for unit in UNIT_S} == set(UNIT_S)
    spelt = [spelling for spellings in _SPELLINGS.values() for spelling in spellings.split()]
    assert len({*spelt, *UNIT_S}) == len(spelt) + len(UNIT_S) == len(TIME_UNITS)
    assert UNIT_S[TIME_UNITS["µs"]] == UNIT_S[TIME_UNITS["usec"]] == 1e-6
    assert UNIT_S[TIME_UNITS["m"]] == 60.0
