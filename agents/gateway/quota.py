"""Rates that a service or client keeps to: over a bound it waits."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

BURST_S = 60.0
"""A rate may be spent this long in advance: agents send what they have gathered at once."""

REMEMBERED = 10_000
"""How many names are remembered; the one that was quiet longest is forgotten, and begins anew."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Most that may come in a second; 0 is no bound."""

    samples_per_s: float = 0.0
    bytes_per_s: float = 0.0


class Budget:
    """What names have spent of their rate: a bucket of ``BURST_S`` seconds each.

    Who has not overdrawn may spend any amount at once, and waits until that is paid back: else a message
    larger than the bucket would never pass.
    """

    def __init__(self, burst_s: float = BURST_S, remembered: int = REMEMBERED) -> None:
        self._burst_s = burst_s
        self._remembered = remembered
        self._free_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, name: str, now: float) -> float:
        """Return how long the name has to wait before it may spend anything; 0: it may now."""
        return max(0.0, self._free_at.get(name, now) - now - self._burst_s)

    def spend(self, name: str, amount: float, rate: float, now: float) -> None:
        """Take an amount from the budget of a name whose rate is ``rate`` a second; 0 is no bound."""
        if not rate:
            return
        self._free_at[name] = max(self._free_at.get(name, now), now) + amount / rate
        self._free_at.move_to_end(name)
        while len(self._free_at) > self._remembered:
            self._free_at.popitem(last=False)
