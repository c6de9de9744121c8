"""Cost shift: cost that only moved between subroutines is not a regression (FBDetect §5.4.6).

A cost domain is a group of subroutines within which cost is likely to move. If a subroutine's gCPU rose but
its domain's did not, the cost came from elsewhere in the domain. The paper's three checks are decided with
the uncertainty of both sides: a domain is judged only where its samples could tell the two cases apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from pipeline.filters.verdict import Verdict
from pipeline.gcpu.labels import element, series_of
from pipeline.gcpu.stacks import Series, holding_any, membership
from pipeline.model import BoolArray, StackMatrix


@dataclass(frozen=True, slots=True)
class CostShiftConfig:
    """Settings of the check."""

    negligible: float = 0.5  # a domain that rose by less than this share of what was expected did not rise
    mistaken: float = 0.005  # how often a true regression may be taken for a shift


@dataclass(frozen=True, slots=True)
class Domain:
    """A cost domain: its name for people, and the labels of its subroutines, as stacks hold them."""

    name: str
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of all samples before and after a change, and how many samples these were."""

    before: float
    after: float
    samples_before: float
    samples_after: float


def caller_domain(matrix: StackMatrix, series: Series) -> Domain | None:
    """Return the direct callers of a subroutine as one domain; None if it is called by none.

    Annotations are passed over: the caller is the next subroutine above.
    """
    callers = sorted({c for stack in matrix.stacks for c in _callers(stack, element(*series))})
    if not callers:
        return None
    return Domain(f"callers: {', '.join(callers[:3])}{' …' if len(callers) > 3 else ''}", frozenset(callers))


def class_domain(matrix: StackMatrix, series: Series) -> Domain | None:
    """Return the subroutines of the same class or module (dotted prefix) as a domain; None without one."""
    kind, name = series
    prefix = name.rpartition(".")[0]
    if kind != "subroutine" or not prefix:
        return None
    labels = {label for stack in matrix.stacks for label in stack if label.rpartition(".")[0] == prefix}
    return Domain(f"class: {prefix}", frozenset(labels))


def own_shares(matrix: StackMatrix, series: Series) -> Shares:
    """Return the shares of the stacks that hold a series."""
    return _shares(matrix, membership(matrix.stacks, [series])[0])


def rest_shares(matrix: StackMatrix, series: Series, domain: Domain) -> Shares:
    """Return the shares of a domain's stacks that do not hold a series."""
    own = membership(matrix.stacks, [series])[0]
    return _shares(matrix, holding_any(matrix.stacks, set(domain.labels)) & ~own)


def judge_cost_shift(
    own: Shares,
    rest: Shares,
    domain: Domain,
    *,
    earlier: Sequence[Shares] = (),
    config: CostShiftConfig | None = None,
) -> Verdict:
    """Drop a candidate whose cost came from the rest of its cost domain.

    The domain is the candidate's own stacks and the rest. If the candidate truly costs more, the rest keeps
    its cost, and its share shrinks only because the whole has grown, by (1 - own after) / (1 - own before).
    If the cost was shifted, the rest lost what the candidate won. ``statistic`` is where the rest came to
    lie between the two, from 0 (shifted) to 1 (kept): by how much of what was expected the domain rose. A
    domain too large for the change is too uncertain to reject the first case, and judges nothing.

    How uncertain the rest is, earlier days tell: by how much it changed at the same hours of each, on
    average, which is its daily cycle, and around that, which is its noise. It is never less than that of
    sampling.

    Args:
        own: Shares of the candidate.
        rest: Shares of the rest of its domain.
        domain: The domain.
        earlier: Shares of the rest at the same hours of earlier days.
        config: Settings.
    """
    config = config or CostShiftConfig()
    if not rest.samples_before or not rest.samples_after:
        return Verdict(True, 1.0, config.negligible)
    won = own.after - own.before
    shrinking = (1 - own.after) / max(1 - own.before, 1e-9)
    apart = won - rest.before * (1 - shrinking)
    if not rest.before or won <= 0 or apart <= 0:
        return Verdict(True, 1.0, config.negligible)  # nothing that existed before could have given the cost
    usual, margin = _usual_change(rest, shrinking, earlier, config)
    rose = 1 - (rest.before * shrinking + usual - rest.after) / apart
    bound = min(config.negligible, 1 - margin / apart)
    return Verdict(rose >= bound, rose, bound, f"cost shift within {domain.name}")


def _usual_change(
    rest: Shares, shrinking: float, earlier: Sequence[Shares], config: CostShiftConfig
) -> tuple[float, float]:
    """Return how the rest changes at these hours, and how far from that it may come to lie by chance."""
    variance = shrinking**2 * _variance(rest.before, rest.samples_before)
    variance += _variance(rest.after, rest.samples_after)
    sampled = math.sqrt(variance) * float(stats.norm.isf(config.mistaken))
    changes = np.array([e.after / e.before - 1 for e in earlier if e.before > 0])
    if len(changes) < 2:
        return 0.0, sampled
    usual = rest.before * float(changes.mean())
    seen = rest.before**2 * float(changes.var(ddof=1))
    more = math.sqrt(1 + 1 / len(changes))
    # What days are seen to differ by is an estimate of few; what sampling makes is known.
    observed = math.sqrt(seen) * float(stats.t.isf(config.mistaken, len(changes) - 1))
    return usual, max(observed, sampled) * more


def _shares(matrix: StackMatrix, holds: BoolArray) -> Shares:
    before, after = matrix.total_before, matrix.total_after
    return Shares(
        float(matrix.before[holds].sum()) / before if before else 0.0,
        float(matrix.after[holds].sum()) / after if after else 0.0,
        before,
        after,
    )


def _variance(share: float, samples: float) -> float:
    """Return the binomial variance of a share; one sample more keeps a share of 0 from being certain."""
    return (share * (1 - share) + 1 / samples) / samples


def _callers(stack: tuple[str, ...], label: str) -> list[str]:
    found = []
    for place, item in enumerate(stack):
        if item != label:
            continue
        above = [c for c in stack[:place] if series_of(c)[0] == "subroutine" and c != label]
        if above:
            found.append(above[-1])
    return found
