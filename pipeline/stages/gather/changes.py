"""Changes deployed to a service in the last weeks before a scan's end, and their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from pipeline.analysis.rootcause import NO_WORDS, ChangeTexts, Words, change_words, compact
from pipeline.messages.inputs import change_from_row
from pipeline.model import Change, Scan
from pipeline.model.units import DAY_S
from pipeline.settings.workloads import RELEASE_COSTS
from pipeline.storage.interface import RowQuery, Store

HISTORY_S = 30 * DAY_S
"""Seconds back to which changes are read: for the code behind a gate, and for the service's usual words."""

_WITHOUT_ROUTES = tuple(each.name for each in fields(Change) if each.name != "routes")


def recent_changes(store: Store, scan: Scan) -> tuple[Change, ...]:
    """Return every announcement of a change to a scan's service, oldest first, diffs included.

    Routes are read only for requests that cost more: they are as large as diffs, and used for nothing else.

    Raises:
        StoreUnavailable: the same call is to be repeated.
    """
    columns = () if scan.workload == RELEASE_COSTS.name else _WITHOUT_ROUTES
    rows = store.rows(RowQuery("changes", scan.service, scan.end - HISTORY_S, scan.end, columns=columns))
    return tuple(change_from_row(row) for row in rows)


MOST_WORDS = 8_000_000
"""Most words of one service's changes that are compared: some 3,500 diffs of 10 KB. What is older
than the newest changes with so many is taken to have no words."""

MOST_KEPT = 2 * MOST_WORDS
"""Most words that are kept of all services: 160 MB. The services that were asked for least recently go first,
and are read again when they are asked for again."""

_OVERHEAD = 40
"""Memory of one change besides its words, in words."""


class ChangeWords:
    """The words of services' changes; each change is read once while it is in its service's history."""

    def __init__(self, *, most_words: int = MOST_WORDS, most_kept: int = MOST_KEPT) -> None:
        self._most_words, self._most_kept = most_words, most_kept
        self._known: dict[str, dict[tuple[str, float], Words]] = {}  # the service asked for last is last
        self._sizes: dict[str, int] = {}

    @property
    def kept(self) -> int:
        """Words in memory; each change counts for 40 besides its own."""
        return sum(self._sizes.values())

    def texts(self, service: str, history: Sequence[Change]) -> ChangeTexts:
        """Return the texts of a service's changes (oldest first), in their order."""
        former = self._known.pop(service, {})
        words: dict[tuple[str, float], Words] = {}
        left = self._most_words
        for change in reversed(history):
            key = (change.id, change.time)
            own_words = former.get(key) or compact(change_words(change))
            left -= len(own_words) + _OVERHEAD
            if left < 0:
                break
            words[key] = own_words
        self._keep(service, words)
        return ChangeTexts([words.get((change.id, change.time), NO_WORDS) for change in history])

    def _keep(self, service: str, words: dict[tuple[str, float], Words]) -> None:
        self._known[service] = words
        self._sizes[service] = sum(len(own_words) + _OVERHEAD for own_words in words.values())
        while self.kept > self._most_kept:
            oldest = next(iter(self._known))
            del self._known[oldest], self._sizes[oldest]
