"""Counts of the benchmark of storage, on the real store."""

from __future__ import annotations

from loadgen.bench.storage import CASES, measure_storage


def test_what_is_known_of_senders_takes_rows_and_leaves_series_as_they_are() -> None:
    advanced: list[int] = []
    results = measure_storage(lambda: advanced.append(1), hours=0.02)
    assert len(advanced) == len(results) == len(CASES)
    unknown, some, many = (result.figures for result in results)
    assert unknown["rows/scan"] == some["rows/scan"] == many["rows/scan"] > 0
    assert unknown["rows/scan of senders"] < some["rows/scan of senders"] < many["rows/scan of senders"]
    for figures in (unknown, some, many):
        assert 0 < figures["bytes/sample of senders"] < figures["bytes/sample"]
