"""Records for which the store refuses what a stage asks, though it answers: how often each is tried.

A service can outgrow the memory or the time that a query may take. Its record would stop its partition, and
all services in it, for as long as nobody comes. So it is left out after some tries, and is a dead letter. If
most services are refused, the fault is the store's, and the stage stops rather than drain its topic.
"""

from __future__ import annotations

from collections.abc import Iterable

TRIES = 5
"""How often a record is tried of a service of which none was left out before; of others it is once."""

FIRST_WAIT = 25.0
"""The first wait after the store refused, in first waits of other retries: what it refuses seldom passes."""

MOST_SERVICES = 10_000
"""Services that are remembered; those heard longest ago go first."""


class Omissions:
    """Which services' records were left out last, and which were handled.

    Args:
        share: Of the services heard, how many may be refused.
        least: How many refused services it takes to stop.
    """

    def __init__(self, share: float, least: int = 3) -> None:
        self._share = share
        self._least = least
        self._refused: dict[str, bool] = {}  # by service, the one heard longest ago first

    def tries(self, service: str) -> int:
        """Return how often a record of a service is tried."""
        return 1 if self._refused.get(service) else TRIES

    def handled(self, services: Iterable[str]) -> None:
        """Note that records of these services were handled."""
        for service in services:
            self._note(service, refused=False)

    def left_out(self, service: str) -> str:
        """Note a record that was left out; return why the stage has to stop, empty if it has not."""
        self._note(service, refused=True)
        refused = [name for name, is_refused in self._refused.items() if is_refused]
        if len(refused) < self._least or len(refused) <= self._share * len(self._refused):
            return ""
        few = ", ".join(refused[:3]) + (", …" if len(refused) > 3 else "")
        return f"the store refuses what {len(refused)} of {len(self._refused)} services ({few}) take"

    def _note(self, service: str, *, refused: bool) -> None:
        self._refused.pop(service, None)
        self._refused[service] = refused
        while len(self._refused) > MOST_SERVICES:
            del self._refused[next(iter(self._refused))]
