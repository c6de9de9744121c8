"""Cost shift: cost that only moved between subroutines is not a regression (FBDetect §5.4.6).

A cost domain is a group of subroutines within which cost is likely to move. If a subroutine's gCPU rose but
its domain's did not, the cost came from elsewhere in the domain. The paper's three checks are decided with
the uncertainty of both sides: a domain is judged only where its samples could tell the two cases apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pipeline.filters.verdict import Verdict
from pipeline.gcpu.labels import element, series_of
from pipeline.gcpu.stacks import Series, holding_any
from pipeline.model import BoolArray, StackMatrix


@dataclass(frozen=True, slots=True)
class CostShiftConfig:
    """Settings of the check."""

    negligible: float = 0.5  # a domain that rose by less than this share of what was expected did not rise
    deviations: float = 2.576  # a true regression is taken for a shift once in 200 times


@dataclass(frozen=True, slots=True)
class Domain:
    """A cost domain: its name for people, and which stacks hold any of its subroutines."""

    name: str
    holds: BoolArray  # (stacks,)


def caller_domain(matrix: StackMatrix, series: Series) -> Domain | None:
    """Return the direct callers of a subroutine as one domain; None if it is called by none.

    Annotations are passed over: the caller is the next subroutine above.
    """
    callers = sorted({c for stack in matrix.stacks for c in _callers(stack, element(*series))})
    if not callers:
        return None
    holds = holding_any(matrix.stacks, set(callers))
    return Domain(f"callers: {', '.join(callers[:3])}{' …' if len(callers) > 3 else ''}", holds)


def class_domain(matrix: StackMatrix, series: Series) -> Domain | None:
    """Return the subroutines of the same class or module (dotted prefix) as a domain; None without one."""
    kind, name = series
    prefix = name.rpartition(".")[0]
    if kind != "subroutine" or not prefix:
        return None
    holds = np.array(
        [any(label.rpartition(".")[0] == prefix for label in stack) for stack in matrix.stacks],
        dtype=np.bool_,
    )
    return Domain(f"class: {prefix}", holds)


def judge_cost_shift(
    matrix: StackMatrix, holds: BoolArray, domain: Domain, *, config: CostShiftConfig | None = None
) -> Verdict:
    """Drop a candidate whose cost came from the rest of its cost domain.

    The domain is the candidate's own stacks and the rest. If the candidate truly costs more, the rest keeps
    its cost, and its share shrinks only because the whole has grown, by (1 - own after) / (1 - own before).
    If the cost was shifted, the rest lost what the candidate won. ``statistic`` is where the rest came to
    lie between the two, from 0 (shifted) to 1 (kept): by how much of what was expected the domain rose. A
    domain too large for the change is too uncertain to reject the first case, and judges nothing.

    Args:
        matrix: Stack counts before and after the change.
        holds: (stacks,) which stacks hold the candidate.
        domain: The cost domain.
        config: Settings.
    """
    config = config or CostShiftConfig()
    if not matrix.total_before or not matrix.total_after:
        return Verdict(True, 1.0, config.negligible)
    own_before, own_after = _share_pair(matrix, holds)
    rest_before, rest_after = _share_pair(matrix, domain.holds & ~holds)
    won = own_after - own_before
    shrinking = (1 - own_after) / max(1 - own_before, 1e-9)
    apart = won - rest_before * (1 - shrinking)
    if not rest_before or won <= 0 or apart <= 0:
        return Verdict(True, 1.0, config.negligible)  # nothing that existed before could have given the cost
    rose = 1 - (rest_before * shrinking - rest_after) / apart
    variance = shrinking**2 * _variance(rest_before, matrix.total_before) + _variance(
        rest_after, matrix.total_after
    )
    bound = min(config.negligible, 1 - config.deviations * math.sqrt(variance) / apart)
    return Verdict(rose >= bound, rose, bound, f"cost shift within {domain.name}")


def _share_pair(matrix: StackMatrix, holds: BoolArray) -> tuple[float, float]:
    before = float(matrix.before[holds].sum()) / matrix.total_before
    return before, float(matrix.after[holds].sum()) / matrix.total_after


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
