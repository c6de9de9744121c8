"""Hosts that are usually late, and the time that scans wait for them."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

RECENT = 5
"""Messages of a host that determine its usual lateness: scans do not wait for a host that was late once."""

MOST_S = 1800.0
"""Longest that scans wait. Whoever is later still is missing where they look, and is left out of both sides
there: a scan holds series at the mix of those who have sent."""

_MOST_HOSTS = 100_000


@dataclass(slots=True)
class _Host:
    end: float = 0.0  # of its latest message
    behind: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))


class HostLateness:
    """Lateness of each host's messages relative to others of their service, by partition.

    Lateness is measured in event time, against earlier messages in the log, so that reading a backlog makes
    no host late. A host whose clock is behind looks the same and is treated the same.
    """

    def __init__(self, most_s: float = MOST_S) -> None:
        self._most_s = most_s
        self._latest: dict[tuple[str, int], float] = {}  # by service and partition
        self._hosts: OrderedDict[tuple[str, int, str], _Host] = OrderedDict()
        self._known: Counter[tuple[str, int]] = Counter()  # hosts of each position

    def note(self, service: str, partition: int, host: str, start: float, end: float) -> None:
        """Note a host's message of an interval."""
        position = (service, partition)
        latest = self._latest[position] = max(self._latest.get(position, end), end)
        key = (*position, host)
        host_state = self._hosts.pop(key, None)
        if host_state is None:
            host_state = _Host()
            self._known[position] += 1
        self._hosts[key] = host_state
        host_state.end = max(host_state.end, end)
        # Up to an interval is due to the order in which hosts send, and is no lateness.
        host_state.behind.append(max(latest - end - (end - start), 0.0))
        while len(self._hosts) > _MOST_HOSTS:
            (name, number, _), _ = self._hosts.popitem(last=False)
            self._drop((name, number))

    def _drop(self, position: tuple[str, int]) -> None:
        self._known[position] -= 1
        if not self._known[position]:
            del self._known[position], self._latest[position]

    def forget(self, partitions: set[int]) -> None:
        """Forget the hosts of partitions, which another process may have continued."""
        for position in [entry for entry in self._latest if entry[1] in partitions]:
            del self._latest[position], self._known[position]
        for key in [entry for entry in self._hosts if entry[1] in partitions]:
            del self._hosts[key]

    def waits(self) -> dict[tuple[str, int], tuple[float, int]]:
        """Return the seconds that event time waits and the number of late hosts, by service and partition.

        It does not wait for hosts beyond the bound, nor for silent ones.
        """
        by_position: dict[tuple[str, int], tuple[float, int]] = {}
        for (service, partition, _), host in self._hosts.items():
            habit = min(host.behind) if len(host.behind) == RECENT else 0.0
            if habit <= 0:
                continue
            position = (service, partition)
            wait_s, late = by_position.get(position, (0.0, 0))
            awaited = habit <= self._most_s and self._latest[position] - host.end <= 2 * self._most_s
            by_position[position] = (max(wait_s, habit) if awaited else wait_s, late + 1)
        return by_position
