"""Measurements of trials, and the estimates of a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.analysis.statistics.always_valid import t_p_values, t_radius
from pipeline.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Experiments:
    """Points of one metric in experiments of as many trials each.

    Args:
        a: (experiments, trials, points) of the old code, in the metric's unit; NaN where there is no point.
        b: The same of the new code; it may have another number of points.
        history: (tests,) relative differences (A' − A) / A of single trials in which both sides ran the same
            code (A/A tests), of the last two weeks.
        match: (experiments, trials, points of A), the column of the point of B that served the same request,
            -1 where none did; None if requests are not known.
    """

    a: FloatArray
    b: FloatArray
    history: FloatArray = field(default_factory=lambda: np.empty(0))
    match: IntArray | None = None

    @property
    def trials(self) -> int:
        """Number of trials of each experiment."""
        return int(self.a.shape[1])

    def slower(self, relative: float) -> Experiments:
        """Return artificial A/B experiments of these: side B costs more by a share (§4.2)."""
        return replace(self, b=self.b * (1.0 + relative))


@dataclass(frozen=True, slots=True)
class Estimates:
    """Relative difference of side B from side A in each experiment: (experiments,) each, 0.01 is 1 % more.

    ``low`` and ``high`` are infinite where the trials are too few to bound it.
    """

    difference: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    """Two-sided p-value: probability of at least this difference between two runs of the same code."""

    @classmethod
    def unbounded(cls, difference: FloatArray) -> Estimates:
        """Return estimates without bounds, of too few trials: these are never significant."""
        unknown = np.full(len(difference), np.inf)
        return cls(difference, -unknown, unknown, np.ones(len(difference)))

    @classmethod
    def unknown(cls, experiments: Experiments) -> Estimates:
        """Return estimates of experiments that could not be compared: no difference, without bounds."""
        return cls.unbounded(np.zeros(len(experiments.a)))

    def is_of(self, experiments: Experiments) -> bool:
        """Return whether there is a number for each experiment, and p-values lie between 0 and 1."""
        if any(np.shape(figure) != (len(experiments.a),) for figure in self.figures()):
            return False
        return bool(((self.p_value >= 0) & (self.p_value <= 1) & ~np.isnan(self.difference)).all())

    def figures(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return difference, low, high and p-value."""
        return self.difference, self.low, self.high, self.p_value


def trial_differences(experiments: Experiments) -> FloatArray:
    """Return each trial's difference of means, relative to the mean of side A: (experiments, trials).

    This is the vector M of §4.2, over one number per experiment so that levels of services compare.
    """
    a, b = np.nanmean(experiments.a, axis=2), np.nanmean(experiments.b, axis=2)
    result: FloatArray = (b - a) / np.nanmean(a, axis=1, keepdims=True)
    return result


def relative_of_roots(differences: FloatArray) -> FloatArray:
    """Return a relative difference of values, given that of their square roots; the order stays."""
    result: FloatArray = np.where(
        np.isfinite(differences), (1.0 + np.maximum(differences, -1.0)) ** 2 - 1.0, differences
    )
    return result


def anytime_valid(differences: FloatArray, alpha: float) -> Estimates:
    """Return the estimates after the last trial, with an error that holds at looks after every trial.

    The chance that any look at equal sides is significant is ``alpha`` in all (``statistics.always_valid``).

    Args:
        differences: (experiments, trials) relative differences, in the order of trials.
        alpha: Of all looks together.
    """
    experiments, trials = differences.shape
    mean = differences.mean(axis=1)
    if trials < 2:
        return Estimates.unbounded(mean)
    error = differences.std(axis=1, ddof=1) / np.sqrt(trials)
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = np.where(error > 0, (mean / error) ** 2, np.where(mean == 0, 0.0, np.inf))
    widest = float(t_radius(np.array([trials]), alpha)[0])
    half = widest * error if np.isfinite(widest) else np.full(experiments, np.inf)
    return Estimates(mean, mean - half, mean + half, t_p_values(squared, trials, alpha))
