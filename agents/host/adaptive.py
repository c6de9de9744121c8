"""Rates that follow how much the profile of all processes of a service on the host changes (Atys §5.2).

After each window, ``agents.sampling.rates.frequency`` returns the rate of the next one. It is rounded to a
rate of ``rate_at``: every rate is a stratum of its own downstream, so there should be few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.host.budget import MOST_LEVELS, rate_at
from agents.host.parts import Part

if TYPE_CHECKING:
    from agents.sampling.rates import FrequencyConfig, FrequencyState

WINDOW_S = 60.0
SAMPLES = 2000.0
"""Samples of a profile that is accurate enough: a share of a tenth is known to 7 % of its size."""

FASTEST_HZ = 67.0
"""Rate while a profile is not known: it gives one busy thread twice as many samples in a window."""

MOST_FUNCTIONS = 10_000
"""Most functions of a service; beyond, its state begins anew, as functions are never forgotten."""


@dataclass(slots=True)
class _Profile:
    """State of one service."""

    state: FrequencyState
    numbers: dict[str, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)  # samples of the present window


class AdaptiveRates:
    """The rates of services with the rate ``adaptive`` in their rules."""

    def __init__(self) -> None:
        self.rates_hz: dict[str, float] = {}
        self._profiles: dict[str, _Profile] = {}

    def count(self, parts: Iterable[Part]) -> None:
        """Count samples by the function at the leaf."""
        from agents.sampling.rates import (
            first_state,  # numpy and scipy, which agents at fixed rates do not need
        )

        for part in parts:
            service = part.identity.service
            profile = self._profiles.get(service)
            if profile is None or len(profile.numbers) > MOST_FUNCTIONS:
                profile = self._profiles[service] = _Profile(first_state(_config()))
            for stack, count in part.stacks.items():
                number = profile.numbers.setdefault(stack[-1], len(profile.numbers))
                profile.counts[number] = profile.counts.get(number, 0) + count

    def end_window(self) -> None:
        """Choose the rates of the next window from the samples of this one."""
        import numpy as np

        from agents.sampling.rates import adjust

        for service, profile in self._profiles.items():
            counts = np.zeros(len(profile.numbers))
            for number, count in profile.counts.items():
                counts[number] = count
            profile.counts = {}
            if len(counts):
                profile.state = adjust(profile.state, counts, WINDOW_S, _config())
            self.rates_hz[service] = stepped(profile.state.rate_hz)


def stepped(wanted_hz: float) -> float:
    """Return the rate of a step that is nearest to a rate."""
    level = round(math.log2(FASTEST_HZ / wanted_hz))
    return rate_at(FASTEST_HZ, min(max(level, 0), MOST_LEVELS))


def _config() -> FrequencyConfig:
    from agents.sampling.rates import config_for

    return config_for(SAMPLES, WINDOW_S)
