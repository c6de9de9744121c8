"""Records whose queries the store refuses: the number of tries, and the limit at which the stage stops.

A service can outgrow the memory or the time of a query. Its record would stop its partition, with all
services in it, until somebody intervenes. So after some tries the record becomes a dead letter. If most
services are refused, the store is at fault, and the stage stops instead of draining its topic.
"""

from __future__ import annotations

from collections.abc import Iterable

TRIES = 5
"""Tries of a record of a service without omissions so far; records of other services have one."""

FIRST_WAIT = 25.0
"""First wait after a refusal, in multiples of other retries' first wait: refusals seldom pass."""

MOST_SERVICES = 10_000
"""Most services that are remembered; those heard longest ago are dropped first."""


class Omissions:
    """Services by whether their last record was left out or handled.

    Args:
        share: Share of the services heard that may be refused.
        least: Least number of refused services for the stage to stop.
    """

    def __init__(self, share: float, least: int = 3) -> None:
        self._share = share
        self._least = least
        self._refused: dict[str, bool] = {}  # by service, the one heard longest ago first

    def tries(self, service: str) -> int:
        """Return the number of tries of a record of a service."""
        return 1 if self._refused.get(service) else TRIES

    def handled(self, services: Iterable[str]) -> None:
        """Note that records of these services were handled."""
        for service in services:
            self._note(service, refused=False)

    def left_out(self, service: str) -> str:
        """Note a record that was left out; return the reason for the stage to stop, or ""."""
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
