"""Stacks as the arrays of an icicle: one node for every path from the root."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, StackMatrix

TRUNK_SHARE = 0.98
"""Frames at the root that hold at least this share of all samples, one below the other, are left out."""

SMALLEST_SHARE = 0.004
"""Paths with a smaller share of the service, before and after, are not drawn."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Icicle:
    """A tree of paths, parents before children; node 0 is the service. Shares are gCPU ratios.

    ``trunk`` names the frames that were left out between the service and the rest.
    """

    paths: tuple[Path, ...]
    parents: tuple[int, ...]  # index of each node's parent, -1 for node 0
    before: FloatArray  # (nodes,)
    after: FloatArray  # (nodes,)
    trunk: Path

    @property
    def labels(self) -> tuple[str, ...]:
        """Return each node's own frame; node 0 has none."""
        return tuple(path[-1] if path else "" for path in self.paths)


@dataclass(frozen=True, slots=True)
class Shift:
    """A subroutine's inclusive gCPU before and after, recursion counted once."""

    subroutine: str
    before: float
    after: float

    @property
    def delta(self) -> float:
        """Return the change, as a ratio of the service."""
        return self.after - self.before


def icicle(stacks: StackMatrix) -> Icicle:
    """Build the tree of a service's stacks, without the trunk and without what is too thin to see."""
    weights = _path_weights(stacks)
    trunk = _trunk(weights)
    kept: list[Path] = [()]
    index: dict[Path, int] = {(): 0}
    parents = [-1]
    descendants = sorted(path for path in weights if len(path) > len(trunk) and path[: len(trunk)] == trunk)
    for path in descendants:
        above = path[len(trunk) : -1]
        if weights[path].max() < SMALLEST_SHARE or above not in index:
            continue
        shown = path[len(trunk) :]
        index[shown] = len(kept)
        parents.append(index[above])
        kept.append(shown)
    shares = np.array([weights[trunk + path] for path in kept]).reshape(-1, 2)
    return Icicle(
        paths=tuple(kept), parents=tuple(parents), before=shares[:, 0], after=shares[:, 1], trunk=trunk
    )


def largest_shifts(stacks: StackMatrix, limit: int) -> list[Shift]:
    """Return the subroutines whose share of the service moved most, largest first."""
    shares: dict[str, FloatArray] = {}
    for frames, share in zip(stacks.stacks, _shares(stacks), strict=True):
        for frame in set(frames):
            shares[frame] = shares.get(frame, 0.0) + share
    shifts = [Shift(name, float(share[0]), float(share[1])) for name, share in shares.items()]
    return sorted(shifts, key=lambda shift: (-round(abs(shift.delta), 9), shift.subroutine))[:limit]


def _shares(stacks: StackMatrix) -> FloatArray:
    """Return (stacks, 2): each stack's share of the service before and after; nothing counts as 0."""
    totals = np.array([stacks.total_before, stacks.total_after])
    counts = np.column_stack([stacks.before, stacks.after]).reshape(-1, 2)
    shares: FloatArray = np.divide(
        counts, totals, out=np.zeros(counts.shape, dtype=np.float64), where=totals > 0
    )
    return shares


def _path_weights(stacks: StackMatrix) -> dict[Path, FloatArray]:
    weights: dict[Path, FloatArray] = {(): np.zeros(2)}
    for frames, share in zip(stacks.stacks, _shares(stacks), strict=True):
        for depth in range(len(frames) + 1):
            path = frames[:depth]
            weights[path] = weights.get(path, 0.0) + share
    return weights


def _trunk(weights: dict[Path, FloatArray]) -> Path:
    """Return the longest path from the root that nearly every sample shares, before and after."""
    whole = weights[()]
    heavy = [path for path, share in weights.items() if (share >= TRUNK_SHARE * whole).all() and path]
    # Two paths cannot both hold nearly everything unless one begins with the other.
    return max(heavy, key=len, default=()) if whole.any() else ()
