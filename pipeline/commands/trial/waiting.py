"""Wait for the verdict that a judge publishes."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import orjson

from pipeline.settings.config import Settings
from pipeline.storage.connect import open_store
from pipeline.storage.interface import RowQuery

POLL_S = 0.5


def await_verdict(settings: Settings, service: str, experiment: str, wait_s: float) -> dict[str, Any] | None:
    """Return the latest verdict on an experiment as its event; None if none comes within ``wait_s`` seconds.

    Raises:
        ConfigError: the store is not there, or refuses us.
        StoreUnavailable: it does not answer.
    """
    deadline = time.monotonic() + wait_s
    with closing(open_store(settings.store, existing=True)) as store:
        while True:
            rows = store.rows(RowQuery("trial_verdicts", service, equal={"experiment": experiment}))
            if rows:
                latest = max(rows, key=lambda row: (row["revision"], row["time"]))
                event: dict[str, Any] = orjson.loads(latest["event"])
                return event
            if time.monotonic() >= deadline:
                return None
            time.sleep(POLL_S)
