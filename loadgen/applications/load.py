"""Requests of clients in each period: drivers with their own mixes, whose users come and go (§6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray

OLD_DRIVERS = 4
NEW_DRIVERS = 5
"""The new release has one driver whose mix the old one never saw."""

STAYS = 8
"""Mean number of periods for which a driver's number of users stays the same."""


@dataclass(frozen=True, slots=True)
class Drivers:
    """Mixes of requests.

    Args:
        keys: Keys of the requests.
        mixes: (drivers, keys) shares.
        rate: Mean number of requests in a period.
    """

    keys: tuple[str, ...]
    mixes: FloatArray
    rate: float

    @classmethod
    def drawn(cls, keys: Sequence[str], rate: float, rng: np.random.Generator) -> Drivers:
        """Draw mixes; in each mix a few requests are more frequent."""
        return cls(tuple(keys), rng.dirichlet(np.ones(len(keys)), NEW_DRIVERS), rate)

    def periods(self, drivers: int, periods: int, rng: np.random.Generator) -> list[list[str]]:
        """Return the keys of each period's requests, in random order.

        Args:
            drivers: Number of drivers, the first ones, that run together.
            periods: Number of periods.
            rng: Draws users, numbers of requests and their order.
        """
        users = np.ones((periods, drivers))
        for driver in range(drivers):
            for period in range(periods):
                changes = period == 0 or rng.random() < 1.0 / STAYS
                users[period, driver] = rng.gamma(2.0) if changes else users[period - 1, driver]
        means = self.rate * users / 2.0 / drivers @ self.mixes[:drivers]
        sequences = []
        for counts in rng.poisson(means):
            keys = np.repeat(np.asarray(self.keys, dtype=object), counts)
            rng.shuffle(keys)
            sequences.append(list(keys))
        return sequences
