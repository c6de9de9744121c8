"""Comparison of two releases of a service by gCPU: the changed series, their sizes and certainty."""

from pipeline.releases.gcpu.contrast import Contrast, Observations, measure
from pipeline.releases.gcpu.decision import Decided, GcpuCompareConfig, State, decide
from pipeline.releases.gcpu.explained import Changes, explained_by
from pipeline.releases.gcpu.matching import Evidence, Matched, Samples, Unit, collect, match

__all__ = [
    "Changes",
    "GcpuCompareConfig",
    "Contrast",
    "Decided",
    "Evidence",
    "Matched",
    "Observations",
    "Samples",
    "State",
    "Unit",
    "collect",
    "decide",
    "explained_by",
    "match",
    "measure",
]
