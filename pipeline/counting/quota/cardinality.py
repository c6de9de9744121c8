"""Names in a partition of the log, by day and service, each with the offset that admitted it.

The log alone decides whether a name is admitted: it must be among the first names of its day, up to the
quota. So the names may be dropped and read again from the store at any time, even from rows that another
process wrote further along the log: reading the log again gives the same decisions. A name that was admitted
further along had been refused earlier, for lack of room, and is refused there again.
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
"""Days of a partition that stay in memory: today, the day of late data, and the day before that."""

_MOST_RECENT = 4096
_MOST_SPELLED = 20_000


def hash_name(name: str) -> int:
    """Return the 64-bit hash that stands for a name."""
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
        """The lowest offset of any name: the beginning of the day in the log."""
        self._spelled: set[str] = set()
        self._spelled_at = -1
        self.old = 0
        self.new = 0
        """Number of names that the day before had, and that it had not."""

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
        """Add a name that is not in the set."""
        self._recent[key] = offset
        self.first = offset if self.first is None else min(self.first, offset)
        if len(self._recent) > _MOST_RECENT:
            self._settle()

    def add_all(self, hashes: Sequence[int], offsets: Sequence[int]) -> None:
        """Add names; a name that is in the set already keeps the lower offset."""
        for key, offset in zip(hashes, offsets, strict=True):
            earlier = self.offset_of(key)
            if earlier is None or offset < earlier:
                self.add(key, offset)

    def spell(self, offsets: Mapping[str, int]) -> None:
        """Remember the text of names, up to a bound, with the offset at which each was admitted."""
        if len(self._spelled) > _MOST_SPELLED:
            self._spelled.clear()
        self._spelled.update(offsets)
        self._spelled_at = max(self._spelled_at, *offsets.values(), -1)

    def spelled(self, reach: float) -> set[str] | frozenset[str]:
        """Return some of the names that were admitted up to an offset, as a cheap first test."""
        return self._spelled if reach >= self._spelled_at else frozenset()

    def known_before(self, offset: int) -> NDArray[np.uint64]:
        """Return the names that were admitted before an offset, sorted."""
        self._settle()
        return self._hashes[self._offsets < offset]

    def compact(self) -> None:
        """Keep only the hash and offset of each name: 16 bytes."""
        self._settle()
        self._spelled, self._spelled_at = set(), -1

    def classify(self, before: NameSet) -> None:
        """Count the names that the day before had when this day began."""
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

    A day has to be loaded from its stored rows with ``learn`` before it is used.
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
        """Return for each name whether it is admitted on a day; new ones are noted at ``offset``.

        Names that were admitted up to the offset ``reach`` are admitted again. A name that the day before
        had is admitted if fewer than ``most`` such names of the service were. A name that it had not is
        admitted if fewer than ``most`` of those were, and fewer than ``most_in_all`` of all services.
        """
        today, before = self._day(day), self._day(day - DAY_S)
        names_today = self._classified(today, before, service)
        offsets: dict[str, int] = {}
        fresh: list[tuple[int, int]] = []
        for name in names:
            key = hash_name(name)
            since = names_today.offset_of(key)
            if since is None:
                begins = offset if names_today.first is None else min(names_today.first, offset)
                earlier = before.of(service).offset_of(key)
                if earlier is not None and earlier < begins:
                    room = names_today.old < most
                    names_today.old += room
                else:
                    room = names_today.new < most and today.new < most_in_all
                    names_today.new += room
                    today.new += room
                if room:
                    names_today.add(key, offset)
                    fresh.append((key, offset))
                    offsets[name] = offset
            elif since <= reach:
                offsets[name] = since
        names_today.spell(offsets)
        if fresh:
            self._unsaved.setdefault((service, day), []).extend(fresh)
        return [name in offsets for name in names]

    def first_seen(self, service: str, day: float, name: str) -> int | None:
        """Return the offset at which a name was admitted on a day; None if it was not."""
        return self._day(day).of(service).offset_of(hash_name(name))

    def note(self, service: str, day: float, name: str, offset: int) -> None:
        """Admit a name without a quota, unless it has been admitted."""
        admitted, key = self._day(day).of(service), hash_name(name)
        if admitted.offset_of(key) is None:
            admitted.add(key, offset)
            self._unsaved.setdefault((service, day), []).append((key, offset))

    def spelled(self, service: str, day: float, reach: float) -> set[str] | frozenset[str]:
        """Return some of the names that were admitted up to an offset."""
        return self._day(day).of(service).spelled(reach)

    def unsaved(self) -> Mapping[str, Sequence[Any]]:
        """Return the rows to store before messages with these decisions are counted."""
        items = list(self._unsaved.items())
        return {
            "log": [self.log] * len(items),
            "service": [service for (service, _), _ in items],
            "time": [day for (_, day), _ in items],
            "first": [min(offset for _, offset in fresh) for _, fresh in items],
            "hashes": [[key for key, _ in fresh] for _, fresh in items],
            "offsets": [[offset for _, offset in fresh] for _, fresh in items],
            # Two owners of a partition may begin at one offset and end at different ones: two rows.
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
        """Load the stored rows of ``names`` of a day."""
        for former in self._days.values():  # they are rarely used from now on
            for names in former.services.values():
                names.compact()
        learnt = _Day()
        for row in rows:
            learnt.of(row["service"]).add_all(row["hashes"], row["offsets"])
        self._days[day] = learnt

    def _day(self, day: float) -> _Day:
        names_of_day = self._days.pop(day)
        self._days[day] = names_of_day  # the most recently used day is dropped last
        return names_of_day

    def _classified(self, today: _Day, before: _Day, service: str) -> NameSet:
        names_of_service = today.of(service)
        if service not in today.classified:
            for name, name_set in today.services.items():  # all services: ``new`` counts their names together
                if name not in today.classified:
                    name_set.classify(before.of(name))
                    today.classified.add(name)
                    today.new += name_set.new
        return names_of_service
