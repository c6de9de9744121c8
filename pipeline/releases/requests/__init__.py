"""Releases compared by their requests and one metric, without profiles (Liao et al. 2021)."""

from pipeline.releases.requests.compare import (
    ReleaseComparison,
    RequestCompareConfig,
    compare_releases,
    periods_needed,
    seen_load,
)
from pipeline.releases.requests.costs import BASE, EVERY, CostChange, CostComparison, compare_costs, spelt
from pipeline.releases.requests.course import ModelCourse, model_course
from pipeline.releases.requests.looks import LookConfig, Looked, LooksMade, look, next_look, periods_ahead
from pipeline.releases.requests.metric_rules import MetricRule, ReleaseMetrics
from pipeline.releases.requests.outlook import RequestOutlook, TypeOutlook, foresee
from pipeline.releases.requests.periods import NotCompared, ReleasePeriods, Releases, align, joined
from pipeline.releases.requests.resolution import merged, periods_a_point
from pipeline.releases.requests.rollout import (
    ReleaseRun,
    RequestRollout,
    Succession,
    build_rollout,
    build_run,
    find_run,
    find_succession,
    periods_begun,
)
from pipeline.releases.requests.selection import Selection, choose_types

__all__ = [
    "BASE",
    "EVERY",
    "RequestCompareConfig",
    "CostChange",
    "CostComparison",
    "LookConfig",
    "Looked",
    "LooksMade",
    "MetricRule",
    "ModelCourse",
    "NotCompared",
    "ReleasePeriods",
    "ReleaseComparison",
    "ReleaseMetrics",
    "Releases",
    "RequestOutlook",
    "RequestRollout",
    "ReleaseRun",
    "Selection",
    "Succession",
    "TypeOutlook",
    "align",
    "build_rollout",
    "build_run",
    "choose_types",
    "compare_costs",
    "compare_releases",
    "find_run",
    "find_succession",
    "foresee",
    "joined",
    "look",
    "merged",
    "model_course",
    "next_look",
    "periods_a_point",
    "periods_ahead",
    "periods_begun",
    "periods_needed",
    "seen_load",
    "spelt",
]
