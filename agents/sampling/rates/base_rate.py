"""Conversion of samples taken at changing rates into samples of one base rate, which need no weights.

An agent samples faster when the profile changes, so plain sums of its samples overrepresent such times:
gCPU would be biased, and would step whenever rates change. A sample taken at rate f stands for 1/f of CPU
time (Horvitz and Thompson 1952). So samples of a rate f count b/f each, b being the base rate, which all
messages of the agent state as theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.profiles.formats import Stack, StackSamples
from agents.sampling.rates.pruning import round_counts


@dataclass(frozen=True, slots=True)
class RatedSamples:
    """Samples taken at one rate."""

    samples: StackSamples
    rate_hz: float  # samples a second and CPU
    duration_s: float


def at_base_rate(parts: Sequence[RatedSamples], base_hz: float, offset: float) -> dict[Stack, int]:
    """Return stacks with the samples that the base rate would have given.

    Each count is right on average. Its variance is at most that of samples taken at the base rate, unless
    some part was taken more slowly; ``effective_rate_hz`` is the base rate at which it is just that of all
    parts. Counts are rounded so that no part of the call tree strays by more than 1.

    Args:
        parts: Samples of one interval, taken one after the other or at the same time.
        base_hz: Samples a second and CPU.
        offset: From 0 to 1, uniformly random, drawn anew for each interval.
    """
    weighed: dict[Stack, float] = {}
    for part in parts:
        weight = base_hz / part.rate_hz
        for stack, count in part.samples.stacks.items():
            weighed[stack] = weighed.get(stack, 0.0) + weight * count
    return round_counts(weighed, offset)


def effective_rate_hz(parts: Sequence[RatedSamples]) -> float:
    """Return the uniform rate that would give as accurate shares as these parts.

    It is the harmonic mean of their rates by time, since (Σ w)² / Σ w² samples (Kish 1965) at weights of 1/f
    are T² / Σ (T_i / f_i): slowly sampled parts limit it. Counts at a base rate of this value
    have the variance of as many samples.
    """
    duration_s = sum(part.duration_s for part in parts)
    return duration_s / sum(part.duration_s / part.rate_hz for part in parts)
