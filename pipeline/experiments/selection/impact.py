"""Impact of a change on production: gCPU of its subroutines, and the endpoints that reach them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.stacks import StackIndex
from pipeline.experiments.selection.chance import SMALLEST_SHARE, Chance
from pipeline.model import BoolArray, FloatArray
from pipeline.model.frames import element

_ENDPOINT = element("endpoint", "")


@dataclass(frozen=True, slots=True)
class EndpointImpact:
    """One endpoint that reaches what a change touches.

    Args:
        endpoint: Its name.
        replay: Share of the load that a test should replay of it: those of all endpoints add up to 1. It is
            that of production's CPU, not of requests.
        touched: Share of the endpoint's own samples whose stack holds a touched subroutine.
    """

    endpoint: str
    replay: float
    touched: float


@dataclass(frozen=True, slots=True)
class Impact:
    """Impact of a change on production.

    Args:
        share: Of the service's samples, those whose stack holds any touched subroutine.
        subroutines: (name, gCPU), the largest first; those that do not run in production are left out.
        endpoints: The largest part of the load first; none where samples have no endpoint.
        unseen: Touched subroutines of which production has no sample.
    """

    share: float
    subroutines: tuple[tuple[str, float], ...]
    endpoints: tuple[EndpointImpact, ...]
    unseen: tuple[str, ...]


def touched_share(index: StackIndex, subroutines: Collection[str]) -> float:
    """Return the share of samples whose stack holds any of some subroutines, each sample counted once."""
    held = _held(index, subroutines)
    return float(index.matrix.after[held].sum()) / max(index.matrix.total_after, 1.0)


def score_of(chance: Chance, share: float, subroutines: Collection[str]) -> float:
    """Return the expected share at stake: the chance of a regression times the touched share.

    0 if no subroutine is modified. One that does not run in production may, once it is changed.
    """
    return chance.of(share) * max(share, SMALLEST_SHARE) if subroutines else 0.0


def impact_of(index: StackIndex, subroutines: Collection[str], least: float = 0.01) -> Impact:
    """Return the impact of a change on the later of two spans of a service's stacks.

    Args:
        index: Stacks of production.
        subroutines: That the change modified, as stacks spell them.
        least: Endpoints are left out whose own samples are touched by a lesser share.
    """
    counts, total = index.matrix.after, max(index.matrix.total_after, 1.0)
    present = sorted(name for name in set(subroutines) if name in index.labels)
    held = _held(index, present)
    shares = [(name, float(counts[_held(index, [name])].sum()) / total) for name in present]
    seen = sorted((row for row in shares if row[1] > 0), key=lambda row: (-row[1], row[0]))
    names = {name for name, _ in seen}
    return Impact(
        float(counts[held].sum()) / total,
        tuple(seen),
        _endpoints(index, counts, held, least),
        tuple(sorted(set(subroutines) - names)),
    )


def _endpoints(
    index: StackIndex, counts: FloatArray, held: BoolArray, least: float
) -> tuple[EndpointImpact, ...]:
    rows = []
    for name in index.names:
        if not name.startswith(_ENDPOINT):
            continue
        own = _held(index, [name])
        samples, touched = float(counts[own].sum()), float(counts[own & held].sum())
        if touched > 0 and touched >= least * samples:
            rows.append((name.removeprefix(_ENDPOINT), samples, touched / samples))
    whole = sum(samples for _, samples, _ in rows)
    rows.sort(key=lambda row: (-row[1], row[0]))
    return tuple(EndpointImpact(name, samples / whole, touched) for name, samples, touched in rows)


def _held(index: StackIndex, names: Collection[str]) -> BoolArray:
    """Return the mask of stacks that hold any of the labels: (stacks,)."""
    rows = [index.labels[name] for name in names if name in index.labels]
    if not rows:
        return np.zeros(index.stacks, dtype=np.bool_)
    return np.asarray(index.incidence[rows].sum(axis=0) > 0).ravel()
