"""A new release of a service beside the one before: the requests of each, period by period.

The sum of all requests determines the releases and the periods that count. Types are read afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.model import BoolArray, FloatArray, IntArray, RequestPeriods
from pipeline.releases.requests.periods import FEWEST_PERIODS

MOST_FOREIGN = 0.01
"""Share of a period's requests up to which other releases are ignored, and the new one does not count."""


@dataclass(frozen=True, slots=True)
class Succession:
    """A new release and the one before: periods in which one ran, or both side by side, and no others.

    Args:
        old: Name of the release before.
        new: Name of the new one.
        begun: Start of the first period in which the new one ran, epoch seconds.
        established: End of the period with which it counts as the new one: until then another did.
        width_s: Length of a period.
        starts: (periods,) epoch seconds, ascending.
        has_new: (periods,) in which the new release got requests.
    """

    old: str
    new: str
    begun: float
    established: float
    width_s: float
    starts: FloatArray
    has_new: BoolArray

    @property
    def new_ends(self) -> FloatArray:
        """Ends of the new release's periods: (of the new one,) epoch seconds."""
        return np.asarray(self.starts[self.has_new] + self.width_s)

    def between(self, start: float, end: float) -> Succession:
        """Return the periods that begin at ``start`` or later and end by ``end``."""
        inside = (self.starts >= start) & (self.starts + self.width_s <= end)
        return replace(self, starts=self.starts[inside], has_new=self.has_new[inside])


@dataclass(frozen=True, slots=True)
class RequestRollout:
    """The requests of a succession of releases by type.

    Args:
        old, new, begun, width_s, starts: As of the succession.
        types: (types,) of requests.
        counts: (periods, types) requests of both.
        own: (periods, types) those of them that the new release got.
        times: (periods, types) mean of the logarithm of response times, of seconds: of the new release where
            it got requests, else of the old one; NaN where none is known.
    """

    old: str
    new: str
    begun: float
    width_s: float
    starts: FloatArray
    types: tuple[str, ...]
    counts: FloatArray
    own: FloatArray
    times: FloatArray

    @property
    def has_new(self) -> BoolArray:
        """Mask of the periods in which the new release got requests: (periods,)."""
        return np.asarray(self.own.any(axis=1))

    @property
    def new_ends(self) -> FloatArray:
        """Ends of the new release's periods: (of the new one,) epoch seconds."""
        return np.asarray(self.starts[self.has_new] + self.width_s)

    def until(self, end: float) -> RequestRollout:
        """Return the periods that end at or before ``end``, with the types that came in them."""
        inside = self.starts + self.width_s <= end
        came = np.flatnonzero(self.counts[inside].any(axis=0))
        types = tuple(self.types[column] for column in came.tolist())
        counts, own, times = (array[inside][:, came] for array in (self.counts, self.own, self.times))
        return replace(self, starts=self.starts[inside], types=types, counts=counts, own=own, times=times)


@dataclass(frozen=True, slots=True)
class ReleaseRun:
    """The periods in which one release ran alone.

    Args:
        release: Its name.
        width_s: Length of a period.
        starts: (periods,) epoch seconds, ascending.
        types: (types,) of requests.
        counts: (periods, types)
    """

    release: str
    width_s: float
    starts: FloatArray
    types: tuple[str, ...]
    counts: FloatArray


def find_succession(totals: RequestPeriods) -> Succession | None:
    """Return the latest release with the one before it; None if no release began after another.

    A release runs in periods of whose requests it gets MOST_FOREIGN or more. The latest is the one that began
    to run last, of those with FEWEST_PERIODS: nothing is said of a release with fewer, so one that gets stray
    requests hides no other. The one before is the one that got most requests just before that.

    Args:
        totals: Of all releases, all types together, in a span that should hold the beginning of the new one.
    """
    requests, names = totals.requests, totals.releases
    runs = {row: _running(requests, row) for row, name in enumerate(names) if name}
    firsts = {row: int(periods[0]) for row, periods in runs.items() if len(periods)}
    established = [row for row, periods in runs.items() if len(periods) >= FEWEST_PERIODS]
    new = max(established, key=lambda row: (firsts[row], names[row]), default=None)
    if new is None:
        return None
    begun = firsts[new]
    earlier = [row for row, first in firsts.items() if first < begun]
    before = requests[:, max(0, begun - FEWEST_PERIODS) : begun].sum(axis=1)
    old = max(earlier, key=lambda row: (before[row], names[row]), default=None)
    if old is None:
        return None
    mask = _kept(requests.sum(axis=0), requests[old] + requests[new], requests[new])
    return Succession(
        old=names[old],
        new=names[new],
        begun=float(totals.starts[begun]),
        established=float(totals.starts[runs[new][FEWEST_PERIODS - 1]]) + totals.width_s,
        width_s=totals.width_s,
        starts=totals.starts[mask],
        has_new=requests[new, mask] > 0,
    )


def periods_begun(totals: RequestPeriods) -> int:
    """Return for how many periods a not yet established release has run: the maximum, 0 without one."""
    ran = (len(_running(totals.requests, row)) for row, name in enumerate(totals.releases) if name)
    return max((periods for periods in ran if periods < FEWEST_PERIODS), default=0)


def build_rollout(succession: Succession, requests: RequestPeriods) -> RequestRollout:
    """Return a succession with its requests.

    Args:
        succession: Which periods count, and how long they are.
        requests: Of both releases by type, in periods that are no longer.
    """
    width_s, starts = succession.width_s, succession.starts
    types = tuple(sorted(set(requests.types)))
    column = {name: number for number, name in enumerate(types)}
    # Starts are multiples of the width: one that rounding put a millionth below counts as the multiple.
    own_starts = np.floor(requests.starts / width_s + 1e-6) * width_s
    period = np.searchsorted(starts, own_starts)
    columns_inside = np.flatnonzero(np.isin(own_starts, starts))
    # For both releases: requests, those with a response time, and the sum of its logarithms.
    sums = np.zeros((2, 3, len(starts), len(types)))
    for row, (release, type_) in enumerate(zip(requests.releases, requests.types, strict=True)):
        for number, array in enumerate((requests.requests, requests.timed, requests.log_times)):
            added = np.bincount(period[columns_inside], array[row, columns_inside], minlength=len(starts))
            sums[int(release == succession.new), number, :, column[type_]] += added
    counts, own = sums[:, 0].sum(axis=0), sums[1, 0]
    _, timed, logs = np.where(own.any(axis=1)[:, None], sums[1], sums[0])
    rollout = RequestRollout(
        old=succession.old,
        new=succession.new,
        begun=succession.begun,
        width_s=width_s,
        starts=starts,
        types=types,
        counts=counts,
        own=own,
        times=np.divide(logs, timed, out=np.full(timed.shape, np.nan), where=timed > 0.0),
    )
    return rollout.until(np.inf)


def find_run(totals: RequestPeriods) -> tuple[str, FloatArray] | None:
    """Return the release that got most requests last, and the starts of the periods in which it ran alone.

    None without requests.

    Args:
        totals: Of all releases, all types together.
    """
    requests = totals.requests
    if not requests.size:
        return None
    row = int(requests[:, -FEWEST_PERIODS:].sum(axis=1).argmax())
    alone = requests[row] >= (1.0 - MOST_FOREIGN) * requests.sum(axis=0)
    return totals.releases[row], totals.starts[alone]


def build_run(release: str, starts: FloatArray, requests: RequestPeriods) -> ReleaseRun:
    """Return the periods of a release that ran alone.

    Args:
        release: Its name.
        starts: When these begin, ascending.
        requests: Its own by type, in these periods and others.
    """
    column = np.isin(requests.starts, starts)
    return ReleaseRun(
        release=release,
        width_s=requests.width_s,
        starts=requests.starts[column],
        types=requests.types,
        counts=np.asarray(requests.requests[:, column].T, np.float64),
    )


def _running(requests: FloatArray, row: int) -> IntArray:
    """Return the periods in which a release runs, ascending."""
    own = requests[row]
    return np.flatnonzero((own > 0) & (own >= MOST_FOREIGN * requests.sum(axis=0)))


def _kept(every: FloatArray, both: FloatArray, own: FloatArray) -> BoolArray:
    """Return the periods of the two releases: (periods,); a trace of the new one is neither."""
    is_of_both = both >= (1.0 - MOST_FOREIGN) * every
    return np.asarray(is_of_both & (both > 0) & ((own == 0) | (own >= MOST_FOREIGN * every)))
