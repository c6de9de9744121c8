"""Which names a partition of the log has brought, by day and service, and at which offset first.

A name is admitted or not by the log alone: whether it is among the first so many of its day. So what is
known can be thrown away and read again from the store at any time, even from rows that another process
wrote further along the log: whoever goes through the log again comes to the same decisions. A name that was
admitted further along had been refused before, since there was no room, and is refused there again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from pipeline.model import IntArray
from pipeline.model.units import DAY_S

MAX_DAYS = 3
"""Most days of a partition that are kept at hand: today, what comes late, and the day before that."""

_MOST_RECENT = 4096
_MOST_SPELLED = 20_000


def hash_name(name: str) -> int:
    """Return the 64-bit hash by which a name is known."""
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


def _digest(fresh: Sequence[tuple[int, int]]) -> int:
    return xxhash.xxh3_64_intdigest(np.asarray(fresh, dtype=np.uint64).tobytes())


class NameSet:
    """The names of one service and day in one partition, by their hashes."""

    def __init__(self) -> None:
        self._hashes: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)  # sorted
        self._offsets: IntArray = np.empty(0, dtype=np.int64)
        self._recent: dict[int, int] = {}
        self.first: int | None = None
        """The lowest offset of any name: where the day begins in the log."""
        self._spelled: set[str] = set()
        self._spelled_at = -1
        self.old = 0
        self.new = 0
        """How many were known the day before, and how many were not."""

    def __len__(self) -> int:
        return len(self._hashes) + len(self._recent)

    def offset_of(self, key: int) -> int | None:
        """Return the offset at which a name was admitted; None if it was not."""
        if key in self._recent:
            return self._recent[key]
        position = int(np.searchsorted(self._hashes, np.uint64(key)))
        if position < len(self._hashes) and int(self._hashes[position]) == key:
            return int(self._offsets[position])
        return None

    def add(self, key: int, offset: int) -> None:
        """Add a name that is not there yet."""
        self._recent[key] = offset
        self.first = offset if self.first is None else min(self.first, offset)
        if len(self._recent) > _MOST_RECENT:
            self._settle()

    def add_all(self, hashes: Sequence[int], offsets: Sequence[int]) -> None:
        """Add many; of one that is there already the lower offset counts."""
        for key, offset in zip(hashes, offsets, strict=True):
            known = self.offset_of(key)
            if known is None or offset < known:
                self.add(key, offset)

    def spell(self, offsets: Mapping[str, int]) -> None:
        """Remember, within bounds, how names are spelt, by the offset at which each was admitted."""
        if len(self._spelled) > _MOST_SPELLED:
            self._spelled.clear()
        self._spelled.update(offsets)
        self._spelled_at = max(self._spelled_at, *offsets.values(), -1)

    def spelled(self, reach: float) -> set[str] | frozenset[str]:
        """Return some names that were admitted up to an offset, for a quick look."""
        return self._spelled if reach >= self._spelled_at else frozenset()

    def known_before(self, offset: int) -> NDArray[np.uint64]:
        """Return the names that were admitted before an offset, sorted."""
        self._settle()
        return self._hashes[self._offsets < offset]

    def compact(self) -> None:
        """Keep no more than what says of each name whether and when it was admitted: 16 bytes."""
        self._settle()
        self._spelled, self._spelled_at = set(), -1

    def classify(self, before: NameSet) -> None:
        """Count how many of the names the day before knew when this day began."""
        self._settle()
        if self.first is not None:
            self.old = int(np.isin(self._hashes, before.known_before(self.first)).sum())
        self.new = len(self) - self.old

    def _settle(self) -> None:
        if not self._recent:
            return
        hashes = np.concatenate([np.fromiter(self._recent, np.uint64, len(self._recent)), self._hashes])
        offsets = np.concatenate([np.fromiter(self._recent.values(), np.int64), self._offsets])
        self._hashes, chosen = np.unique(hashes, return_index=True)  # the first of equals: the recent one
        self._offsets = offsets[chosen]
        self._recent = {}


@dataclass(slots=True)
class _Day:
    """All services of one partition and day."""

    services: dict[str, NameSet] = field(default_factory=dict)
    classified: set[str] = field(default_factory=set)
    new: int = 0  # names of all services that were not known the day before

    def of(self, service: str) -> NameSet:
        return self.services.setdefault(service, NameSet())


class KnownNames:
    """The names of one partition of the log, by day.

    A day has to be learnt, from the rows that the store holds of it, before anything is asked of it.
    """

    def __init__(self, log: str) -> None:
        self.log = log
        self._days: dict[float, _Day] = {}
        self._unsaved: dict[tuple[str, float], list[tuple[int, int]]] = {}

    def admit(
        self,
        service: str,
        day: float,
        names: Sequence[str],
        offset: int,
        reach: float,
        *,
        most: int,
        most_in_all: int,
    ) -> list[bool]:
        """Say which names the service may bring on a day, in their order; those become known at ``offset``.

        Those that were admitted up to the offset ``reach`` may come. Of others, ``most`` names that were
        not known the day before, while there are not ``most_in_all`` of all services, and ``most`` of those
        that were.
        """
        today, before = self._day(day), self._day(day - DAY_S)
        known = self._classified(today, before, service)
        offsets: dict[str, int] = {}
        fresh: list[tuple[int, int]] = []
        for name in names:
            key = hash_name(name)
            since = known.offset_of(key)
            if since is None:
                begins = offset if known.first is None else min(known.first, offset)
                earlier = before.of(service).offset_of(key)
                if earlier is not None and earlier < begins:
                    room = known.old < most
                    known.old += room
                else:
                    room = known.new < most and today.new < most_in_all
                    known.new += room
                    today.new += room
                if room:
                    known.add(key, offset)
                    fresh.append((key, offset))
                    offsets[name] = offset
            elif since <= reach:
                offsets[name] = since
        known.spell(offsets)
        if fresh:
            self._unsaved.setdefault((service, day), []).extend(fresh)
        return [name in offsets for name in names]

    def first_seen(self, service: str, day: float, name: str) -> int | None:
        """Return the offset at which a name was admitted on a day; None if it was not."""
        return self._day(day).of(service).offset_of(hash_name(name))

    def note(self, service: str, day: float, name: str, offset: int) -> None:
        """Admit a name, unless it has been, whatever else there is."""
        known, key = self._day(day).of(service), hash_name(name)
        if known.offset_of(key) is None:
            known.add(key, offset)
            self._unsaved.setdefault((service, day), []).append((key, offset))

    def spelled(self, service: str, day: float, reach: float) -> set[str] | frozenset[str]:
        """Return some of the names that were admitted up to an offset."""
        return self._day(day).of(service).spelled(reach)

    def unsaved(self) -> Mapping[str, Sequence[Any]]:
        """Return the rows that the store has to hold before anything is counted by these decisions."""
        items = list(self._unsaved.items())
        return {
            "log": [self.log] * len(items),
            "service": [service for (service, _), _ in items],
            "time": [day for (_, day), _ in items],
            "first": [min(offset for _, offset in fresh) for _, fresh in items],
            "hashes": [[key for key, _ in fresh] for _, fresh in items],
            "offsets": [[offset for _, offset in fresh] for _, fresh in items],
            # Two owners of a partition begin at one offset and get differently far: their rows are two.
            "digest": [_digest(fresh) for _, fresh in items],
        }

    def saved(self) -> None:
        """Note that the rows are in the store."""
        self._unsaved = {}
        while len(self._days) > MAX_DAYS:
            del self._days[next(iter(self._days))]

    def missing(self, days: Iterable[float]) -> list[float]:
        """Return the days that have not been learnt, in order."""
        return sorted({day for day in days if day not in self._days})

    def learn(self, day: float, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take over the rows of ``names`` that the store holds of a day."""
        for former in self._days.values():  # they are hardly asked for any more
            for names in former.services.values():
                names.compact()
        learnt = _Day()
        for row in rows:
            learnt.of(row["service"]).add_all(row["hashes"], row["offsets"])
        self._days[day] = learnt

    def _day(self, day: float) -> _Day:
        known = self._days.pop(day)
        self._days[day] = known  # the last one used is the last to go
        return known

    def _classified(self, today: _Day, before: _Day, service: str) -> NameSet:
        known = today.of(service)
        if service not in today.classified:
            for name, other in today.services.items():  # all at once: ``new`` is of all services
                if name not in today.classified:
                    other.classify(before.of(name))
                    today.classified.add(name)
                    today.new += other.new
        return known
