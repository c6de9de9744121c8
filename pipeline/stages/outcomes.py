"""Outcomes of scans: each stage decides on a scan once, and a scan that comes again has that outcome.

A scan comes again after a crash, from two owners of a partition, or from a detector that was killed before it
noted the scan. What a stage would decide by then may be something else: a change was announced meanwhile,
samples came late. Without a record one regression would be reported as two, or a later scan would be compared
with something that was never published.
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
    """What one stage made of each scan, by service, workload and end of the scan.

    Of two workers that decide on one scan at a time, one is first: the store takes one insert of a scan, and
    both go on with what is there then.
    """

    def __init__(self, store: Store, stage: str) -> None:
        self._store = store
        self._stage = stage

    def of(self, scan: Scan, decide: Callable[[], ScanOutcome]) -> ScanOutcome:
        """Return the outcome of a scan: the one that is kept, else what ``decide`` returns, which is kept.

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
        whose = {"stage": self._stage, "workload": scan.workload, "attempt": attempt}
        return self._store.rows(
            RowQuery("outcomes", scan.service, scan.end, scan.end + _INSTANT_S, equal=whose)
        )
