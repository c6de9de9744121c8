"""Worth of an experiment, against its machines: the change likeliest to cost most comes first (§3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Resources for experiments.

    Args:
        machines: That run trials, two at a time for each.
        trials: Of an experiment.
        trial_s: Seconds that one takes.
    """

    machines: int
    trials: int
    trial_s: float

    @property
    def experiments_per_day(self) -> float:
        """Number of experiments that the machines run in a day."""
        return self.machines / 2.0 * _DAY_S / (self.trials * self.trial_s)


@dataclass(frozen=True, slots=True)
class ExperimentWorth:
    """Whether a change is worth an experiment.

    Args:
        score: Expected share at stake.
        threshold: Score from which changes are tested, that as many are as the machines run.
        tested: Share of changes that can be tested.
        worth: Whether this one is among them, or touches a kept test.
        kept: How many kept tests it touches.
    """

    score: float
    threshold: float
    tested: float
    worth: bool
    kept: int = 0


def worth_of(
    score: float, past: Sequence[float], changes_per_day: float, budget: Budget, kept: int = 0
) -> ExperimentWorth:
    """Return whether a change is worth an experiment, by the scores of past changes (ServiceLab §3.1).

    A score of 0 (the change modifies no subroutine) never is. Every other change is if machines suffice for
    all or no past change is known, or if the change touches a kept test.

    Args:
        score: Of the change.
        past: Scores of past changes.
        changes_per_day: How many come.
        budget: The machines.
        kept: How many kept tests the change touches.
    """
    tested = min(budget.experiments_per_day / changes_per_day, 1.0) if changes_per_day > 0 else 1.0
    threshold = float(np.quantile(np.array(past), 1.0 - tested)) if past and tested < 1.0 else 0.0
    worth = score > 0 and (score >= threshold or kept > 0)
    return ExperimentWorth(score, threshold, tested, worth, kept)
