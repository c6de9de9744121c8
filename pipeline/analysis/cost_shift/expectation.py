"""What some stacks' share comes to be without a change, and how far chance takes it from there."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from pipeline.analysis.cost_shift.daily_noise import MIN_DAYS, DailyNoise
from pipeline.model import FloatArray


@dataclass(frozen=True, slots=True)
class ShareChange:
    """What the change did to some stacks: shares, against what is expected of them."""

    before: float
    after: float
    expected: float  # the share after, had nothing happened to these stacks
    day_before: float | None  # the larger share at these hours of the nearest earlier day
    sampled: float  # standard error of after - expected by sampling
    observed: float  # standard error by what earlier days differ
    days: int
    daily_noise: DailyNoise

    def margin(self, mistaken: float) -> float:
        """Return how far from what is expected the stacks come to lie by chance, one-sided.

        It is never less than what sampling makes.
        """
        error, degrees_of_freedom = self.daily_noise.weigh(
            sampled=self.sampled, observed=self.observed, expected=self.expected, days=self.days
        )
        normal = -float(special.ndtri(mistaken))
        if math.isinf(degrees_of_freedom):
            return error * normal
        quantile = -float(special.stdtrit(degrees_of_freedom, mistaken))
        # What is usual at these hours is itself a mean of few days.
        return max(error * quantile, self.sampled * normal) * math.sqrt(1 + 1 / self.days)

    def lost(self, mistaken: float) -> float:
        """Return what the change took from the stacks.

        What they had more than on the day before, beyond chance, was there for some hours only: a spike that
        ends gives its cost to nobody.
        """
        if self.day_before is None:
            return self.expected - self.after
        return min(self.expected, self.day_before + self.margin(mistaken)) - self.after


def on_earlier_days(expected: FloatArray, after: FloatArray) -> tuple[float, float, int]:
    """Return by how much stacks change at these hours, how much days differ, both relative; and the days."""
    known = expected > 0
    days = int(known.sum())
    if days < MIN_DAYS:
        return 0.0, 0.0, days
    expected, after = expected[known], after[known]
    usual = float(after.sum() / expected.sum()) - 1
    left = after - expected * (1 + usual)
    return usual, math.sqrt(float(left @ left) / (days - 1)) / float(expected.mean()), days


def sampling_variance(share: float, samples: float, dispersion: float) -> float:
    """Return the variance of a share; one sample more keeps a share of 0 from being certain."""
    return dispersion * (share * (1 - share) + 1 / samples) / samples
