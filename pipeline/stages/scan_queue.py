"""Scans that are due: of a service the oldest first, of several services that with the fewest so far.

A batch of progress need not wait until all of them are made: what is left of some services may rest while the
next batch is taken in, and goes on beside its scans. The messages that asked for it are held until then.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence

from pipeline.analysis.detect.schedule import DueScan

Position = tuple[int, int]
"""Partition and offset."""

MOST_HELD = 20_000
"""Messages of a partition that are held at most: then what is left is made before more is taken in."""


class ScanQueue:
    """What is due of the services of a batch, and of those that rest."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[DueScan]] = {}
        self._from: dict[str, Position] = {}  # the first message whose scans are not all made
        self._latest: dict[int, int] = {}  # offset taken in last, by partition
        self._resting: set[str] = set()
        self._asked: set[str] = set()
        self._made: Counter[str] = Counter()

    def clear(self) -> None:
        """Forget everything."""
        for held in (self._waiting, self._from, self._latest, self._resting, self._asked, self._made):
            held.clear()

    @property
    def unfinished(self) -> bool:
        """Whether there is something left of what was asked for."""
        return not self._asked.isdisjoint(self._waiting)

    @property
    def held(self) -> dict[int, int]:
        """By partition, the offset of the first message that is not done with."""
        found: dict[int, int] = {}
        for partition, offset in self._from.values():
            found[partition] = min(offset, found.get(partition, offset))
        return found

    def begin(
        self,
        due: Mapping[str, Sequence[DueScan]],
        first: Mapping[str, Position],
        latest: Mapping[int, int],
    ) -> None:
        """Take in what is due of the services of a new batch; what rests goes on.

        Args:
            due: All that is due of them.
            first: The first message of each of them in the batch.
            latest: Offset of the last message of each partition in the batch.
        """
        for service in [name for name in self._waiting if name not in self._resting]:
            self._drop(service)
        self._latest.update(latest)
        self._made.clear()
        for service, position in first.items():
            since = self._from.get(service, position)
            self._drop(service)
            if scans := due.get(service):
                self._waiting[service], self._from[service] = deque(scans), since

    def ask(self, services: Collection[str]) -> None:
        """Say of whose scans the next one is taken, besides those that rest."""
        self._asked = {*services, *self._resting}

    def next(self) -> tuple[str, DueScan]:
        """Return the scan to be made; the same until ``done`` or ``put_off``."""
        service = min((s for s in self._waiting if s in self._asked), key=lambda name: self._made[name])
        return service, self._waiting[service][0]

    def done(self, service: str) -> DueScan:
        """Go on after the oldest scan of a service, and return it."""
        due = self._waiting[service].popleft()
        self._made[service] += 1
        if not self._waiting[service]:
            self._drop(service)
        return due

    def is_resting(self, service: str) -> bool:
        """Return whether what is left of a service is of an earlier batch."""
        return service in self._resting

    def put_off(self, service: str) -> None:
        """Leave what rests of a service until its next message, which asks for it anew."""
        self._drop(service)

    def rest(self) -> bool:
        """Let what is left rest; False if too many messages would be held."""
        held = self.held
        if any(self._latest.get(p, offset) - offset >= MOST_HELD for p, offset in held.items()):
            return False
        self._resting.update(self._asked.intersection(self._waiting))
        self._asked.clear()
        return True

    def _drop(self, service: str) -> None:
        self._waiting.pop(service, None)
        self._from.pop(service, None)
        self._resting.discard(service)
