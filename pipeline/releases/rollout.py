"""A new release of a service beside the one before: which requests each got, period by period."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray, RequestPeriods
from pipeline.releases.periods import FEWEST_PERIODS

MOST_FOREIGN = 0.01
"""Share of a period's requests that other releases may get, and that is too few to count for the new one."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Periods in which the old release ran, the new one, or both side by side, and no others.

    Args:
        old: Name of the release before.
        new: Name of the new one.
        begun: Start of the first period in which the new one got requests, epoch seconds.
        width_s: Length of a period.
        starts: (periods,) epoch seconds, ascending.
        types: (types,) of requests.
        counts: (periods, types) requests of both.
        own: (periods, types) those of them that the new release got.
    """

    old: str
    new: str
    begun: float
    width_s: float
    starts: FloatArray
    types: tuple[str, ...]
    counts: FloatArray
    own: FloatArray

    @property
    def has_new(self) -> BoolArray:
        """In which periods the new release got requests: (periods,)."""
        return np.asarray(self.own.any(axis=1))

    def since(self, start: float) -> Rollout:
        """Return the periods that begin then or later, with the types that came in them."""
        return self._of(self.starts >= start)

    def until(self, end: float) -> Rollout:
        """Return the periods that end by then, likewise."""
        return self._of(self.starts + self.width_s <= end)

    def _of(self, kept: BoolArray) -> Rollout:
        counts, own = self.counts[kept], self.own[kept]
        came = np.flatnonzero(counts.any(axis=0))
        types = tuple(self.types[column] for column in came.tolist())
        return replace(self, starts=self.starts[kept], types=types, counts=counts[:, came], own=own[:, came])


def find_rollout(requests: RequestPeriods) -> Rollout | None:
    """Return the latest release with the one before it; None where a service has none of a later beginning.

    The one before is the one that got most requests just before the new one came. Where hosts count by
    periods of different lengths, those are added up by the longest.

    Args:
        requests: Of one service, in a span that should hold the beginning of the new release.
    """
    if not requests.releases:
        return None
    width_s = float(requests.widths_s.max())
    numbers, period = np.unique(np.floor(requests.starts / width_s).astype(np.int64), return_inverse=True)
    releases, release = _numbered(requests.releases)
    types, type_ = _numbered(requests.types)
    totals = np.zeros((len(releases), len(numbers)))
    np.add.at(totals, (release, period), requests.requests)
    named = [row for row, name in enumerate(releases) if name and totals[row].any()]
    firsts = {row: int(np.flatnonzero(totals[row])[0]) for row in named}
    new = max(named, key=lambda row: (firsts[row], releases[row]), default=None)
    if new is None or not firsts[new]:
        return None
    begun = firsts[new]
    earlier = [row for row in named if firsts[row] < begun]
    before = totals[:, max(0, begun - FEWEST_PERIODS) : begun].sum(axis=1)
    old = max(earlier, key=lambda row: (before[row], releases[row]), default=None)
    if old is None:
        return None
    shape = (len(numbers), len(types))
    counts, own = np.zeros(shape), np.zeros(shape)
    of_both = (release == old) | (release == new)
    np.add.at(counts, (period[of_both], type_[of_both]), requests.requests[of_both])
    np.add.at(own, (period[release == new], type_[release == new]), requests.requests[release == new])
    kept = _kept(totals, counts.sum(axis=1), own.sum(axis=1))
    found = Rollout(
        old=releases[old],
        new=releases[new],
        begun=float(numbers[begun] * width_s),
        width_s=width_s,
        starts=np.asarray(numbers[kept] * width_s, np.float64),
        types=types,
        counts=counts[kept],
        own=own[kept],
    )
    return found.until(np.inf)


def _kept(totals: FloatArray, both: FloatArray, own: FloatArray) -> BoolArray:
    """Return the periods of the two releases: (periods,); a trace of the new one is neither."""
    every = totals.sum(axis=0)
    is_of_both = both >= (1.0 - MOST_FOREIGN) * every
    return np.asarray(is_of_both & (both > 0) & ((own == 0) | (own >= MOST_FOREIGN * every)))


def _numbered(names: tuple[str, ...]) -> tuple[tuple[str, ...], IntArray]:
    """Return different names, sorted, and the number of each row's: (rows,)."""
    every = tuple(sorted(set(names)))
    number = {name: index for index, name in enumerate(every)}
    return every, np.array([number[name] for name in names], dtype=np.int64)
