"""Choice of the model for a metric of a service: the best that holds its false positives (§4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from pipeline.experiments.trials.estimate import Experiments
from pipeline.experiments.trials.models import MODELS, Model


@dataclass(frozen=True, slots=True)
class ChoiceConfig:
    """Criteria of the choice of a model."""

    alpha: float = 0.05
    """Significance level of each test, and the share of A/A experiments that may differ."""
    regression: float = 0.01
    """Relative regression that is added to side B of A/A experiments: artificial A/B experiments."""
    certainty: float = 0.95
    """A model is left out if its false positives exceed ``alpha`` by more than chance explains."""
    missed: Mapping[str, int] = field(default_factory=dict)
    """By model, production regressions of at least this size that the model passed."""


@dataclass(frozen=True, slots=True)
class Score:
    """Performance of a model on experiments whose truth is known."""

    model: str
    false_positives: float
    """Share of A/A experiments that differ significantly."""
    false_negatives: float
    """Share of artificial A/B experiments that do not differ, or in the wrong direction; each regression that
    production found after a pass counts as one more."""
    detectability: float
    """Median relative half-width of the interval; infinite if trials are too few."""
    holds: bool
    """Whether its false positives are within the bound."""

    @property
    def total(self) -> float:
        """Sum of both error rates: less is better."""
        return self.false_positives + self.false_negatives


@dataclass(frozen=True, slots=True)
class Choice:
    """A model with the scores of all."""

    model: str | None
    """None if no model holds the bound."""
    scores: tuple[Score, ...]
    experiments: int
    """A/A experiments by which it was chosen."""


def score(model: Model, experiments: Experiments, config: ChoiceConfig) -> Score:
    """Return the score of a model on A/A experiments, and on the same with a regression on side B."""
    equal = model.estimate(experiments, config.alpha)
    slower = model.estimate(experiments.slower(config.regression), config.alpha)
    differs = int(np.sum(equal.p_value <= config.alpha))
    detected = (slower.p_value <= config.alpha) & (slower.difference > 0)
    count = len(equal.p_value)
    # Chance of as many false positives or more, if the model holds its alpha.
    chance = float(special.bdtrc(differs - 1, count, config.alpha)) if differs else 1.0
    return Score(
        model.name,
        differs / count,
        1.0 - float(detected.sum()) / (count + config.missed.get(model.name, 0)),
        float(np.median((equal.high - equal.low) / 2.0)),
        chance > 1.0 - config.certainty,
    )


def choose(
    experiments: Experiments, config: ChoiceConfig, models: Iterable[Model] = tuple(MODELS.values())
) -> Choice:
    """Choose a model by periodic A/A experiments of a service's metric.

    Among models that hold the bound on false positives, the one with the fewest errors of either kind wins;
    of equal ones the one with the narrowest interval. One that finds no regression at all comes after all
    that find some, though it never errs on equal sides. Models that need a history, or requests, are left out
    where there are none, and so are those that only apply when named.

    Args:
        experiments: A/A experiments, each with as many trials as a real one will have.
        config: The bound, and the regression that is to be found.
        models: To choose from.
    """
    scores = tuple(
        score(model, experiments, config)
        for model in models
        if not model.by_name
        and (len(experiments.history) or not model.from_history)
        and (experiments.match is not None or not model.by_request)
    )
    allowed = [model_score for model_score in scores if model_score.holds]
    best = min(
        allowed,
        key=lambda model_score: (
            model_score.false_negatives >= 1.0,
            model_score.total,
            model_score.detectability,
        ),
        default=None,
    )
    return Choice(best.model if best else None, scores, len(experiments.a))
