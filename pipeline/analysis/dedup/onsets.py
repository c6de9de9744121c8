"""How sure it is that two regressions of different kinds have one cause, since they begin at one time.

A service-level metric has no stacks, so all that it shares with another regression is its beginning. The
intervals of their change times overlap by chance, too. How often is counted: for each other regression that
the metric might have met, the share of the time at which their intervals would have overlapped, and the share
of the changes that were deployed in both, besides the one that may have caused both. Regressions begin with
deployments, so that two of one release are no surprise where releases are few, or many changes one release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class RegressionOnset:
    """The beginning of a regression."""

    begin: float  # interval of the change time, epoch seconds
    end: float
    gcpu: bool
    size: float  # of the change; compared between those of gCPU only
    event: str = ""  # that it is part of; empty for one of its own

    @property
    def width_s(self) -> float:
        """Length of the interval."""
        return self.end - self.begin

    def overlaps(self, other: RegressionOnset) -> bool:
        """Return whether both may have begun at one moment."""
        return self.begin <= other.end and other.begin <= self.end


@dataclass(frozen=True, slots=True, eq=False)
class ChanceTime:
    """What is known of the time in which an onset might have met another by chance."""

    span_s: float  # for how long reports and changes were read
    reported: Sequence[RegressionOnset]  # of that time
    deployed: FloatArray  # (changes,) when each was deployed first, ascending


def onset_similarities(onsets: Sequence[RegressionOnset], watched: ChanceTime) -> FloatArray:
    """Return how sure it is that two regressions begin together for a reason: (n, n), 0 for two of gCPU.

    It is 1 less the chance. Of gCPU only regressions at least as large count that the metric might have met:
    large ones are rarer, so that meeting one says more.
    """
    similarity = np.zeros((len(onsets),) * 2)
    sizes = _sizes([*watched.reported, *onsets])
    moments = _moments([one for one in (*watched.reported, *onsets) if not one.gcpu])
    for row, one in enumerate(onsets):
        for other_row, other in enumerate(onsets[:row]):
            if (one.gcpu and other.gcpu) or not one.overlaps(other):
                continue
            others = moments
            if one.gcpu or other.gcpu:
                size = _size(one if one.gcpu else other, sizes)
                others = int((np.array(list(sizes.values())) >= size).sum())
            met = others * _share_met(one, other, watched)
            similarity[row, other_row] = similarity[other_row, row] = math.exp(-met)
    return similarity


def _share_met(one: RegressionOnset, other: RegressionOnset, watched: ChanceTime) -> float:
    """Return the share of the time, and of the changes, at which one would have met the other."""
    first, last = np.searchsorted(
        watched.deployed, [min(one.begin, other.begin), max(one.end, other.end)], side="left"
    )
    besides = max(int(last - first) - 1, 0)
    by_time = (one.width_s + other.width_s) / max(watched.span_s, 1.0)
    return by_time + besides / max(len(watched.deployed), 1)


def _sizes(onsets: Sequence[RegressionOnset]) -> dict[str, float]:
    """Return the size of each gCPU event: that of its largest regression."""
    sizes: dict[str, float] = {}
    for number, one in enumerate(onsets):
        if one.gcpu:
            event = one.event or f"of its own: {number}"
            sizes[event] = max(one.size, sizes.get(event, 0.0))
    return sizes


def _size(one: RegressionOnset, sizes: dict[str, float]) -> float:
    return sizes.get(one.event, one.size) if one.event else one.size


def _moments(onsets: Sequence[RegressionOnset]) -> int:
    """Return at how many different moments some began: those that overlap are one."""
    spans: IntArray | FloatArray = np.array(sorted((one.begin, one.end) for one in onsets)).reshape(-1, 2)
    latest = np.maximum.accumulate(spans[:, 1])
    return int(len(spans) and 1 + (spans[1:, 0] > latest[:-1]).sum())
