"""Filters: they pass candidates that are new, lasting regressions of a size that matters."""

from pipeline.analysis.filters.decision import Filter, Filtered, decide_filters, load_filters
from pipeline.analysis.filters.evidence import (
    ChangeSpans,
    EarlierRegression,
    FilterCase,
    FilterConfig,
    FilterEvidence,
)

__all__ = [
    "ChangeSpans",
    "Filter",
    "FilterCase",
    "FilterConfig",
    "FilterEvidence",
    "Filtered",
    "EarlierRegression",
    "decide_filters",
    "load_filters",
]
