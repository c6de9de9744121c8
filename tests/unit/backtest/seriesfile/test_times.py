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
    ],
)
def test_times_without_doubt(times: tuple[str, ...], seconds: list[float], tmp_path: Path) -> None:
    assert read(csv(*times), tmp_path) == [FEBRUARY_10 + second for second in seconds]


@pytest.mark.parametrize("times", [("0", "1", "2"), ("260210", "269999"), ("100000", "100100")])
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
        (("2026-10-25T02:30", "2026-10-25T02:30"), "the series has a point at this time already"),
    ],
)
def test_times_that_may_be_others_are_refused(times: tuple[str, ...], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why) as refusal:
        read(csv(*times), tmp_path)
    assert "\n" not in str(refusal.value)
