"""Cost shift: cost that only moved between subroutines is not a regression (FBDetect §5.4.6).

A cost domain is a group of stacks within which cost is likely to move. If a candidate's gCPU rose but its
domain's did not, the cost came from elsewhere in the domain. The paper's three checks are decided with the
uncertainty of both sides: a domain is judged only where its samples could distinguish the two cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.cost_shift.domains import Domain
from pipeline.analysis.cost_shift.expectation import ShareChange, on_earlier_days, sampling_variance
from pipeline.analysis.cost_shift.refactorings import Refactorings
from pipeline.analysis.cost_shift.stack_history import StackHistory
from pipeline.model import BoolArray, Decision, DomainDecision, DomainFinding, FloatArray


@dataclass(frozen=True, slots=True)
class CostShiftConfig:
    """Settings of the check."""

    negligible: float = 0.1  # share of the candidate's rise by which a domain may rise and hardly have risen
    mistaken: float = 0.005  # how often a true regression may be taken for a shift, by all domains together


_STEP = "cost_shift"

_NEARER = 0.5
"""Share of the candidate's rise below which the domain's rise is nearer to none than to all of it."""


_APPEARED = 0.1
"""Share of what a candidate costs below which it hardly existed before."""


_LIKELY = 1.645
"""Standard errors within which 95 % of what is just as large comes to lie below."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """A candidate and a domain: how far apart a shift and a regression are there, and what happened."""

    domain: Domain
    apart: float  # what the rest of the domain lost if the cost was shifted, and kept if it was not
    appeared: bool  # whether the candidate hardly existed before
    rest: ShareChange
    whole: ShareChange
    nearer: tuple[float, float] | None  # how far the domain rose nearer the change, and the error of that


def judge_cost_shift(
    history: StackHistory,
    own: BoolArray,
    domains: Sequence[Domain],
    refactorings: Refactorings | None = None,
    *,
    config: CostShiftConfig | None = None,
) -> tuple[Decision, tuple[DomainDecision, ...]]:
    """Drop a candidate whose cost came from the rest of one of its cost domains.

    Each domain that is quiet enough may take a true regression for a shift in an equal part of the cases that
    the config allows; which ones are is known from their noise alone.

    Args:
        history: Stacks around the change and on earlier days.
        own: (stacks,) the candidate's.
        domains: Its cost domains.
        refactorings: Its refactorings.
        config: Settings.

    Returns:
        The decision, by the domain that speaks most for a shift; and what each domain says, those left out
        that consist of nothing but the candidate.
    """
    config = config or CostShiftConfig()
    refactorings = refactorings or Refactorings()
    asked = (refactorings.renamed, refactorings.extracted, *domains, refactorings.moved)
    compared = _compare(history, own, [domain for domain in asked if domain is not None])
    able = [pair for pair in compared if not _is_too_large(pair, config.mistaken, config)]
    mistaken = config.mistaken / max(len(able), 1)
    decisions = []
    for pair in compared:
        # Of the labels beside it the one that lost most was chosen: chance had as many tries as there are.
        choices = refactorings.beside if pair.domain is refactorings.moved else 1
        decisions.append(_judge(pair, mistaken / choices, config))
        if (
            pair.domain is refactorings.renamed
            and decisions[-1].finding == "too large"
            and refactorings.one_to_one
        ):
            decisions.append(_judge_one_to_one(history, own, refactorings.one_to_one, mistaken, config))
    if refactorings.namesakes:
        choices = len(refactorings.namesakes)
        decisions.append(_judge_one_to_one(history, own, refactorings.namesakes, mistaken / choices, config))
    if not decisions:
        return Decision(_STEP, True, 1.0, config.negligible), ()
    worst = min(decisions, key=lambda said: (said.finding != "shifted", said.statistic - said.bound))
    if worst.finding == "shifted":
        shifted = Decision(_STEP, False, worst.statistic, worst.bound, "shifted", (worst.domain,))
        return shifted, tuple(decisions)
    return Decision(_STEP, True, worst.statistic, worst.bound), tuple(decisions)


def _judge(compared: _Compared, mistaken: float, config: CostShiftConfig) -> DomainDecision:
    """Return what one domain says of a candidate.

    If the candidate truly costs more, the rest of its domain keeps its cost, and loses only the share by
    which all shares shrink as the whole grows. If the cost was shifted, the rest lost what the candidate
    won. ``statistic`` is where the rest came to lie between the two: 0 is shifted, 1 is kept. So it is by
    how much of the candidate's rise the domain rose.

    The candidate is a shift if a rise of the domain by all of it can be ruled out, and one by a negligible
    part of it cannot. That labels vanished just where the candidate appeared rules the former out already:
    then the nearer of the two is taken.
    """
    domain, apart, rest, whole = compared.domain, compared.apart, compared.rest, compared.whole

    def decide(finding: DomainFinding, rose: float, bound: float) -> DomainDecision:
        return DomainDecision(domain.name, finding, whole.before, whole.after, rose, bound)

    if whole.before < config.negligible * whole.after:
        return decide("new", 1.0, config.negligible)
    if apart <= 0:  # it fell in these stacks, or the domain is nearly everything
        return decide("too large", 1.0, config.negligible)
    rose = 1 - rest.lost(mistaken) / apart
    kept = 1 - rest.margin(mistaken) / apart
    hardly = config.negligible + whole.margin(mistaken) / apart
    gone = domain.gone and compared.appeared
    large = _is_too_large(compared, mistaken, config)
    if large and not gone:
        return decide("too large", rose, kept)
    bound = min(_NEARER, hardly) if gone else min(_NEARER, hardly, kept)
    if rose >= bound:
        return decide("too large" if large else "rose", rose, bound)
    if rose < -hardly and not gone:  # it lost much more, for reasons of its own
        return decide("too large", rose, bound)
    if compared.nearer is not None:
        # What the rest lost it must have lost just then, and not some hours before or after.
        rose_near, error = compared.nearer
        if rose_near >= (bound_near := _NEARER + _LIKELY * error):
            return decide("rose", rose_near, bound_near)
    return decide("shifted", rose, bound)


def _is_too_large(compared: _Compared, mistaken: float, config: CostShiftConfig) -> bool:
    """Return whether a domain's own noise could hide the candidate's rise."""
    return compared.rest.margin(mistaken) >= (1 - config.negligible) * compared.apart


def _judge_one_to_one(
    history: StackHistory,
    own: BoolArray,
    pairs: Sequence[Domain],
    mistaken: float,
    config: CostShiftConfig,
) -> DomainDecision:
    """Return what the vanished label says whose cost is most like the candidate's.

    Of several that vanished at one place only one has become the candidate, so it must match both ways.
    """
    compared = _compare(history, own, pairs)
    best = min(compared, key=lambda pair: abs(pair.rest.lost(mistaken) - pair.apart))
    decision = _judge(best, mistaken, config)
    if decision.finding == "shifted" and decision.statistic < -decision.bound:
        return replace(decision, finding="too large")
    return decision


def _compare(history: StackHistory, own: BoolArray, domains: Sequence[Domain]) -> list[_Compared]:
    """Hold a candidate against each of its domains that has more than the candidate."""
    rests = [(domain, rows) for domain in domains if (rows := domain.rows & ~own).any()]
    masks = np.array([own, *(rows for _, rows in rests)], dtype=np.float64)
    before, after = masks @ history.before.T, masks @ history.after.T  # (1 + domains, 1 + days)
    own_before, own_after = float(before[0, 0]), float(after[0, 0])
    found = []
    for position, (domain, rows) in enumerate(rests, start=1):
        common = history.share_factor_outside(rows | own)
        if common is None and domain.gone:
            # All there is has another name: nothing is left to say what the whole did.
            common = 1.0
            apart = own_after - own_before
        elif common is None:
            # A true regression makes all else shrink, a shift does not.
            common = (1 - own_after) / max(1 - own_before, 1e-9)
            apart = own_after - own_before - float(before[position, 0]) * (1 - common)
        else:
            apart = own_after - own_before * common
        rest = _change(history, before[position], after[position], common)
        whole = _change(history, before[0] + before[position], after[0] + after[position], common)
        nearer = _nearer_change(history, own, rows, common)
        found.append(_Compared(domain, apart, own_before < _APPEARED * own_after, rest, whole, nearer))
    return found


def _nearer_change(
    history: StackHistory, own: BoolArray, rest: BoolArray, common: float
) -> tuple[float, float] | None:
    """Return by how much of the candidate's rise a domain rose close to the change, and the error of that."""
    if history.nearer is None or history.nearer_samples is None:
        return None
    before, after = history.nearer[:, rest].sum(axis=1).tolist()
    own_before, own_after = history.nearer[:, own].sum(axis=1).tolist()
    won = own_after - own_before * common
    if won <= 0:
        return None
    samples_before, samples_after = history.nearer_samples.tolist()
    variance = common**2 * sampling_variance(before, samples_before, history.dispersion)
    variance += sampling_variance(after, samples_after, history.dispersion)
    return 1 - (before * common - after) / won, math.sqrt(variance) / won


def _change(history: StackHistory, before: FloatArray, after: FloatArray, common: float) -> ShareChange:
    expected = float(before[0]) * common
    variance = common**2 * sampling_variance(
        float(before[0]), float(history.samples_before[0]), history.dispersion
    )
    variance += sampling_variance(float(after[0]), float(history.samples_after[0]), history.dispersion)
    usual, observed, days = on_earlier_days(before[1:] * history.share_factor[1:], after[1:])
    return ShareChange(
        before=float(before[0]),
        after=float(after[0]),
        expected=expected * (1 + usual),
        day_before=max(float(before[1]), float(after[1])) if len(before) > 1 else None,
        sampled=math.sqrt(variance),
        observed=expected * observed,
        days=days,
        daily_noise=history.daily_noise,
    )
