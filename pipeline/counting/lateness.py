"""Hosts that are late by habit: by how much event time waits for them."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

RECENT = 5
"""Messages of a host that say what is its habit: one that was late once is not waited for."""

MOST_S = 1800.0
"""Longest that scans wait. Whoever is later still is missing where they look, and is left out of both sides
there: a scan holds series at the mix of those who have sent."""

_MOST_HOSTS = 100_000


@dataclass(slots=True)
class _Host:
    end: float = 0.0  # of its latest message
    behind: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))


class HostLateness:
    """By how much each host's messages come behind the others of their service, partition by partition.

    Behind is measured in event time, by what has come before in the log, so that reading a backlog makes
    nobody late. A host whose clock is behind looks the same, and is waited for the same.
    """

    def __init__(self, most_s: float = MOST_S) -> None:
        self._most_s = most_s
        self._latest: dict[tuple[str, int], float] = {}  # by service and partition
        self._hosts: OrderedDict[tuple[str, int, str], _Host] = OrderedDict()
        self._known: Counter[tuple[str, int]] = Counter()  # hosts of each position

    def note(self, service: str, partition: int, host: str, start: float, end: float) -> None:
        """Take in that a host's message of an interval has come."""
        position = (service, partition)
        latest = self._latest[position] = max(self._latest.get(position, end), end)
        key = (*position, host)
        known = self._hosts.pop(key, None)
        if known is None:
            known = _Host()
            self._known[position] += 1
        self._hosts[key] = known
        known.end = max(known.end, end)
        # Up to an interval is the order in which hosts send, no lateness.
        known.behind.append(max(latest - end - (end - start), 0.0))
        while len(self._hosts) > _MOST_HOSTS:
            (name, number, _), _ = self._hosts.popitem(last=False)
            self._drop((name, number))

    def _drop(self, position: tuple[str, int]) -> None:
        self._known[position] -= 1
        if not self._known[position]:
            del self._known[position], self._latest[position]

    def forget(self, partitions: set[int]) -> None:
        """Forget what is known of partitions, which another process may have gone on with."""
        for position in [one for one in self._latest if one[1] in partitions]:
            del self._latest[position], self._known[position]
        for key in [one for one in self._hosts if one[1] in partitions]:
            del self._hosts[key]

    def waits(self) -> dict[tuple[str, int], tuple[float, int]]:
        """Return how long event time waits and how many hosts are late, by service and partition.

        Hosts beyond the bound, and those that have fallen silent, are not waited for.
        """
        found: dict[tuple[str, int], tuple[float, int]] = {}
        for (service, partition, _), host in self._hosts.items():
            habit = min(host.behind) if len(host.behind) == RECENT else 0.0
            if habit <= 0:
                continue
            position = (service, partition)
            wait_s, late = found.get(position, (0.0, 0))
            awaited = habit <= self._most_s and self._latest[position] - host.end <= 2 * self._most_s
            found[position] = (max(wait_s, habit) if awaited else wait_s, late + 1)
        return found
