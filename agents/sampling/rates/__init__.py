"""Sampling rates, and pruning of samples that are not worth their aggregation (Atys §5)."""

from agents.sampling.rates.divergence import (
    Divergence,
    compare_samples,
    expected_divergence,
    js_divergence,
    top_divergence,
)
from agents.sampling.rates.frequency import (
    FrequencyConfig,
    FrequencyState,
    adjust,
    adjust_as_published,
    config_for,
    first_state,
)
from agents.sampling.rates.pruning import (
    SHARES,
    Curve,
    PruningPlan,
    Trial,
    busy_threads,
    choose_share,
    fit_curve,
    percentage_error,
    plan_pruning,
    thin_stacks,
    try_pruning,
)

__all__ = [
    "SHARES",
    "Curve",
    "Divergence",
    "FrequencyConfig",
    "FrequencyState",
    "PruningPlan",
    "Trial",
    "adjust",
    "adjust_as_published",
    "busy_threads",
    "choose_share",
    "compare_samples",
    "config_for",
    "expected_divergence",
    "first_state",
    "fit_curve",
    "js_divergence",
    "percentage_error",
    "plan_pruning",
    "thin_stacks",
    "top_divergence",
    "try_pruning",
]
