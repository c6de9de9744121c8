"""The changes that were deployed to a service in the last weeks before a scan's end."""

from __future__ import annotations

from dataclasses import fields

from pipeline.messages.inputs import change_from_row
from pipeline.model import Change, Scan
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import RELEASE_COSTS
from pipeline.storage.interface import Store

HISTORY_S = 30 * DAY_S
"""How far back changes are read: for the code behind a gate, and for what the service's texts are like."""

_WITHOUT_ROUTES = tuple(each.name for each in fields(Change) if each.name != "routes")


def recent_changes(store: Store, scan: Scan) -> tuple[Change, ...]:
    """Return every announcement of a change to a scan's service, oldest first, diffs included.

    Routes are read for requests that cost more alone: they are as large as diffs, and nothing else asks.

    Raises:
        StoreUnavailable: the same call is to be repeated.
    """
    columns = () if scan.workload == RELEASE_COSTS.name else _WITHOUT_ROUTES
    rows = store.rows("changes", scan.service, scan.end - HISTORY_S, scan.end, columns=columns)
    return tuple(change_from_row(row) for row in rows)
