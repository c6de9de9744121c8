"""Times in series files: dates of digits are dates, and digits that may be something else are refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.backtest.seriesfile import read_series
from pipeline.model.errors import ConfigError

FEBRUARY_10 = datetime(2026, 2, 10, tzinfo=UTC).timestamp()
DAY_S = 86_400.0


def csv(*times: str) -> bytes:
    return "\n".join(("timestamp,value", *(f"{time},{number}" for number, time in enumerate(times)))).encode()


def without_names(*times: str) -> bytes:
    return "\n".join(f"{time},{number}" for number, time in enumerate(times)).encode()


def json(*times: str) -> bytes:
    return orjson.dumps([{"timestamp": int(time), "value": n} for n, time in enumerate(times)])


def parquet(*times: str) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"timestamp": [int(time) for time in times], "value": [1.0] * len(times)}), file)
    return file.getvalue()


def read(content: bytes, folder: Path, *, plain: bool = True) -> list[float]:
    path = folder / "s"
    path.write_bytes(content)
    (series,) = read_series(path, plain=plain)
    assert series.timestamps is not None
    return [float(time) for time in series.timestamps]


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("write", [csv, without_names, json, parquet])
def test_dates_of_digits_are_dates(write: Callable[..., bytes], plain: bool, tmp_path: Path) -> None:
    content = write("20260210", "20260211", "20260212")
    assert read(content, tmp_path, plain=plain) == [FEBRUARY_10 + day * DAY_S for day in range(3)]


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        (("20260210T0000", "20260210T0001"), [0, 60]),
        (("2026-02-10", "20260211"), [0, DAY_S]),
        (("2026-02-10 00:00:00+01:00", "2026-02-10 00:00:00Z"), [-3600, 0]),
        ((f"{FEBRUARY_10:.0f}", f"{FEBRUARY_10 + 9:.0f}"), [0, 9]),
        ((f"{FEBRUARY_10:.0f}", "2026-02-10T01:00:09+01:00"), [0, 9]),
        (("2026-02-10T02:00+02:00", "2026-02-10T02:00+01:00"), [0, 3600]),  # the repeated hour, with offsets
        (("2026/02/10", "2026/2/11"), [0, DAY_S]),
        (("2026/02/10 00:00", "2026/2/10 9:05"), [0, 32_700]),
        (("2026.02.10", "2026.02.11"), [0, DAY_S]),
    ],
)
def test_times_without_doubt(times: tuple[str, ...], seconds: list[float], tmp_path: Path) -> None:
    assert read(csv(*times), tmp_path) == [FEBRUARY_10 + second for second in seconds]


@pytest.mark.parametrize(
    "times", [("0", "1", "2"), ("260210", "269999"), ("100000", "100100"), ("0", "46054")]
)
def test_seconds_that_are_no_dates_are_seconds(times: tuple[str, ...], tmp_path: Path) -> None:
    assert read(csv(*times), tmp_path) == [float(time) for time in times]


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (("260210", "260211"), "digits alone may be dates or seconds"),
        (("10022026", "11022026"), "digits alone may be dates or seconds"),
        (("2026021012", "2026021013"), "digits alone may be dates or seconds"),
        (("202602101200", "202602101201"), "digits alone may be dates or seconds"),
        (("20260210120000", "20260210120001"), "digits alone may be dates or seconds"),
        (("10/02/2026", "11/02/2026"), "day, month and year may be meant in another order"),
        (("10.02.26", "11.02.26"), "day, month and year may be meant in another order"),
        (("2026-02-10 12:00 CET", "2026-02-10 12:01 CET"), "should be an offset such as"),
        (
            ("2026-10-25T02:30", "2026-10-25T02:30"),
            "this time already.*; if clocks were put back, write times",
        ),
        (
            ("2026-02-10T00:00", "2026-02-10T00:01Z"),
            r"s:3: .*00 has no offset from UTC, .*01Z has one: write it",
        ),
        (
            ("2026-02-10T00:00Z", "2026-02-10 00:01"),
            "s:3: .*01 has no offset from UTC, .*00Z has one: write it",
        ),
        (("2026-02-10", "1770681660"), "s:3: .*2026-02-10 has no offset from UTC, 1770681660 has one"),
        (("46054.5", "46055.5"), r"s:2: timestamp: 46054.5 may be days, as of a spreadsheet, or seconds"),
        *(((f"{day}", f"{day + 1}"), f"{day} may be days") for day in (20_494, 740_000, 2_461_082)),
    ],
)
def test_times_that_may_be_others_are_refused(times: tuple[str, ...], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why) as refusal:
        read(csv(*times), tmp_path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("write", [json, parquet])
def test_day_numbers_of_formats_with_types_are_refused(write: Callable[..., bytes], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="46054 may be days"):
        read(write("46054", "46055"), tmp_path)


def note_of(content: bytes, folder: Path) -> str:
    path, said = folder / "s", list[str]()
    path.write_bytes(content)
    read_series(path, plain=True, note=said.append)
    return "".join(said).replace(str(folder), "")


UTC_IS_SAID = "times without an offset are UTC"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (csv("2026-02-10 12:00", "2026-02-10 13:00"), UTC_IS_SAID),
        (csv("20260210T12", "20260210T13"), UTC_IS_SAID),
        (csv("2026-02-10", "2026-02-11"), ""),  # a day has no offset
        (csv("2026-02-10T12:00Z", "2026-02-10T12:00+01:00"), ""),
        (csv(f"{FEBRUARY_10:.0f}", f"{FEBRUARY_10 + 9:.0f}"), ""),
        (csv("0", "1"), "times in seconds, before 2000 if since 1970"),
    ],
)
def test_what_times_are_taken_as_is_said_once(content: bytes, said: str, tmp_path: Path) -> None:
    note = note_of(content, tmp_path)
    assert note.endswith(said)
    assert note.count("times") == bool(said)


@pytest.mark.parametrize(("zone", "said"), [(None, UTC_IS_SAID), ("Europe/Berlin", "")])
def test_timestamps_by_type_that_have_no_time_zone_are_said(
    zone: str | None, said: str, tmp_path: Path
) -> None:
    file = io.BytesIO()
    times = pa.array([1_770_681_600, 1_770_681_601], pa.timestamp("s", zone))
    pq.write_table(pa.table({"timestamp": times, "value": [1.0, 2.0]}), file)
    assert note_of(file.getvalue(), tmp_path).endswith(said)


def shown(*clocks: str, day: str = "2026-10-25", seconds: str = ":00") -> list[str]:
    return [f"{day} {clock}{seconds}" for clock in clocks]


EVERY_20_MINUTES = shown("01:00", "01:20", "01:40", "02:00", "02:20", "02:40")


@pytest.mark.parametrize(
    ("times", "line"),
    [
        (shown("01:00", "02:00", "02:00", "03:00"), 4),
        ([*EVERY_20_MINUTES, *shown("02:00", "02:20", "02:40", "03:00")], 8),
        ([*shown("03:00", "02:40", "02:20", "02:00"), *EVERY_20_MINUTES[::-1]], 5),  # the newest first
        ([*EVERY_20_MINUTES, *shown("02:03", "02:21", "02:43", "03:01")], 8),  # no time stands twice
    ],
)
@pytest.mark.parametrize("plain", [True, False])
def test_an_hour_that_clocks_showed_twice_needs_an_offset(
    times: list[str], line: int, plain: bool, tmp_path: Path
) -> None:
    with pytest.raises(
        ConfigError, match=f"s:{line}: timestamp: clocks seem to have been put back here: write"
    ):
        read(csv(*times), tmp_path, plain=plain)


@pytest.mark.parametrize(
    "times",
    [
        shown("01:00", "01:20", "01:40", "03:00", "03:20"),  # clocks were put forward: nothing is doubtful
        [*EVERY_20_MINUTES, *shown("01:10", "01:30", "02:10")],  # 90 minutes back
        [*EVERY_20_MINUTES, *shown("02:35", "02:55", "03:10")],  # a point that came late
        [*shown("00:00", "00:20", "00:40"), *shown("00:05", "00:25", "00:45"), *shown("00:07", "00:27")],
        shown("2026-10-25", "2026-10-24", "2026-10-26", day="", seconds=""),
    ],
)
def test_other_orders_are_no_clocks_that_were_put_back(times: list[str], tmp_path: Path) -> None:
    assert len(read(csv(*times), tmp_path)) == len(times)


def test_points_that_are_given_twice_are_no_repeated_hour(tmp_path: Path) -> None:
    twice = csv(*(time for time in EVERY_20_MINUTES for _ in range(2)))
    with pytest.raises(ConfigError, match="has a point at this time already; --duplicates"):
        read(twice, tmp_path)
    path = tmp_path / "s"
    assert len(read_series(path, plain=True, duplicates="last")[0].values) == len(EVERY_20_MINUTES)
