"""What becomes of a reported regression: updated as it escalates or is joined, resolved as it is gone."""

from pipeline.lifecycle.courses import Courses, courses_of
from pipeline.lifecycle.decision import (
    Fallback,
    LifecycleConfig,
    LifecycleEvidence,
    confirm_fallbacks,
    courses_start,
    decide_updates,
    find_fallbacks,
    judged_since,
)
from pipeline.lifecycle.share_factor import largest_subroutines, share_factor
from pipeline.lifecycle.state import OpenRegression, Update, UpdateKind

__all__ = [
    "Courses",
    "Fallback",
    "LifecycleConfig",
    "LifecycleEvidence",
    "OpenRegression",
    "Update",
    "UpdateKind",
    "confirm_fallbacks",
    "courses_of",
    "courses_start",
    "decide_updates",
    "find_fallbacks",
    "judged_since",
    "largest_subroutines",
    "share_factor",
]
