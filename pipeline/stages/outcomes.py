"""Outcomes of scans: each stage decides on a scan once, and a repeated scan has the same outcome.

A scan is repeated after a crash, by two owners of a partition, or by a detector that was killed before it
noted the scan. A second decision could differ, because of a newly announced change or late samples. Without
a record, one regression could be reported as two, or later scans be compared with unpublished candidates.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

from pipeline.messages.outcomes import (
    Mark,
    ScanOutcome,
    mark_of,
    outcome_columns,
    outcome_of,
    outcome_pieces,
    pieces_of,
)
from pipeline.model import Scan
from pipeline.model.clock import to_iso
from pipeline.storage.interface import RowQuery, Store, Table

log = logging.getLogger(__name__)

_INSTANT_S = 0.001
"""The store's times have milliseconds."""


class Outcomes:
    """Outcomes of one stage, by service, workload and end of the scan.

    If two workers decide on one scan at the same time, the store accepts the first insert, and both continue
    with that outcome.
    """

    def __init__(self, store: Store, stage: str) -> None:
        self._store = store
        self._stage = stage

    def of(self, scan: Scan, decide: Callable[[], ScanOutcome]) -> ScanOutcome:
        """Return the stored outcome of a scan, or else that of ``decide``, which is then stored.

        Raises:
            StoreUnavailable: the same call is to be repeated.
        """
        if mark := self._mark(scan):
            return self._kept(scan, mark) or decide()
        outcome = decide()
        mine = self._keep(scan, outcome)
        first = self._mark(scan)
        if first is None:  # the store knows the token, and the rows are gone
            self._keep(scan, outcome, anew=True)
            first = self._mark(scan)
        return outcome if first in (None, mine) else self._kept(scan, first) or outcome

    def write(self, outcome: ScanOutcome) -> None:
        """Insert an outcome's rows; repeating it changes nothing.

        Raises:
            StoreUnavailable: the same call is to be repeated.
        """
        for table, columns in outcome.rows:
            self._store.insert(cast("Table", table), columns)

    def _mark(self, scan: Scan) -> Mark | None:
        rows = self._rows(scan, "")
        return mark_of(rows[0]) if rows else None

    def _kept(self, scan: Scan, mark: Mark) -> ScanOutcome | None:
        pieces = pieces_of(self._rows(scan, mark.attempt)) if mark.pieces else []
        if len(pieces) == mark.pieces:
            return outcome_of(scan, pieces)
        log.warning(
            "service=%s workload=%s end=%s: %d of %d pieces of its outcome are there; decided again",
            scan.service,
            scan.workload,
            to_iso(scan.end),
            len(pieces),
            mark.pieces,
        )
        return None

    def _keep(self, scan: Scan, outcome: ScanOutcome, *, anew: bool = False) -> Mark:
        """Store an outcome unless there is one; return its mark."""
        pieces = outcome_pieces(outcome)
        *before, last = outcome_columns(self._stage, scan, pieces)
        mark = Mark(last["name"][-1], len(pieces))
        for columns in before:
            self._store.insert("outcomes", columns)
        token = f"{self._stage}/{scan.workload}/{scan.end!r}/{scan.service}"
        self._store.insert("outcomes", last, token="" if anew else token)
        return mark

    def _rows(self, scan: Scan, attempt: str) -> list[dict[str, object]]:
        equal = {"stage": self._stage, "workload": scan.workload, "attempt": attempt}
        return self._store.rows(
            RowQuery("outcomes", scan.service, scan.end, scan.end + _INSTANT_S, equal=equal)
        )
