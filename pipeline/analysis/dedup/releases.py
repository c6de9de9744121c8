"""Whether the regressions of one release have one cause, such as a new feature in many changes.

Unrelated changes go along with a regression rarely, so that many of one release that do have a common reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class ReleaseConfig:
    """What is assumed of releases before any is seen."""

    # Share of changes that go with a regression by chance: far more than the 582 regressions a month of
    # FBDetect's Table 5 are of hundreds to thousands of changes a release (§5.4.9).
    usual: float = 0.01
    # Changes that are one thing: two of two are so by chance once in ten thousand, and a month has thousands.
    least: int = 3


def sure_of_one_thing(hits: int, deployed: int, config: ReleaseConfig | None = None) -> float:
    """Return how improbable it is that so many changes of a release go along with regressions by chance.

    It is 1 less the chance (binomial), and 0 for fewer than are ever called one thing.

    Args:
        hits: How many of its changes go along with a regression.
        deployed: How many were deployed at its moment.
        config: What is assumed.
    """
    from scipy import stats  # slow to import, and every worker and many commands read the settings here

    config = config or ReleaseConfig()
    if hits < config.least:
        return 0.0
    return float(stats.binom.cdf(hits - 1, max(deployed, hits), config.usual))


def release_similarities(
    hits: Sequence[Iterable[tuple[float, str]]],
    deployed: Mapping[float, int],
    config: ReleaseConfig | None = None,
) -> FloatArray:
    """Return how sure it is that two regressions come from one release: (n, n).

    Unrelated changes go along with a regression rarely, so that many of one release that do have a common
    reason: they are parts of one thing, such as a new feature.

    Args:
        hits: For each regression the moment and the id of each change that may have made it rise.
        deployed: How many changes that modify subroutines were deployed at each moment.
        config: Settings.
    """
    changes: dict[float, set[str]] = {}
    positions: dict[float, set[int]] = {}
    for position, own in enumerate(hits):
        for moment, change in own:
            changes.setdefault(moment, set()).add(change)
            positions.setdefault(moment, set()).add(position)
    similarity = np.zeros((len(hits), len(hits)))
    for moment, hit in changes.items():
        sure = sure_of_one_thing(len(hit), deployed.get(moment, 0), config)
        rows = sorted(positions[moment])
        block = np.ix_(rows, rows)
        similarity[block] = np.maximum(similarity[block], sure)
    return similarity
