"""Stacks as the arrays of an icicle: one node for every path from the root."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from pipeline.model import FloatArray, StackMatrix

TRUNK_SHARE = 0.98
"""Share of all samples from which on frames at the root, one below the other, are left out."""

SMALLEST_SHARE = 0.004
"""Paths with a smaller share of the service, before and after, are not drawn."""

SURE = 0.95
"""Confidence, over all shifts beyond noise, that none of them is chance."""

Path = tuple[str, ...]

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Noise:
    """Differences of shares between two spans by noise: counts vary ``dispersion`` times as by chance."""

    totals: tuple[float, float]  # samples before, after
    dispersion: float = 1.0
    drawn: int = 1  # shares that are looked at together

    def bounds(self, shares: FloatArray) -> FloatArray:
        """Return the largest difference within noise of shares before and after (n, 2): (n,)."""
        before, after = self.totals
        if min(before, after) <= 0:
            return np.zeros(len(shares))
        share = np.clip((shares[:, 0] * before + shares[:, 1] * after) / (before + after), 0.0, 1.0)
        # A frame without samples counts as one sample: it may have been missed by chance.
        share = np.maximum(share, 1.0 / (before + after))
        variance = self.dispersion * share * (1.0 - share) * (1.0 / before + 1.0 / after)
        reach = -float(ndtri((1.0 - SURE) / 2.0 / max(1, self.drawn)))
        bounds: FloatArray = reach * np.sqrt(variance)
        return bounds


@dataclass(frozen=True, slots=True)
class Icicle:
    """A tree of paths, parents before children; node 0 is the service. Shares are gCPU ratios.

    ``trunk`` names the frames that were left out between the service and the rest; differences up to
    ``noise`` may be chance.
    """

    paths: tuple[Path, ...]
    parents: tuple[int, ...]  # index of each node's parent, -1 for node 0
    before: FloatArray  # (nodes,)
    after: FloatArray  # (nodes,)
    trunk: Path
    noise: FloatArray  # (nodes,)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return each node's own frame; node 0 has none."""
        return tuple(path[-1] if path else "" for path in self.paths)


@dataclass(frozen=True, slots=True)
class FrameShift:
    """A subroutine's inclusive gCPU before and after, recursion counted once."""

    subroutine: str
    before: float
    after: float
    noise: float = 0.0  # differences up to this may be chance

    @property
    def is_noise(self) -> bool:
        """Whether the difference may be chance."""
        return abs(self.delta) < self.noise

    @property
    def delta(self) -> float:
        """Return the change, as a ratio of the service; sums of shares are exact to twelve digits."""
        return round(self.after - self.before, 12)


def icicle(stacks: StackMatrix, dispersion: float | None = None) -> Icicle:
    """Build the tree of a service's stacks, without the trunk and without nodes too thin to see.

    With a dispersion it says which differences are within noise; without one none is.
    """
    paths, weights = _path_weights(stacks)
    trunk = _trunk(paths, weights)
    row_of = {path: row for row, path in enumerate(paths)}
    wide = [paths[row] for row in np.flatnonzero(weights.max(axis=1) >= SMALLEST_SHARE).tolist()]
    drawn: list[Path] = [()]
    index: dict[Path, int] = {(): 0}
    parents = [-1]
    for path in sorted(path for path in wide if len(path) > len(trunk) and path[: len(trunk)] == trunk):
        above = path[len(trunk) : -1]
        if above not in index:
            continue
        shown = path[len(trunk) :]
        index[shown] = len(drawn)
        parents.append(index[above])
        drawn.append(shown)
    shares = weights[[row_of[trunk + path] for path in drawn]]
    return Icicle(
        paths=tuple(drawn),
        parents=tuple(parents),
        before=shares[:, 0],
        after=shares[:, 1],
        trunk=trunk,
        noise=_bounds(stacks, shares, dispersion),
    )


def largest_shifts(stacks: StackMatrix, limit: int, dispersion: float | None = None) -> list[FrameShift]:
    """Return the subroutines whose share of the service moved most, largest first; noise as ``icicle``."""
    shares = inclusive_shares(stacks)
    both = np.array(list(shares.values())).reshape(-1, 2)
    rounded = np.round(np.abs(both[:, 1] - both[:, 0]), 9)
    names = list(shares)
    order = sorted(range(len(names)), key=lambda row: (-rounded[row], names[row]))[:limit]
    bounds = _bounds(stacks, both, dispersion)
    return [FrameShift(names[i], float(both[i, 0]), float(both[i, 1]), float(bounds[i])) for i in order]


def largest_shares(stacks: StackMatrix, limit: int, beneath: float = 1.0) -> list[str]:
    """Return the elements with the largest shares beneath a bound, after the change or else before."""
    shares = {name: float(share.max()) for name, share in inclusive_shares(stacks).items()}
    smaller = [name for name, share in shares.items() if share < beneath]
    return sorted(smaller, key=lambda name: (-shares[name], name))[:limit]


def inclusive_shares(stacks: StackMatrix) -> dict[str, FloatArray]:
    """Return the share of each element before and after, recursion counted once."""
    names, sums = _sums((dict.fromkeys(frames) for frames in stacks.stacks), _shares(stacks))
    return dict(zip(names, sums, strict=True))


def _bounds(stacks: StackMatrix, shares: FloatArray, dispersion: float | None) -> FloatArray:
    """Return differences within noise, the same for a path as for a table's frame with its shares."""
    if dispersion is None:
        return np.zeros(len(shares))
    totals = (stacks.total_before, stacks.total_after)
    elements = {name for frames in stacks.stacks for name in frames}
    return Noise(totals, dispersion, len(elements) + 1).bounds(shares)


def _shares(stacks: StackMatrix) -> FloatArray:
    """Return each stack's share of the service before and after: (stacks, 2); an empty side counts as 0."""
    totals = np.array([stacks.total_before, stacks.total_after])
    counts = np.column_stack([stacks.before, stacks.after]).reshape(-1, 2)
    shares: FloatArray = np.divide(
        counts, totals, out=np.zeros(counts.shape, dtype=np.float64), where=totals > 0
    )
    return shares


def _path_weights(stacks: StackMatrix) -> tuple[list[Path], FloatArray]:
    """Return all paths from the root, the empty one first, and their shares before and after."""
    if not stacks.stacks:
        return [()], np.zeros((1, 2))
    paths = ((frames[:depth] for depth in range(len(frames) + 1)) for frames in stacks.stacks)
    return _sums(paths, _shares(stacks))


def _sums(keys: Iterable[Iterable[Key]], shares: FloatArray) -> tuple[list[Key], FloatArray]:
    """Return all keys of stacks, and the sum of the shares (stacks, 2) of each key: (keys, 2)."""
    index: dict[Key, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    for row, names in enumerate(keys):
        before = len(columns)
        columns += [index.setdefault(name, len(index)) for name in names]
        rows += [row] * (len(columns) - before)
    sides = [np.bincount(columns, shares[rows, side], minlength=len(index)) for side in (0, 1)]
    return list(index), np.column_stack(sides)


def _trunk(paths: Sequence[Path], weights: FloatArray) -> Path:
    """Return the longest path from the root that nearly every sample shares, before and after."""
    heavy = np.flatnonzero((weights >= TRUNK_SHARE * weights[0]).all(axis=1)).tolist()
    # At most one path can hold nearly everything, except for its own beginnings.
    return max((paths[row] for row in heavy), key=len) if weights[0].any() else ()
