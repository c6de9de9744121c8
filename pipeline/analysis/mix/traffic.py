"""Traffic shift: what rises as all else that its callers do has more traffic, and is no slower.

gCPU is a share of the whole, so it moves with the mix of requests. Where a subroutine got slower, what its
callers do besides it stays as it was; where more requests come to its callers, that rises with it by one
factor. The paper takes traffic's cycles out by time alone (FBDetect §5.4.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.analysis.cost_shift.daily_noise import DailyNoise, fit_daily_noise
from pipeline.analysis.cost_shift.decision import CostShiftConfig
from pipeline.analysis.cost_shift.expectation import ShareChange, on_earlier_days
from pipeline.analysis.cost_shift.stack_history import StackHistory
from pipeline.analysis.mix.branch_mix import request_mix
from pipeline.analysis.mix.two_groups import TwoGroups, fit_two_groups
from pipeline.analysis.stacks import Beside, beside_callers, callees_beside, caller_nodes, deepest_of
from pipeline.analysis.statistics.robust import overdispersion
from pipeline.model import Candidate, Decision, FloatArray
from pipeline.model.frames import element

_STEP = "traffic_shift"

_ENOUGH = 30.0
"""Samples on either side from which on a callee says how far callees stray from their callers."""

_MANY = 30
"""Callees from which on together they say what traffic did."""

_OWN = 1 / 3
"""Share of a rise that may be its own, beside traffic that is twice as much."""

_OWN_OF_MANY = 1 / 2
"""The same where most of what rose at the time did so with traffic: then so did the others, it is likely."""


@dataclass(frozen=True, slots=True, eq=False)
class _Traffic:
    """What became of the traffic of a service's callers, and how far callees stray from it."""

    groups: TwoGroups  # of callers whose traffic moved, and the others
    dispersion: float  # of counts, in units of what independent samples make
    daily: DailyNoise


@dataclass(frozen=True, slots=True)
class _OwnPart:
    """How much of a rise is a candidate's own, and up to which part it is what others strayed by."""

    part: float
    beside_callers: float  # part that is left beside what its callers do, request types aside
    by_callers: float  # from what their callers do
    by_mix: float  # from what their request types do


def judge_traffic_shifts(
    history: StackHistory, candidates: Sequence[Candidate], config: CostShiftConfig | None = None
) -> list[tuple[Candidate, Decision]]:
    """Return each candidate with the decision whether its callers' traffic made it rise.

    Args:
        history: Stacks around the change points and on earlier days.
        candidates: Whose change points.
        config: Settings.
    """
    config = config or CostShiftConfig()
    nodes = caller_nodes(history.index)
    shares = np.stack([history.before, history.after])
    traffic = _learn(history, callees_beside(nodes, shares, _ENOUGH / _samples(history)[:, 0]))
    labels = [element(*candidate.series) for candidate in candidates]
    decisions = [Decision(_STEP, True, 1.0, _OWN)] * len(labels)
    if traffic is None:
        return list(zip(candidates, decisions, strict=True))
    parts: dict[int, _OwnPart] = {}
    asked = list(range(len(labels)))
    samples = _samples(history)[:, 0] / traffic.dispersion
    rising: set[str] = set()
    # What rises by itself says nothing of its callers' traffic. Each round finds one more at least.
    while asked:
        deepest = deepest_of(history.index, rising)
        for row in asked:
            beside = beside_callers(history.index, nodes, labels[row], shares, samples, deepest)
            if beside is not None:
                parts[row] = _own_part(history, beside, traffic, config)
                decisions[row] = _decide(parts[row], _OWN)
        alone = {labels[row] for row in asked if decisions[row].passed}
        rising |= alone
        asked = [row for row in asked if not decisions[row].passed] if alone else []
    if 2 * sum(not decision.passed for decision in decisions) > len(decisions):
        for row, part in parts.items():
            decisions[row] = _decide(part, _OWN_OF_MANY)
    return list(zip(candidates, decisions, strict=True))


def _own_part(history: StackHistory, beside: Beside, traffic: _Traffic, config: CostShiftConfig) -> _OwnPart:
    """Return how much of a candidate's rise is its own, and what others strayed by."""
    change = _change(history, beside, traffic)
    samples = _samples(history)[:, 0] / traffic.dispersion
    mix = request_mix(beside, samples, float(history.share_factor[0]), config.mistaken)
    # What rises makes all else shrink.
    won = change.after - change.before * (1 - change.after) / max(1 - change.before, 1e-9)
    if won <= 0:
        return _OwnPart(1.0, 1.0, 0.0, 0.0)
    return _OwnPart(
        part=(change.after - change.expected - mix.won) / won,
        beside_callers=(change.after - change.expected) / won,
        by_callers=config.negligible + math.hypot(change.margin(config.mistaken), mix.margin) / won,
        by_mix=config.negligible + mix.margin / won,
    )


def _decide(own: _OwnPart, most: float) -> Decision:
    """Drop a candidate of whose rise no more than a negligible part is its own, or what others strayed by.

    ``statistic`` is its own part: 0 if it rose with its callers, 1 if they did not rise.

    Args:
        own: Its own part.
        most: Largest part that may be taken for what others stray by from their callers.
    """
    by_callers = min(most, own.by_callers)
    bound = max(by_callers, own.by_mix)
    if own.part >= bound:
        return Decision(_STEP, True, own.part, bound)
    return Decision(
        _STEP, False, own.part, bound, "callers" if own.beside_callers < by_callers else "requests"
    )


def _change(history: StackHistory, beside: Beside, traffic: _Traffic) -> ShareChange:
    """Return what a candidate became, against what its callers' traffic lets expect."""
    logarithms, variances = _logarithms(history, beside)
    own = float(beside.own[0, 0].sum())
    factors = np.exp(traffic.groups.means(logarithms[0], traffic.dispersion * variances[0]))
    expected = (beside.own[0, 0] * factors).sum()
    by_caller, after = _expected(beside), beside.own[1].sum(axis=1)
    of_days = by_caller[1:].sum(axis=1)
    _, observed, days = on_earlier_days(of_days, after[1:])
    variance = traffic.dispersion * _variances(history, beside, by_caller)[0].sum()
    return ShareChange(
        before=own,
        after=float(after[0]),
        expected=float(expected),
        day_before=None,
        sampled=float(variance**0.5),
        observed=float(expected) * observed,
        days=days,
        daily_noise=traffic.daily,
    )


def _learn(history: StackHistory, callees: Beside) -> _Traffic | None:
    """Learn from all callees what traffic did, and how far one strays from its caller; None of too few."""
    if callees.own.shape[2] < _MANY:
        return None
    expected, after = _expected(callees), callees.own[1]
    variances = _variances(history, callees, expected)
    usable = variances > 0
    dispersion = overdispersion((after - expected)[usable] ** 2 / variances[usable])
    daily = fit_daily_noise(expected, after, history.samples_before, history.samples_after, dispersion)
    logarithms, sampling = (rows[0] for rows in _logarithms(history, callees))
    sampling = dispersion * sampling
    return _Traffic(fit_two_groups(logarithms, sampling), dispersion, daily)


def _logarithms(history: StackHistory, beside: Beside) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the factors of callers, and their sampling variances: (rows, callers)."""
    before, after = 1 / _samples(history)[:, :, None]
    rest = np.stack([beside.rest[0] + before / 2, beside.rest[1] + after / 2])
    return np.log(rest[1] / rest[0]), before / rest[0] + after / rest[1]


def _expected(beside: Beside) -> FloatArray:
    """Return a subroutine's share, had it moved as its callers' other callees did: (rows, callers)."""
    known = (beside.rest > 0).all(axis=0)
    factor = np.divide(beside.rest[1], beside.rest[0], out=np.ones(known.shape), where=known)
    return np.asarray(beside.own[0] * factor)


def _variances(history: StackHistory, beside: Beside, expected: FloatArray) -> FloatArray:
    """Return the sampling variance of what is beyond what is expected: (rows, callers)."""
    before, after = 1 / _samples(history)[:, :, None]
    # One sample more keeps a share of 0 from being certain.
    own, rest = beside.own[0] + before, np.stack([beside.rest[0] + before, beside.rest[1] + after])
    relative = before / own + before / rest[0] + after / rest[1]
    return np.asarray(expected**2 * relative + beside.own[1] * after)


def _samples(history: StackHistory) -> FloatArray:
    return np.stack([history.samples_before, history.samples_after])
