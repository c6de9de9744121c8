"""Models × distributions × trials: errors of both kinds, and the detectable size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loadgen.bench.trials.simulate import DISTRIBUTIONS, Distribution, draw_covariate, draw_sides, matched
from pipeline.experiments.trials import (
    MODELS,
    ChoiceConfig,
    Estimates,
    Experiments,
    anytime_valid,
    choose,
    discard_warm_up,
)
from pipeline.experiments.trials.covariate import slope
from pipeline.experiments.trials.estimate import trial_differences
from pipeline.experiments.trials.student import paired_t_test
from pipeline.model import FloatArray

POINTS = 60
"""Points of a side in a trial: an hour of minutes."""

HISTORY = 168
"""A/A experiments of two weeks, one every two hours (§6.3)."""

SERVICES = 20
"""Services that the experiments are of, each with a history of its own."""

EFFECT_ERRORS = 3.0
"""An injected regression in standard errors of the mean of trials' differences: hard, not hopeless."""

ANYTIME = "anytime-valid, looked at after every trial"
ADAPTIVE = "adaptive choice"

CORRELATION = 0.7
"""Correlation of a covariate's differences with the metric's: it explains half of their variance."""

CONTROLLED = f"paired-t-test, covariate of correlation {CORRELATION}"


@dataclass(frozen=True, slots=True)
class ModelRow:
    """Result of one model on one distribution with ``trials`` trials."""

    distribution: str
    trials: int
    model: str
    regression: float
    """Relative extra cost of side B."""
    false_positives: float
    """Share of equal sides that differ significantly."""
    false_negatives: float
    """Share of regressions that are not found."""
    detectability: float
    """Median relative half-width of the interval."""


@dataclass(frozen=True, slots=True)
class _Service:
    """A/A experiments of two weeks, and the experiments that are judged."""

    past: Experiments
    equal: Experiments
    slower: Experiments


def measure(
    distribution: Distribution, trials: int, experiments: int, alpha: float, seed: int
) -> Iterator[ModelRow]:
    """Yield a row for each model, the sequential test, and the model that each service's history chooses."""
    rng = np.random.default_rng((seed, trials, list(DISTRIBUTIONS).index(distribution.name)))
    regression = EFFECT_ERRORS * _spread(distribution, rng) / trials**0.5
    services = [
        _draw(distribution, rng, trials, experiments // SERVICES, regression) for _ in range(SERVICES)
    ]
    chance = np.random.default_rng((seed, trials))
    results: dict[str, list[tuple[Estimates, Estimates]]] = {}
    for service in services:
        pairs = {
            name: (model.estimate(service.equal, alpha), model.estimate(service.slower, alpha))
            for name, model in MODELS.items()
            if service.equal.match is not None or not model.by_request
        }
        chosen = choose(service.past, ChoiceConfig(alpha, regression)).model
        if chosen:
            pairs[ADAPTIVE] = pairs[chosen]
        pairs[CONTROLLED] = _controlled(service, regression, alpha, chance)
        for name, pair in pairs.items():
            results.setdefault(name, []).append(pair)
        results.setdefault(ANYTIME, []).append(
            (_all_looks(service.equal, alpha), _all_looks(service.slower, alpha))
        )
    for name, estimates in results.items():
        yield _row(distribution.name, trials, name, regression, alpha, estimates)


def _draw(
    distribution: Distribution, rng: np.random.Generator, trials: int, experiments: int, regression: float
) -> _Service:
    history_sides, before, equal, slower = (
        _steady(*draw_sides(distribution, rng, (count, trials, POINTS), effect))
        for count, effect in ((HISTORY, 0.0), (HISTORY, 0.0), (experiments, 0.0), (experiments, regression))
    )
    # The choice is made by A/A experiments that are not themselves the history.
    old, new = (trial_differences(Experiments(*sides)).ravel()[:HISTORY] for sides in (before, history_sides))
    return _Service(
        *(
            Experiments(*sides, history, matched(distribution, (len(sides[0]), trials, POINTS)))
            for sides, history in ((history_sides, old), (equal, new), (slower, new))
        )
    )


def _controlled(
    service: _Service, regression: float, alpha: float, rng: np.random.Generator
) -> tuple[Estimates, Estimates]:
    """Return Student's answers on equal and on slower sides, adjusted by the service's A/A trials."""
    history, equal, slower = (
        trial_differences(experiments) for experiments in (service.past, service.equal, service.slower)
    )
    spread = regression * history.shape[1] ** 0.5 / EFFECT_ERRORS
    noise = (history, equal, slower - regression)
    before, *now = (draw_covariate(rng, differences / spread, CORRELATION) for differences in noise)
    theta = slope(history.reshape(1, -1), before.reshape(1, -1))[0]
    same, more = (
        paired_t_test(differences - theta * x, alpha)
        for differences, x in zip((equal, slower), now, strict=True)
    )
    return same, more


def _steady(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both sides without warm-up; a trial that never becomes steady stays as it is."""
    flat_a, flat_b = (side.reshape(-1, side.shape[-1]) for side in (a, b))
    rest_a, rest_b, _ = discard_warm_up(flat_a, flat_b)
    never = np.isnan(rest_a).all(axis=1, keepdims=True)
    return np.where(never, flat_a, rest_a).reshape(a.shape), np.where(never, flat_b, rest_b).reshape(b.shape)


def _spread(distribution: Distribution, rng: np.random.Generator) -> float:
    sides = draw_sides(distribution, rng, (1, 4000, POINTS))
    return float(trial_differences(Experiments(*sides)).std())


def _all_looks(experiments: Experiments, alpha: float) -> Estimates:
    """Return the estimates of the first look at which an experiment is significant, else of the last look."""
    differences = trial_differences(experiments)
    last = anytime_valid(differences[:, :1], alpha)
    for trials in range(2, differences.shape[1] + 1):
        now = anytime_valid(differences[:, :trials], alpha)
        done = last.p_value <= alpha
        last = Estimates(
            *(
                np.where(done, before, after)
                for before, after in zip(last.figures(), now.figures(), strict=True)
            )
        )
    return last


def _row(
    distribution: str,
    trials: int,
    model: str,
    regression: float,
    alpha: float,
    estimates: list[tuple[Estimates, Estimates]],
) -> ModelRow:
    equal, slower = (
        [np.concatenate(values) for values in zip(*(pair[side].figures() for pair in estimates), strict=True)]
        for side in (0, 1)
    )
    hits = (slower[3] <= alpha) & (slower[0] > 0)
    half = (equal[2] - equal[1]) / 2.0
    return ModelRow(
        distribution,
        trials,
        model,
        regression,
        float((equal[3] <= alpha).mean()),
        1.0 - float(hits.mean()),
        float(np.median(half)),
    )
