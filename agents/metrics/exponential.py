"""Exponential histogram: observations counted in buckets whose bounds are powers of a base.

The layout is that of OpenTelemetry's data model: with a scale s the base is ``2 ** 2**-s``, and bucket i
holds what is above ``base ** i`` and at most ``base ** (i + 1)``. Native histograms of Prometheus have the
same buckets, numbered one higher.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_SCALE = 20
MIN_SCALE = -10
"""The scales of OpenTelemetry's exporters; Prometheus has -4 to 8."""

MAX_BUCKETS = 10_000
"""Most buckets of one histogram: senders keep 160 of each sign."""

MAX_INDEX = 2**31
"""Numbers of buckets are 32 bits wide."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """Counts by bucket; those at most ``zero_threshold`` from 0 are ``zero``."""

    scale: int
    zero: float = 0.0
    zero_threshold: float = 0.0
    positive: Mapping[int, float] = field(default_factory=dict)
    negative: Mapping[int, float] = field(default_factory=dict)

    @property
    def count(self) -> float:
        """Number of all observations."""
        return self.zero + sum(self.positive.values()) + sum(self.negative.values())

    def at_scale(self, scale: int) -> Exponential:
        """Return the same observations in buckets of a lower scale, each the union of some of these."""
        shift = self.scale - scale
        if shift <= 0:
            return self
        return Exponential(
            scale,
            self.zero,
            self.zero_threshold,
            _merged(self.positive, shift),
            _merged(self.negative, shift),
        )

    def plus(self, other: Exponential) -> Exponential:
        """Return the observations of both, at the lower scale of the two."""
        scale, own, theirs = self._aligned(other)
        return Exponential(
            scale,
            own.zero + theirs.zero,
            own.zero_threshold,
            _added(own.positive, theirs.positive, 1.0),
            _added(own.negative, theirs.negative, 1.0),
        )

    def minus(self, earlier: Exponential) -> Exponential | None:
        """Return the observations since an earlier state; None if the count was reset in between."""
        scale, own, theirs = self._aligned(earlier)
        difference = Exponential(
            scale,
            own.zero - theirs.zero,
            own.zero_threshold,
            _added(own.positive, theirs.positive, -1.0),
            _added(own.negative, theirs.negative, -1.0),
        )
        counts = (difference.zero, *difference.positive.values(), *difference.negative.values())
        return difference if min(counts) >= 0 else None

    def times(self, factor: float) -> Exponential:
        """Return a share of the observations."""
        return Exponential(
            self.scale,
            self.zero * factor,
            self.zero_threshold,
            {index: count * factor for index, count in self.positive.items()},
            {index: count * factor for index, count in self.negative.items()},
        )

    def quantile(self, rank: float) -> float:
        """Return the observation of a rank between 0 and 1; NaN if there is none.

        Within a bucket it is interpolated on the logarithmic scale, so it is right to a factor of the base.
        """
        wanted, so_far = rank * self.count, 0.0
        if wanted <= 0 and not self.count:
            return math.nan
        value = math.nan
        for low, high, count in self._buckets():
            value = _between(low, high, (wanted - so_far) / count)
            if so_far + count >= wanted:
                return value
            so_far += count
        return value

    def _aligned(self, other: Exponential) -> tuple[int, Exponential, Exponential]:
        """Return the lower scale, and both histograms at that scale and at the larger zero threshold."""
        scale = min(self.scale, other.scale)
        threshold = max(self.zero_threshold, other.zero_threshold)
        return (
            scale,
            self.at_scale(scale)._with_threshold(threshold),
            other.at_scale(scale)._with_threshold(threshold),
        )

    def _with_threshold(self, threshold: float) -> Exponential:
        """Return the same observations with all buckets up to a larger threshold in the bucket around 0."""
        if threshold <= self.zero_threshold:
            return self
        zero, sides = self.zero, []
        for side in (self.positive, self.negative):
            inside = {index for index in side if self._bound(index + 1) <= threshold * (1 + 1e-9)}
            zero += sum(side[index] for index in inside)
            sides.append({index: count for index, count in side.items() if index not in inside})
        return Exponential(self.scale, zero, threshold, *sides)

    def _buckets(self) -> Iterator[tuple[float, float, float]]:
        """Yield bounds and count of each bucket that is not empty, from the smallest."""
        for index in sorted(self.negative, reverse=True):
            if self.negative[index] > 0:
                yield -self._bound(index + 1), -self._bound(index), self.negative[index]
        if self.zero > 0:
            yield -self.zero_threshold if self.negative else 0.0, self.zero_threshold, self.zero
        for index in sorted(self.positive):
            if self.positive[index] > 0:
                yield self._bound(index), self._bound(index + 1), self.positive[index]

    def _bound(self, index: int) -> float:
        """Return ``base ** index``, limited to the range of floats."""
        return float(2.0 ** min(max(math.ldexp(index, -self.scale), -1022.0), 1023.0))


def buckets_from(offset: int, counts: list[float]) -> dict[int, float]:
    """Return the counts of consecutive buckets by number, without empty ones."""
    return {offset + step: count for step, count in enumerate(counts) if count}


def _merged(counts: Mapping[int, float], shift: int) -> dict[int, float]:
    merged: dict[int, float] = {}
    for index, count in counts.items():
        merged[index >> shift] = merged.get(index >> shift, 0.0) + count
    return merged


def _added(counts: Mapping[int, float], added: Mapping[int, float], sign: float) -> dict[int, float]:
    total = dict(counts)
    for index, count in added.items():
        total[index] = total.get(index, 0.0) + sign * count
    return total


def _between(low: float, high: float, share: float) -> float:
    """Return the value at a share of a bucket, on the logarithmic scale except in the bucket around 0."""
    share = min(max(share, 0.0), 1.0)
    if low > 0:
        return float(low * (high / low) ** share)
    if high < 0:
        return float(low * (high / low) ** share)
    return low + (high - low) * share
