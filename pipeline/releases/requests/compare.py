"""Comparison of two releases under any load: whether the new one is slower, and by which requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
from scipy import special

from pipeline.releases.requests.costs import DRAWS, CostComparison, compare_costs
from pipeline.releases.requests.periods import FEWEST_PERIODS, NotCompared, Releases
from pipeline.releases.requests.support import unseen_load

MOST_UNSEEN = 0.5
"""Largest share of the new release's periods whose load the old release never saw."""

POWER = 0.9

_DRAWS_A_LEVEL = 6
"""Smallest chance that is resolved: a sixth of the level that a metric alone has to reach."""


@dataclass(frozen=True, slots=True)
class RequestCompareConfig:
    """Settings of a comparison of releases.

    Args:
        alpha: Chance that equal releases count as different, over all types and metrics.
        seed: Of the bootstrap.
    """

    alpha: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseComparison:
    """Comparison of two releases by one metric.

    Args:
        costs: What requests cost in each.
        compared: The periods that were compared, without load that the old release never saw.
        unseen: Share of the new release's periods that were left out for that.
        p: Chance of a change as large, of equal releases; adjusted for the number of metrics.
        changed: Whether that is at most alpha.
    """

    costs: CostComparison
    compared: Releases
    unseen: float
    p: float
    changed: bool

    @property
    def slower(self) -> bool:
        """Whether a cost rose significantly."""
        return self.changed and any(change.change > 0 for change in self.costs.changes)


def compare_releases(
    metrics: Mapping[str, Releases], config: RequestCompareConfig = RequestCompareConfig()
) -> dict[str, ReleaseComparison | NotCompared]:
    """Compare the releases by each metric; return the reason for each metric that cannot be compared.

    Chances are adjusted for how many metrics there are (Benjamini and Hochberg 1995).

    Args:
        metrics: Name → the periods of both releases, with that metric.
        config: How.
    """
    draws = draws_needed(len(metrics), config.alpha)
    results, adjusted = judge_metrics(metrics, lambda releases: _compare(releases, config, draws))
    return results | {
        name: replace(comparison, p=p, changed=p <= config.alpha)
        for name, (comparison, p) in adjusted.items()
    }


def draws_needed(metrics: int, alpha: float) -> int:
    """Return the number of draws of a bootstrap that lets one metric alone pass the bound of all of them."""
    return max(DRAWS, math.ceil(_DRAWS_A_LEVEL * metrics / alpha))


class _Judged(Protocol):
    """A result with a chance."""

    @property
    def p(self) -> float: ...


_T = TypeVar("_T", bound=_Judged)


def judge_metrics(
    metrics: Mapping[str, Releases], judge: Callable[[Releases], _T]
) -> tuple[dict[str, _T | NotCompared], dict[str, tuple[_T, float]]]:
    """Judge each metric; return all results, and those of compared metrics with adjusted chances.

    Chances are adjusted for how many metrics there are (Benjamini and Hochberg 1995).

    Args:
        metrics: Name → the periods of both releases, with that metric.
        judge: Says what of one metric, or raises NotCompared.
    """
    results: dict[str, _T | NotCompared] = {}
    for name, releases in metrics.items():
        try:
            results[name] = judge(releases)
        except NotCompared as error:
            results[name] = error
    compared = {name: result for name, result in results.items() if not isinstance(result, NotCompared)}
    from scipy import stats  # slow to import, and every worker of the stage releases imports this module

    chances = stats.false_discovery_control([result.p for result in compared.values()]) if compared else []
    return results, {
        name: (result, float(p)) for (name, result), p in zip(compared.items(), chances, strict=True)
    }


def seen_load(releases: Releases) -> tuple[Releases, float]:
    """Return the readable periods without load that the old release never saw, and the share left out.

    Raises:
        NotCompared: that is more than MOST_UNSEEN, or too few periods are left.
    """
    readable = releases.readable()
    unseen = unseen_load(readable.old.counts, readable.new.counts)
    share = float(unseen.mean())
    if share > MOST_UNSEEN or len(unseen) - int(unseen.sum()) < FEWEST_PERIODS:
        text = f"{share:.0%} of the new release's periods have load that the old one never saw"
        raise NotCompared(text, "unseen_load", share, MOST_UNSEEN)
    return replace(readable, new=readable.new.at(~unseen)), share


def periods_needed(costs: CostComparison, periods: int, type_: str, rise: float, alpha: float) -> int | None:
    """Return how many periods of the new release show a rise of a type's cost in 90 of 100 cases.

    The error falls with the root of their number; the old release is taken to grow as well. None if the cost
    of the type is not above 0, or cannot be seen.

    Args:
        costs: Of the periods there are.
        periods: How many those are.
        type_: Of request.
        rise: Relative, such as 0.02.
        alpha: Of all types together (Bonferroni).
    """
    cost, error = costs.old[type_], costs.errors[type_]
    if not cost > 0.0 or not np.isfinite(error):
        return None
    quantiles = special.ndtri(1.0 - alpha / 2.0 / len(costs.errors)) + special.ndtri(POWER)
    return max(FEWEST_PERIODS, int(np.ceil(periods * (quantiles * error / (rise * cost)) ** 2)))


def _compare(releases: Releases, config: RequestCompareConfig, draws: int) -> ReleaseComparison:
    _require_periods(releases.readable())  # of few periods, most load seems to be unseen
    compared, share = seen_load(releases)
    _require_periods(compared)
    rng = np.random.default_rng(config.seed)
    costs = compare_costs(compared, rng, config.alpha, draws)
    return ReleaseComparison(costs, compared, share, costs.p, costs.p <= config.alpha)


def _require_periods(releases: Releases) -> None:
    fewest = 2 * (len(releases.types) + 2)
    for name, periods in (("old", releases.old), ("new", releases.new)):
        if len(periods) < fewest:
            many = f"{len(periods)} periods, fewer than {fewest} for {len(releases.types)} types"
            raise NotCompared(f"the {name} release has {many}", "few_periods", len(periods), fewest)
