"""Cost shift: cost that only moved between subroutines is not a regression (FBDetect §5.4.6).

A cost domain is a group of subroutines within which cost is likely to move. If a subroutine's gCPU rose but
its domain's did not, the cost came from elsewhere in the domain. The paper's three checks are decided with
the uncertainty of both sides: a domain is judged only where its samples could tell the two cases apart.
"""

from __future__ import annotations

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
    deviations: float = 2.0  # by how many standard deviations the two cases must lie apart


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
    """Drop a candidate whose cost domain did not rise along with it.

    If the candidate truly cost more, its domain, which it belongs to, rose with it; by slightly less, since
    the larger a part of the whole is, the less its share can grow: with p the share of the candidate and
    d that of the domain, by (1 - d) / (1 - p) of the candidate's rise.

    Args:
        matrix: Stack counts before and after the change.
        holds: (stacks,) which stacks hold the candidate.
        domain: The cost domain.
        config: Settings.
    """
    config = config or CostShiftConfig()
    if not matrix.total_before or not matrix.total_after:
        return Verdict(True, 0.0, 0.0)
    own_before, own_after = _share_pair(matrix, holds)
    domain_before, domain_after = _share_pair(matrix, domain.holds | holds)
    expected = (own_after - own_before) * (1 - domain_before) / max(1 - own_before, 1e-9)
    if not domain_before or expected <= 0:
        return Verdict(True, 0.0, 0.0)  # a domain that did not exist before, or a candidate that did not rise
    deviation = np.sqrt(
        domain_before * (1 - domain_before) / matrix.total_before
        + domain_after * (1 - domain_after) / matrix.total_after
    )
    margin = config.deviations * float(deviation) / expected
    if margin > config.negligible:
        return Verdict(True, margin, config.negligible)  # the domain is too large to tell
    rose = (domain_after - domain_before) / expected
    return Verdict(rose >= config.negligible, rose, config.negligible, f"cost shift within {domain.name}")


def _share_pair(matrix: StackMatrix, holds: BoolArray) -> tuple[float, float]:
    before = float(matrix.before[holds].sum()) / matrix.total_before
    return before, float(matrix.after[holds].sum()) / matrix.total_after


def _callers(stack: tuple[str, ...], label: str) -> list[str]:
    found = []
    for place, item in enumerate(stack):
        if item != label:
            continue
        above = [c for c in stack[:place] if series_of(c)[0] == "subroutine" and c != label]
        if above:
            found.append(above[-1])
    return found
