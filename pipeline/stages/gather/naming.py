"""From when on services are counted by which version of names, as the store has it."""

from __future__ import annotations

from pipeline.messages.fields import EARLIEST_S, LATEST_S
from pipeline.storage.interface import Store


def is_noted(store: Store, service: str, version: str) -> bool:
    """Return whether a version of names is noted as the latest by which a service is counted."""
    rows = store.rows("naming", service, EARLIEST_S, LATEST_S)
    return bool(rows) and rows[-1]["version"] == version


def was_counted(store: Store, stream: str, service: str) -> bool:
    """Return whether anything was counted or scanned of a service before."""
    return bool(store.extents("totals", stream, service)) or bool(
        store.rows("scans", service, EARLIEST_S, LATEST_S)
    )
