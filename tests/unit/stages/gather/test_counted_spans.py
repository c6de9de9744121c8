"""Where a service has data, found within years of none."""

from __future__ import annotations

from typing import Any

from pipeline.model import SeriesMatrix
from pipeline.model.units import DAY_S
from pipeline.stages.gather.scan_history import MOST_WINDOWS, counted_spans
from pipeline.storage.arrays import ArrayStore

START = 1_700_000_000.0 // DAY_S * DAY_S
WHERE: dict[str, Any] = {"partition": 0, "last_offset": 0, "stream": "log"}


class CountingStore(ArrayStore):
    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    def series(self, *given: Any) -> SeriesMatrix:
        found = super().series(*given)
        self.read.append(len(found.totals))
        return found


def columns(times: list[float], rows: dict[str, Any]) -> dict[str, list[Any]]:
    every = {**WHERE, "service": "shop", **rows}
    return {**{name: [value] * len(times) for name, value in every.items()}, "window": times}


def store_with(*minutes: int) -> CountingStore:
    store = CountingStore()
    times = [START + 60.0 * minute for minute in minutes]
    rows = {"topic": "profiles", "samples": 1, "messages": 1, "stacks": 1}
    store.insert("totals", columns(times, rows))
    return store


def spans(store: ArrayStore, minutes: float) -> list[tuple[float, float]]:
    found = counted_spans(store, "gcpu", "shop", START, START + 60.0 * minutes, 60.0)
    return [((start - START) / 60, (end - START) / 60) for start, end in found]


def test_of_a_service_without_data_there_are_none() -> None:
    assert spans(store_with(), 1e7) == []
    assert list(counted_spans(ArrayStore(), "service", "shop", START, START + 600.0, 60.0)) == []


def test_few_windows_are_read_at_once() -> None:
    store = store_with(0, 3, 4, 5, 9)
    assert spans(store, 10) == [(0.0, 1.0), (3.0, 6.0), (9.0, 10.0)]
    assert store.read == [10]


def test_moments_years_apart_are_found_exactly_with_few_reads() -> None:
    last = 20 * 365 * 1440
    store = store_with(7, last // 2, last)
    assert spans(store, last + 1) == [(minute, minute + 1.0) for minute in (7.0, last / 2, float(last))]
    assert len(store.read) == 4
    assert max(store.read) <= MOST_WINDOWS + 1


def test_a_long_span_is_not_looked_at_more_closely() -> None:
    store = store_with(*range(0, 200_000, 50))
    ((start, end),) = spans(store, 1_000_000)
    assert (start, len(store.read)) == (0.0, 1)
    assert 199_950 < end < 199_950 + 2 * 1_000_000 / MOST_WINDOWS
