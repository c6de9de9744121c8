"""Senders of profiles: their strata in the store, hosts that are usually late, clocks that are ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence

from pipeline.counting.lateness import HostLateness
from pipeline.messages.records import columns_of
from pipeline.model import Profile, Record, Stratum
from pipeline.model.units import DAY_S
from pipeline.storage.interface import Store

AHEAD_S = 60.0
"""Seconds by which a host's clock may be ahead of this one before it is counted."""

_MOST_DAYS = 10_000
"""Most pairs of service and day whose senders are remembered."""


class CountedHosts:
    """The hosts whose profiles one aggregate worker counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._described: dict[tuple[str, float], set[Stratum]] = {}  # by service and day: are in the store
        self._lateness = HostLateness()
        self._late: dict[tuple[str, int], int] = {}  # late hosts by service and partition

    def describe(self, records: Sequence[Record]) -> None:
        """Store the strata of the senders of profiles, once a day, before their counts are stored."""
        rows = []
        for record in records:
            if isinstance(profile := record.payload, Profile):
                described = self._described.setdefault((profile.service, profile.start // DAY_S), set())
                if (sender := profile.sender) not in described:
                    described.add(sender)
                    rows.append({**sender.row, "service": profile.service, "time": profile.start})
        if rows:
            self._store.insert("strata", columns_of(rows))
        while len(self._described) > _MOST_DAYS:
            del self._described[next(iter(self._described))]

    def note(
        self, records: Sequence[Record], now: float, limited: MutableMapping[str, Counter[str]]
    ) -> Mapping[tuple[str, int], float]:
        """Return the seconds that event time waits for late hosts, by service and partition.

        Args:
            records: Profiles as they came; others are left out.
            now: Epoch seconds.
            limited: Receives new counts of each service: hosts that are usually late, messages of clocks that
                are ahead.
        """
        for record in records:
            if isinstance(profile := record.payload, Profile):
                self._lateness.note(
                    profile.service, record.partition, profile.host, profile.start, profile.end
                )
                if profile.end > now + AHEAD_S:
                    limited.setdefault(profile.service, Counter())["clocks_ahead"] += 1
        waits = self._lateness.waits()
        for position, (_, late) in waits.items():
            if (more := late - self._late.get(position, 0)) > 0:
                limited.setdefault(position[0], Counter())["late_hosts"] += more
            self._late[position] = late
        return {position: wait_s for position, (wait_s, _) in waits.items()}

    def forget(self, partitions: Sequence[int]) -> None:
        """Forget the hosts of partitions, which another process may have continued."""
        self._lateness.forget(set(partitions))
        for position in [entry for entry in self._late if entry[1] in partitions]:
            del self._late[position]
