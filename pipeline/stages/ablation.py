"""Leaving steps out, to measure what each of them is worth; nothing of it is for production.

A step of the funnel is known by its name there; parts of the short-term detector have names of their own.
"""

from __future__ import annotations

from pipeline.analysis.detect.expected import NormaliseConfig
from pipeline.analysis.detect.seasonal.daily import CycleConfig
from pipeline.analysis.detect.short_term import ScanConfig
from pipeline.analysis.statistics.long_run_noise.batch_means import NoiseConfig

Without = frozenset[str]
"""Names of steps that are left out."""

NOTHING: Without = frozenset()

_NEVER = 10**9


def scan_config(without: Without) -> ScanConfig:
    """Return the short-term detector's settings without some of its parts."""
    return ScanConfig(
        normalise=normalise_config(without),
        week_before="week_before" not in without,
        count_likelihood="count_likelihood" not in without,
    )


def normalise_config(without: Without) -> NormaliseConfig:
    """Return how series are normalised without some of the detector's parts."""
    return NormaliseConfig(
        cycle=CycleConfig(min_days=_NEVER) if "daily_cycle" in without else CycleConfig(),
        noise=NoiseConfig(min_blocks=_NEVER) if "noise_at_scale" in without else NoiseConfig(),
    )
