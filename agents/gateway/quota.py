"""Rates of a service or client: beyond a bound it has to wait."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

BURST_S = 60.0
"""Seconds of a rate that may be spent at once: agents send what they have gathered in one request."""

REMEMBERED = 10_000
"""Most names that are remembered; the one unused longest is forgotten, and begins anew."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Most that may come per second; 0 is no bound."""

    samples_per_s: float = 0.0
    bytes_per_s: float = 0.0


class TokenBuckets:
    """Spending of each name, in a token bucket of ``BURST_S`` seconds.

    A name that has not overdrawn may spend any amount at once, and then waits until that is paid back: else a
    message larger than the bucket would never pass.
    """

    def __init__(self, burst_s: float = BURST_S, remembered: int = REMEMBERED) -> None:
        self._burst_s = burst_s
        self._remembered = remembered
        self._free_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, name: str, now: float) -> float:
        """Return the seconds that a name has to wait before it may spend anything; 0: none."""
        return max(0.0, self._free_at.get(name, now) - now - self._burst_s)

    def spend(self, name: str, amount: float, rate: float, now: float) -> None:
        """Take an amount from the budget of a name whose rate is ``rate`` a second; 0 is no bound."""
        if not rate:
            return
        self._free_at[name] = max(self._free_at.get(name, now), now) + amount / rate
        self._free_at.move_to_end(name)
        while len(self._free_at) > self._remembered:
            self._free_at.popitem(last=False)
