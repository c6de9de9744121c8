"""Moves: cost that a neighbour lost just as a cause won it is no rise of the whole.

Work that is renamed, extracted or inlined, or that goes to another callee, appears beside where it
disappears. Structure proposes: callers, callees, and what has a caller in common. Conservation decides: what
the neighbour lost must be all that was won, and not nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.explain.cause_sets import KINDS, CauseSets
from pipeline.analysis.explain.noise import SetNoise
from pipeline.model import FloatArray, IntArray

_DIFFERENT = 9.0
"""Squared standard scores by which a loss may differ from the gain that it explains."""

_ASIDE = 0.1
"""Share of a gain that may be the cost of the move itself: a call, another order."""

_MOST_NEIGHBOURS = 2000
"""Neighbours of one cause that are held against it, those of most samples."""


def find_moves(
    sets: CauseSets, causes: Sequence[int], seen: FloatArray, expected: FloatArray, noise: SetNoise
) -> dict[int, int]:
    """Return the sets that lost what causes won, by cause: of those that won what one neighbour lost.

    Args:
        sets: Possible causes.
        causes: Those that were chosen.
        seen: (stacks,) samples after the change.
        expected: (stacks,) samples expected then, with the traffic of entries.
        noise: Of the sets.
    """
    if not causes:
        return {}
    wanted = sets.sums(expected)
    change = sets.sums(seen) - wanted
    variance = noise.dispersion * np.maximum(wanted, 1.0)
    callers = _Callers.of(sets)
    taken: set[int] = set()
    moves: dict[int, int] = {}
    for cause in sorted(causes, key=lambda cause: -float(change[cause])):
        won = float(change[cause])
        if won <= 0:
            continue
        near = callers.neighbours(cause, wanted)
        near = near[[number not in taken for number in near.tolist()]]
        near = near[_overlaps(sets, cause, near) == 0]
        # What is most of the rest falls as shares add up to one, whoever rises.
        near = near[2 * wanted[near] <= float(expected.sum()) - wanted[cause]]
        if not len(near):
            continue
        none = change[near] ** 2 / variance[near]
        gap = np.maximum(np.abs(change[near] + won) - _ASIDE * won, 0.0)
        whole = gap**2 / (variance[near] + variance[cause])
        gain = np.where((change[near] < 0) & (whole <= _DIFFERENT), none - whole, -np.inf)
        best = int(np.argmax(gain))
        if gain[best] > noise.least(_DIFFERENT + 2 * math.log(len(near))):
            moves[cause] = int(near[best])
            taken.add(int(near[best]))
    return moves


@dataclass(frozen=True, slots=True, eq=False)
class _Callers:
    """Who calls whom, by the readings of the sets."""

    sets: CauseSets
    caller: IntArray  # (pairs,)
    callee: IntArray  # (pairs,)
    set_of: IntArray  # (readings,) set of each reading

    @classmethod
    def of(cls, sets: CauseSets) -> _Callers:
        """Return the pairs of the call tree."""
        pairs = sets.kind == KINDS.index("calls")
        set_of = np.repeat(np.arange(len(sets)), np.diff(sets.reading_starts))
        return cls(sets, sets.caller[pairs].astype(np.int64), sets.label[pairs].astype(np.int64), set_of)

    def neighbours(self, cause: int, samples: FloatArray) -> IntArray:
        """Return the sets of callers, callees and what has a caller in common with a cause."""
        rows = slice(self.sets.reading_starts[cause], self.sets.reading_starts[cause + 1])
        own = np.unique(self.sets.label[rows])
        above = self.caller[np.isin(self.callee, own)]
        beside = self.callee[np.isin(self.caller, above)]
        called = self.callee[np.isin(self.caller, own)]
        labels = np.setdiff1d(np.concatenate([above, beside, called]), own)
        near = np.unique(self.set_of[np.isin(self.sets.label, labels) & (self.sets.caller < 0)])
        near = near[near != cause]
        order = np.argsort(-samples[near], kind="stable")[:_MOST_NEIGHBOURS]
        return np.asarray(near[order], dtype=np.int64)


def _overlaps(sets: CauseSets, cause: int, near: IntArray) -> IntArray:
    """Return how many stacks each neighbour has in common with a cause."""
    inside = np.zeros(sets.index.stacks, dtype=np.bool_)
    inside[sets.of(cause)] = True
    return np.array([int(inside[sets.of(number)].sum()) for number in near.tolist()], dtype=np.int64)
