"""Sampling rate that follows how much a service's profile changes (Atys §5.2, Algorithm 1).

A window of samples goes in with the state, the next state comes out with the rate of the next window. Atys
compares each window with the one before. Two windows of few samples always differ, so noise keeps its rate
up, and slow changes never show. ``adjust`` compares the last windows with all samples since the last change,
subtracts sampling noise, and samples fast only while these samples are too few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agents.sampling.rates.divergence import TOP, compare_samples, expected_divergence, top_divergence
from pipeline.model import FloatArray

_FALL = 50.0
"""Ratio of the samples of an accurate profile to those of a window while nothing changes."""

_LEAST_SAMPLES = 50.0
"""Least samples of a window: with fewer, only the hottest function could be compared."""


@dataclass(frozen=True, slots=True)
class FrequencyConfig:
    """Settings of the sampling rate and its changes."""

    lowest_hz: float = 10.0
    highest_hz: float = 1000.0
    theta: float = 0.05  # bits from which a change counts: 0.05 for Python, 0.5 for Java in Atys §6.4
    decay: float = 0.8  # λ of Atys §6.4
    patience: int = 5  # windows before the rate falls (Atys §5.2); as many are compared together, 1 at least
    top: int = TOP
    significance: float = 1e-4  # share of unchanged windows that is taken for changed
    samples: float = 10_000.0  # samples of a profile that is accurate enough
    budget_hz: float = math.inf  # largest mean rate over ``budget_s``
    budget_s: float = 3600.0


def config_for(samples: float, window_s: float, budget_hz: float = math.inf) -> FrequencyConfig:
    """Return the settings that keep the profile of each window as accurate as one of ``samples`` samples.

    A change counts if it is larger than the noise of such a profile. Until half as many samples of a profile
    are known, a window has twice as many; then the rate falls to a fiftieth, but no window has less than
    ``_LEAST_SAMPLES``, since changes must still be seen.

    Args:
        samples: Of a profile that is accurate enough.
        window_s: Length of a window, in seconds.
        budget_hz: Mean rate that is not exceeded.
    """
    return FrequencyConfig(
        lowest_hz=max(samples / _FALL, _LEAST_SAMPLES) / window_s,
        highest_hz=2 * samples / window_s,
        theta=expected_divergence(samples),
        samples=samples,
        budget_hz=budget_hz,
    )


@dataclass(frozen=True, slots=True)
class FrequencyState:
    """State that is kept from window to window."""

    rate_hz: float  # of the next window
    quiet: int = 0  # windows since the last change
    reference: FloatArray = field(default_factory=lambda: np.zeros(0))  # samples since the last change
    recent: tuple[FloatArray, ...] = ()  # the last windows, the latest at the end, not in the reference yet
    credit: float = 0.0  # samples of the budget that were not taken

    @property
    def known(self) -> FloatArray:
        """Samples of each function since the last change, old ones faded: (functions,)."""
        return _sum([self.reference, *self.recent])

    @property
    def shares(self) -> FloatArray:
        """The share of each function in the profile as it is now: (functions,)."""
        counts = self.known
        return np.asarray(counts / max(counts.sum(), 1e-300))


def first_state(config: FrequencyConfig) -> FrequencyState:
    """Return the state before the first window, which is sampled as fast as the budget lets."""
    return FrequencyState(min(config.highest_hz, max(config.budget_hz, config.lowest_hz)))


def adjust(
    state: FrequencyState, counts: FloatArray, window_s: float, config: FrequencyConfig
) -> FrequencyState:
    """Return the state after a window, by the divergence beyond sampling noise.

    Args:
        state: Before the window.
        counts: Samples of each function in it, by the number that the caller gives functions as they come:
            (functions,).
        window_s: Length of the window, in seconds.
        config: Settings.
    """
    windows = (*state.recent, counts)
    changed = _changed_since(state.reference, windows, config)
    if changed:
        following = replace(state, quiet=0, reference=np.zeros(0), recent=windows[-changed:])
    else:
        old, recent = windows[: -config.patience], windows[-config.patience :]
        reference = _faded(_sum([state.reference, *old]), config.samples)
        following = replace(state, quiet=state.quiet + 1, reference=reference, recent=recent)
    few = following.known.sum() < config.samples / 2
    wanted_hz = config.highest_hz if few else state.rate_hz * config.decay
    return _within_budget(following, wanted_hz, window_s, config)


def adjust_as_published(
    state: FrequencyState, counts: FloatArray, window_s: float, config: FrequencyConfig
) -> FrequencyState:
    """Return the state after a window by Atys' Algorithm 1: by the divergence from the window before.

    The profile of the highest rate since the last change stands for those after it (Atys §5.2); the last
    window is added to it.

    Args:
        state: Before the window.
        counts: Samples of each function in it: (functions,).
        window_s: Length of the window, in seconds.
        config: Settings.
    """
    changed = bool(state.recent) and top_divergence(state.recent[-1], counts, config.top) > config.theta
    quiet = 0 if changed else state.quiet + 1
    wanted_hz = state.rate_hz
    if changed:
        wanted_hz = state.rate_hz / config.decay
    elif quiet > config.patience:
        wanted_hz = state.rate_hz * config.decay
    best = max((state.reference, *state.recent), key=np.sum)
    reference = best if not changed and best.sum() > counts.sum() else np.zeros(0)
    following = replace(state, quiet=quiet, reference=reference, recent=(counts,))
    return _within_budget(following, wanted_hz, window_s, config)


def _changed_since(reference: FloatArray, windows: Sequence[FloatArray], config: FrequencyConfig) -> int:
    """Return how many of the last windows differ from all before them, 0 if none do."""
    for span in sorted({1, len(windows)}):
        early = _sum([reference, *windows[: len(windows) - span]])
        comparison = compare_samples(early, _sum(windows[-span:]), config.top)
        if comparison.corrected > config.theta and comparison.p_value < config.significance:
            return span
    return 0


def _faded(counts: FloatArray, most: float) -> FloatArray:
    """Return samples with the same shares, scaled down to a bound: old samples fade as new ones come."""
    total = counts.sum()
    return np.asarray(counts * (most / total) if total > most else counts)


def _sum(parts: Sequence[FloatArray]) -> FloatArray:
    total = np.zeros(max(map(len, parts)))
    for part in parts:
        total[: len(part)] += part
    return total


def _within_budget(
    state: FrequencyState, wanted_hz: float, window_s: float, config: FrequencyConfig
) -> FrequencyState:
    """Return the state with the wanted rate, or the rate that the budget and its unused part allow."""
    rate_hz = min(max(wanted_hz, config.lowest_hz), config.highest_hz)
    if math.isinf(config.budget_hz):
        return replace(state, rate_hz=rate_hz)
    most = config.budget_hz * config.budget_s
    credit = min(state.credit + (config.budget_hz - state.rate_hz) * window_s, most)
    allowed_hz = config.budget_hz + max(credit, 0.0) / window_s
    return replace(
        state, rate_hz=max(min(rate_hz, allowed_hz), min(config.lowest_hz, config.budget_hz)), credit=credit
    )
