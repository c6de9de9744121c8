"""Replicas of Prometheus that send the same series: of each cluster, one is taken at a time.

The labels are those of Cortex and Mimir: two servers of one ``cluster`` scrape the same targets, and
differ in ``__replica__``.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.metrics.reading import Labels, SeriesReading

CLUSTER = "cluster"
REPLICA = "__replica__"

FAILOVER_S = 30.0
"""Seconds without the present replica after which another one is taken."""

MOST_CLUSTERS = 10_000


@dataclass(slots=True)
class _Elected:
    replica: str
    seen: float  # by the clock


class Replicas:
    """The replica that is taken of each client's clusters. ``counts`` has the readings that were left out."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._elected: OrderedDict[tuple[str, str], _Elected] = OrderedDict()  # the latest seen last

    def admit(self, readings: Sequence[SeriesReading], client: str, now: float) -> Sequence[SeriesReading]:
        """Return the readings of a request that are taken, without the label of replicas.

        Series without one of the labels are taken as they are.

        Args:
            readings: Of one request.
            client: Sender of the request: clusters of the same name of two clients are different.
            now: Epoch seconds.
        """
        admitted, decided = [], dict[tuple[str, str], bool]()
        for reading in readings:
            cluster, replica = _labels_of(reading.labels)
            if not cluster or not replica:
                admitted.append(reading)
                continue
            if (cluster, replica) not in decided:
                decided[cluster, replica] = self._is_elected((client, cluster), replica, now)
            if decided[cluster, replica]:
                admitted.append(
                    replace(reading, labels=tuple(label for label in reading.labels if label[0] != REPLICA))
                )
            else:
                self.counts["replica"] += 1
        return admitted

    def _is_elected(self, key: tuple[str, str], replica: str, now: float) -> bool:
        elected = self._elected.get(key)
        if elected is None or (elected.replica != replica and now - elected.seen > FAILOVER_S):
            elected = self._elected[key] = _Elected(replica, now)
        if elected.replica != replica:
            return False
        elected.seen = now
        self._elected.move_to_end(key)
        while len(self._elected) > MOST_CLUSTERS:
            self._elected.popitem(last=False)
        return True


def _labels_of(labels: Labels) -> tuple[str, str]:
    """Return cluster and replica of a series, empty where it has no such label."""
    cluster = replica = ""
    for name, value in labels:
        if name == CLUSTER:
            cluster = value
        elif name == REPLICA:
            replica = value
    return cluster, replica
