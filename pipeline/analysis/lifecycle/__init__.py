"""Life of a reported regression: updated when it escalates or series join it, resolved when it is gone."""

from pipeline.analysis.lifecycle.courses import Courses, courses_of
from pipeline.analysis.lifecycle.decision import (
    Fallback,
    LifecycleConfig,
    LifecycleEvidence,
    confirm_fallbacks,
    courses_start,
    decide_updates,
    find_fallbacks,
    judged_since,
)
from pipeline.analysis.lifecycle.share_factor import largest_subroutines, share_factor
from pipeline.analysis.lifecycle.silence import (
    SilenceCase,
    SilenceDecision,
    SilenceEvidence,
    Spending,
    asks_for_stacks,
    decide_silence,
)
from pipeline.analysis.lifecycle.silenced_regression import (
    Silenced,
    SilencedNews,
    SilencedState,
    as_found_now,
    decide_news,
    share_left,
)
from pipeline.analysis.lifecycle.state import OpenRegression, Update, UpdateKind

__all__ = [
    "Courses",
    "Fallback",
    "LifecycleConfig",
    "LifecycleEvidence",
    "OpenRegression",
    "SilenceCase",
    "SilenceDecision",
    "SilenceEvidence",
    "Silenced",
    "SilencedNews",
    "SilencedState",
    "Spending",
    "Update",
    "UpdateKind",
    "as_found_now",
    "asks_for_stacks",
    "confirm_fallbacks",
    "courses_of",
    "courses_start",
    "decide_news",
    "decide_silence",
    "decide_updates",
    "find_fallbacks",
    "judged_since",
    "largest_subroutines",
    "share_factor",
    "share_left",
]
