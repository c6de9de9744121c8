"""Renames: stacks that vanished gave their cost to those that are new at the same places.

A renamed subroutine, a class or a package of them stands where the old names stood: the stacks are equal but
for labels that are new and labels that vanished. So is one that was split in two, or that got dearer in the
same hour, and its earlier cost is that of the stacks that it replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.cost_shift.refactorings import compare_stacks
from pipeline.analysis.cost_shift.stack_history import StackHistory
from pipeline.analysis.stacks import Moves, StackIndex, moves_between
from pipeline.model import FloatArray

_MOST = 0.5
"""Share of its cost that a stack lost at least, or it has not vanished."""


@dataclass(frozen=True, slots=True, eq=False)
class Renames:
    """What became of stacks that hold vanished labels."""

    index: StackIndex
    moves: Moves

    def made(self, counts: FloatArray) -> FloatArray:
        """Return counts of times before the change in the stacks that each became: (rows, stacks)."""
        return np.array([self.moves.made(row) for row in counts]) if len(self.moves.source) else counts

    def former(self, label: str, counts: FloatArray) -> str:
        """Return the vanished label whose cost a new one took over most of; empty where it took none.

        Args:
            label: The new one.
            counts: (stacks,) samples before.
        """
        index = self.index
        positions = index.positions(label)
        depth = np.full(index.stacks, -1, dtype=np.int64)
        depth[index.stack[positions]] = positions - index.starts[index.stack[positions]]
        at = depth[self.moves.goal]
        taken = np.flatnonzero(at >= 0)
        taken = taken[at[taken] < np.diff(index.starts)[self.moves.source[taken]]]
        former = index.label[index.starts[self.moves.source[taken]] + at[taken]]
        other = former != index.labels.get(label, -1)
        if not other.any():
            return ""
        moved = (counts[self.moves.source] * self.moves.part)[taken]
        return index.names[int(np.argmax(np.bincount(former[other], moved[other])))]


def find_renames(history: StackHistory) -> Renames:
    """Return what became of stacks that hold vanished labels, by their places.

    Args:
        history: Of the stacks.
    """
    index, similar = history.index, compare_stacks(history)
    gone = np.zeros(index.stacks, dtype=np.bool_)
    gone[index.stack[similar.standing.position]] = True
    before, after = history.before[0], history.after[0]
    return Renames(
        index,
        moves_between(similar.same_positions, gone & ~similar.fresh, similar.fresh, before, after, _MOST),
    )
