"""Candidates of a scan that are one regression, by the stacks that they share.

A regressed subroutine raises all its callers. How far the rise of A is explained by B is the share of A's
rise that comes from stacks which hold B too, the fraction L/R of FBDetect §5.4.9 with B in the place of
the changed subroutine. If B explains A, A adds nothing to report; if both explain each other, they rise
in the same stacks, and the one nearest the cause stands for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.analysis.stacks.index import CANCELLED
from pipeline.model import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates with one cause, as indexes; ``explained`` says how far each member is by the largest."""

    representative: int
    members: tuple[int, ...]  # without the representative
    explained: tuple[float, ...]  # parallel to members


def explained_shares(holds: BoolArray, change: FloatArray) -> FloatArray:
    """Return E: (series, series), E[a, b] the share of a's change from stacks which hold b too.

    A row is 0 where a series did not change at all.
    """
    weighted = holds * change
    own = weighted.sum(axis=1)
    shares: FloatArray = np.divide(
        weighted @ holds.T.astype(np.float64),
        own[:, None],
        out=np.zeros((len(holds), len(holds))),
        # A quotient of rounding errors could be anything.
        where=(np.abs(own) > CANCELLED * np.abs(weighted).sum(axis=1))[:, None],
    )
    return shares


def shares_in_step(holds: BoolArray, before: FloatArray, change: FloatArray) -> FloatArray:
    """Return L: (series, series), L[a, b] similarity of a's change to that of b changing in step.

    More calls raise all callees in one proportion; a higher cost of the subroutine does not. The smaller of
    both changes is divided by the larger one; 0 where they have different signs.

    Args:
        holds: (series, stacks)
        before: (stacks,) their shares of all samples before the change.
        change: (stacks,) by how much these grew.
    """
    weighted = holds * before
    level, own = weighted.sum(axis=1), (holds * change).sum(axis=1)
    growth = np.divide(own, level, out=np.zeros(len(holds)), where=level > 0)
    shares: FloatArray = _ratio((weighted @ holds.T.astype(np.float64)) * growth[None, :], own[:, None])
    return shares


def _ratio(change: FloatArray, other: FloatArray) -> FloatArray:
    """Return the smaller of two changes divided by the larger one, 0 where their signs differ."""
    small, large = np.fmin(np.abs(change), np.abs(other)), np.fmax(np.abs(change), np.abs(other))
    same = (np.sign(change) == np.sign(other)) & (large > 0)
    ratio: FloatArray = np.divide(small, large, out=np.zeros(np.shape(large)), where=same)
    return ratio
