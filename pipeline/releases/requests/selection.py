"""Types of request that a model of the load needs, without redundant ones (Liao et al., §5, step 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray, IntArray
from pipeline.releases.requests.periods import NotCompared, Releases

MOST_CORRELATED = 0.7
MOST_EXPLAINED = 0.9
_NOISE = 1e-9
"""Share of each type's variance that counts as unexplained noise, so that the matrix stays invertible."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The types of a model.

    Args:
        kept: (kept,) columns of the types that stay.
        left_out: Type → the kept types that stand for it: one that it correlates with, or those that explain
            it together. Empty if it came too rarely to vary.
    """

    kept: IntArray
    left_out: dict[str, tuple[str, ...]]


def choose_types(releases: Releases) -> Selection:
    """Return the types that are neither correlated with another one nor explained by the rest.

    Of two types that correlate above MOST_CORRELATED the one with more requests stays, which has more to
    say about the metric. Then, as long as the rest explains any with R² above MOST_EXPLAINED, the one that
    is explained best goes (Harrell 2015, redundancy analysis). Both look at deviations from each release's
    mean, so that types that rose together with the release are not taken for correlated.

    Raises:
        NotCompared: no type varies.
    """
    centred = np.concatenate(
        [item.counts - item.counts.mean(axis=0) for item in (releases.old, releases.new)]
    )
    requests = np.concatenate([releases.old.counts, releases.new.counts]).sum(axis=0)
    norms = np.sqrt(np.square(centred).sum(axis=0))
    varies = norms > 0.0
    if not varies.any():
        raise NotCompared("no type of request varies from period to period", "nothing_varies")
    scaled = centred / np.where(varies, norms, 1.0)
    correlations = scaled.T @ scaled
    names = np.array(releases.types, dtype=object)
    left_out: dict[str, tuple[str, ...]] = {str(name): () for name in names[~varies]}
    chosen: list[int] = []
    for column in sorted(np.flatnonzero(varies).tolist(), key=lambda item: (-requests[item], item)):
        strengths = np.abs(correlations[column, chosen])
        if len(chosen) and strengths.max() > MOST_CORRELATED:
            left_out[str(names[column])] = (str(names[chosen[int(strengths.argmax())]]),)
        else:
            chosen.append(column)
    for column, explaining in _explained(correlations, chosen):
        left_out[str(names[column])] = tuple(str(name) for name in names[explaining])
    return Selection(np.array(sorted(chosen), np.int64), left_out)


def _explained(correlations: FloatArray, chosen: list[int]) -> list[tuple[int, list[int]]]:
    """Take columns that the rest explains out of ``kept``; return each with those that explain it most."""
    pairs = []
    while len(chosen) > 1:
        # Without noise, a type that is an exact sum of others would make the matrix singular.
        inverse = np.linalg.inv(correlations[np.ix_(chosen, chosen)] + _NOISE * np.eye(len(chosen)))
        diagonal = np.diag(inverse)
        explained = 1.0 - 1.0 / np.maximum(diagonal, 1.0)
        worst = int(explained.argmax())
        if explained[worst] <= MOST_EXPLAINED:
            break
        weights = np.abs(inverse[worst]) / diagonal[worst]
        weights[worst] = 0.0
        column = chosen[worst]
        pairs.append((column, [chosen[index] for index in np.flatnonzero(weights > 0.1 * weights.max())]))
        del chosen[worst]
    return [
        (column, sorted(index for index in explaining if index in chosen)) for column, explaining in pairs
    ]
