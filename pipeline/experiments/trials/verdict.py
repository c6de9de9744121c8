"""Verdict of an experiment on all metrics, without warm-ups, by chosen models, at a false discovery rate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.experiments.trials.choice import Choice, ChoiceConfig, choose
from pipeline.experiments.trials.covariate import Adjustment, Covariate, adjust
from pipeline.experiments.trials.decision import Bounds, MetricDecision, decide
from pipeline.experiments.trials.estimate import Estimates, Experiments, anytime_valid, trial_differences
from pipeline.experiments.trials.models import BY_REQUEST, MODELS, Model
from pipeline.experiments.trials.needed import trials_needed
from pipeline.experiments.trials.pairs import (
    PairedRequests,
    count_requests,
    match_requests,
    paired_points,
    request_differences,
)
from pipeline.experiments.trials.warmup import discard_warm_up
from pipeline.model import FloatArray, IntArray

FEWEST_EXPERIMENTS = 20
"""Fewest A/A experiments that choose a model: fewer cannot show that it holds 5 %."""

_OF_TRIALS = "paired-t-test"

FEWEST_TRIALS = 3
"""Fewest trials that are compared by their own spread, if there is no history."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Points of one metric: (trials, points) each, in the order of time, NaN after a trial's last one."""

    a: FloatArray
    b: FloatArray
    requests: tuple[IntArray, IntArray] | None = None
    """Numbers of the requests of A's and of B's points, -1 for none; None if they are not known."""
    covariate: Covariate | None = None
    """Covariate that may explain the differences of trials."""


@dataclass(frozen=True, slots=True)
class SideDifferences:
    """The sides of one metric, and their differences relative to side A."""

    mean_a: float
    mean_b: float
    difference: float = np.nan
    low: float = -np.inf
    high: float = np.inf
    p_value: float = 1.0


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """Verdict on one metric, and its basis."""

    metric: str
    decision: MetricDecision
    bounds: Bounds
    measured: SideDifferences
    """Its p-value is adjusted for the number of metrics (Benjamini and Hochberg)."""
    model: str
    choice: Choice | None
    """Choice of the model; None if the model was given, or there are too few A/A tests."""
    trials: int
    trials_needed: int | None
    """Trials that exclude a regression of the threshold, by trials or history; None if unknown."""
    warm_up: tuple[int, ...]
    """Discarded points of each trial."""
    unsteady: tuple[int, ...]
    """Indexes of trials that never became stationary and were left out."""
    requests: PairedRequests | None = None
    """Request counts of trials that count; None if requests are not known."""
    adjustment: Adjustment | None = None
    """Effect of the covariate; None if there is none."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A metric without its warm-up."""

    experiments: Experiments
    warm_up: tuple[int, ...]
    unsteady: tuple[int, ...]
    requests: PairedRequests | None
    covariate: Covariate | None


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Models that judge metrics."""

    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)
    """Names of the models to choose from."""
    model: str | None = None
    """Name of one model for all metrics, instead of the best of each."""
    sequential: bool = False
    """Whether there is a look after every trial: the errors hold for all looks together."""
    kept: Mapping[str, Choice] = field(default_factory=dict)
    """Choices of metrics that are still valid: these are not made again."""
    missed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By metric and model, regressions that passed trials and that production found."""


def judge_trials(
    metrics: Mapping[str, Sides],
    bounds: Mapping[str, Bounds],
    history: Mapping[str, Sides],
    config: ModelConfig = ModelConfig(),  # noqa: B008 - frozen
) -> list[MetricVerdict]:
    """Return a verdict for each metric of one experiment.

    Args:
        metrics: Name → points of both sides.
        bounds: Name → what counts as a regression.
        history: Name → points of A/A trials of the last two weeks; may lack any.
        config: The models; by default each metric gets the one that its history supports.
    """
    judged = []
    for name, sides in metrics.items():
        prepared = _prepare(sides)
        if _has_level(prepared.experiments):
            earlier = _prepare(history[name]) if name in history else None
            if earlier and not _has_level(earlier.experiments):
                earlier = None
            judged.append(_judge_one(name, bounds[name], prepared, earlier, config))
        else:
            judged.append(_undecided(name, bounds[name], sides, prepared))
    if not judged:
        return []
    from scipy import stats  # slow to import, and every worker of rootcause imports this module

    adjusted = stats.false_discovery_control([verdict.measured.p_value for verdict in judged])
    return [_decided(verdict, float(p_value)) for verdict, p_value in zip(judged, adjusted, strict=True)]


def differences_by_trial(sides: Sides) -> FloatArray:
    """Return the relative difference of each trial without its warm-up: (trials,).

    It is NaN for a trial that never becomes steady, and for all trials if the rest of side A is 0.
    """
    prepared = _prepare(sides)
    differences = np.full(len(sides.a), np.nan)
    if _has_level(prepared.experiments):
        steady = np.delete(np.arange(len(differences)), prepared.unsteady)
        differences[steady] = trial_differences(prepared.experiments)[0]
    return differences


def steady_differences(sides: Sides) -> FloatArray:
    """Return the relative differences of trials that become steady; see ``differences_by_trial``."""
    differences = differences_by_trial(sides)
    steady: FloatArray = differences[~np.isnan(differences)]
    return steady


def with_marked(verdict: MetricVerdict, marked: Sequence[int]) -> MetricVerdict:
    """Return a verdict whose warm-up includes the points that were left out before: one number a trial."""
    lost = (points + before for points, before in zip(verdict.warm_up, marked, strict=True))
    return replace(verdict, warm_up=tuple(lost))


def _prepare(sides: Sides) -> Prepared:
    a, b, lost = discard_warm_up(sides.a, sides.b)
    steady = ~(np.isnan(a).all(axis=1) | np.isnan(b).all(axis=1))
    experiments = Experiments(a[steady][None], b[steady][None])
    counts = None
    if sides.requests:
        of_a, of_b = (side[steady] for side in sides.requests)
        match = match_requests(of_a, of_b)
        experiments = replace(experiments, match=match[None])
        compared = int((~np.isnan(paired_points(experiments)[0])).sum())
        counts = count_requests((of_a, of_b), match, compared)
    covariate = sides.covariate
    if covariate:
        covariate = replace(covariate, differences=covariate.differences[steady])
    unsteady = tuple(np.flatnonzero(~steady).tolist())
    return Prepared(experiments, tuple(lost.tolist()), unsteady, counts, covariate)


def _has_level(experiments: Experiments) -> bool:
    """Return whether any trials are left and side A is not 0: differences are a share of it."""
    return experiments.trials > 0 and bool(np.nanmax(experiments.a) > 0)


def _judge_one(
    name: str,
    bounds: Bounds,
    prepared: Prepared,
    before: Prepared | None,
    config: ModelConfig,
) -> MetricVerdict:
    experiments, earlier = prepared.experiments, before.experiments if before else None
    means = (float(np.nanmean(side)) for side in (experiments.a, experiments.b))
    adjusted = None
    if prepared.covariate:
        alone = not config.sequential and config.model in (None, _OF_TRIALS)
        usual = before.covariate if before else None
        adjusted = adjust(experiments, earlier, prepared.covariate, usual, bounds.alpha if alone else None)
        experiments, earlier = adjusted.experiments, adjusted.past
    if earlier is not None:
        experiments = replace(experiments, history=trial_differences(earlier)[0])
        earlier = earlier if experiments.match is not None else replace(earlier, match=None)
    if adjusted and adjusted.estimates:
        compared = _Compared(_OF_TRIALS, None, adjusted.estimates)
    else:
        compared = _compare(name, experiments, earlier, bounds, config)
    strays = _strays(experiments, earlier, by_request=compared.model == BY_REQUEST)
    return MetricVerdict(
        name,
        MetricDecision.NOT_ENOUGH,
        bounds,
        SideDifferences(*means, *(float(value[0]) for value in compared.estimates.figures())),
        compared.model,
        compared.choice,
        experiments.trials,
        trials_needed(strays, bounds.threshold, bounds.alpha, sequential=config.sequential),
        prepared.warm_up,
        prepared.unsteady,
        prepared.requests,
        adjusted.by if adjusted else None,
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    model: str
    choice: Choice | None
    estimates: Estimates


def _compare(
    name: str,
    experiments: Experiments,
    earlier: Experiments | None,
    bounds: Bounds,
    config: ModelConfig,
) -> _Compared:
    """Compare the sides by the given or chosen model, or by the sequential test."""
    if config.sequential:
        estimates = anytime_valid(trial_differences(experiments), bounds.alpha)
        return _Compared("anytime-valid t-test", None, estimates)
    choice, model = None, config.model
    if model is None:
        chosen_by = ChoiceConfig(bounds.alpha, bounds.threshold, missed=config.missed.get(name, {}))
        choice = config.kept.get(name) or _choose(earlier, experiments.trials, chosen_by, config.models)
        model = (choice.model if choice else None) or _usual_model(experiments)
    return _Compared(model, choice, config.models[model].estimate(experiments, bounds.alpha))


def _strays(experiments: Experiments, earlier: Experiments | None, *, by_request: bool) -> FloatArray:
    """Return the differences of trials of equal sides: past ones, or else contrasts of these trials."""
    differences_of = request_differences if by_request else trial_differences
    if earlier is not None:
        usual: FloatArray = differences_of(earlier)[0]
        usual = usual[~np.isnan(usual)]
        if len(usual):
            return usual
    now = differences_of(experiments)[0]
    return _contrasts(now[~np.isnan(now)])


def _contrasts(differences: FloatArray) -> FloatArray:
    """Return numbers around 0 with the spread of trials: (trials - 1,), one for each degree of freedom.

    Each is a trial against the mean of those before it (Helmert). Their squares add up to those around the
    mean of all.
    """
    before = np.arange(1, len(differences))
    result: FloatArray = np.sqrt(before / (before + 1.0)) * (
        differences[1:] - np.cumsum(differences)[:-1] / before
    )
    return result


def _choose(
    earlier: Experiments | None, trials: int, config: ChoiceConfig, models: Mapping[str, Model]
) -> Choice | None:
    """Choose by every other A/A trial, in groups of the experiment's size; the others are the history."""
    if earlier is None:
        return None
    tested, reference = (slice(first, None, 2) for first in (0, 1))
    groups = earlier.a[0, tested].shape[0] // trials
    if groups < FEWEST_EXPERIMENTS:
        return None
    a, b = (side[0, tested][: groups * trials].reshape(groups, trials, -1) for side in (earlier.a, earlier.b))
    with_level = (a > 0).any(axis=(1, 2))
    if with_level.sum() < FEWEST_EXPERIMENTS:
        return None
    match = earlier.match
    if match is not None:
        match = match[0, tested][: groups * trials].reshape(groups, trials, -1)[with_level]
    history = trial_differences(Experiments(earlier.a[:, reference], earlier.b[:, reference]))[0]
    experiments = Experiments(a[with_level], b[with_level], history, match)
    return choose(experiments, config, models.values())


def _usual_model(experiments: Experiments) -> str:
    """Return the model if no history chooses one: that of pairs, if half of the points have a pair.

    Otherwise trials against each other, if there are some.
    """
    if experiments.match is not None:
        pairs = int((~np.isnan(paired_points(experiments)[0])).sum())
        if pairs and 2 * pairs >= int((~np.isnan(experiments.a)).sum()):
            return BY_REQUEST
    return _OF_TRIALS if experiments.trials >= FEWEST_TRIALS else "t-test-none"


def _undecided(name: str, bounds: Bounds, sides: Sides, prepared: Prepared) -> MetricVerdict:
    finite = (side[~np.isnan(side)] for side in (sides.a, sides.b))
    measured = SideDifferences(*(float(points.mean()) if len(points) else math.nan for points in finite))
    steady = (prepared.warm_up, prepared.unsteady, prepared.requests)
    return MetricVerdict(name, MetricDecision.NOT_ENOUGH, bounds, measured, "none", None, 0, None, *steady)


def _decided(verdict: MetricVerdict, p_value: float) -> MetricVerdict:
    """Return the decision by an adjusted p-value, and the trials needed only if there are fewer."""
    measured = replace(verdict.measured, p_value=p_value)
    figures = (measured.difference, measured.low, measured.high, p_value)
    (decision,) = decide(Estimates(*(np.array([figure]) for figure in figures)), verdict.bounds)
    needed = verdict.trials_needed
    if decision is MetricDecision.NOT_ENOUGH and needed and needed <= verdict.trials:
        needed = None
    return replace(verdict, measured=measured, decision=decision, trials_needed=needed)
