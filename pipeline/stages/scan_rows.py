"""Rows that are kept of a scan: that it was made, and what it could not judge."""

from __future__ import annotations

from pipeline.messages.records import columns_of, plain
from pipeline.model import Scan
from pipeline.storage.interface import Store


def insert_scan(store: Store, scan: Scan, unstable_names: int = 0) -> None:
    """Keep that a scan was made, how much it found, and what it could not judge, by reason.

    Raises:
        StoreUnavailable: the same call is to be repeated.
    """
    whose = {"service": scan.service, "workload": scan.workload, "time": scan.end}
    if scan.unjudged:
        store.insert("unjudged", columns_of({**whose, **plain(reason)} for reason in scan.unjudged))
    counts = {"series": scan.series, "candidates": len(scan.candidates), "unstable_names": unstable_names}
    store.insert("scans", columns_of([{**whose, **counts}]))
