"""Whether the regressions of one release have one cause, such as a new feature in many changes.

Unrelated changes go along with a regression rarely, so that many of one release that do have a common reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True, slots=True)
class ReleaseConfig:
    """What is assumed of releases before any is seen."""

    # Share of changes that go with a regression by chance: far more than the 582 regressions a month of
    # FBDetect's Table 5 are of hundreds to thousands of changes a release (§5.4.9).
    usual: float = 0.01
    least: int = (
        3  # changes; two small releases in ten thousand have two regressions, and a month has thousands
    )


def sure_of_one_thing(hits: int, deployed: int, config: ReleaseConfig | None = None) -> float:
    """Return how improbable it is that so many changes of a release go along with regressions by chance.

    It is 1 less the chance (binomial), and 0 for fewer than are ever called one thing.

    Args:
        hits: How many of its changes go along with a regression.
        deployed: How many were deployed at its moment.
        config: What is assumed.
    """
    config = config or ReleaseConfig()
    if hits < config.least:
        return 0.0
    return float(stats.binom.cdf(hits - 1, max(deployed, hits), config.usual))
