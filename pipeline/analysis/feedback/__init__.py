"""Learning from people's verdicts: states of events, precision, thresholds, priors of suspects."""

from pipeline.analysis.feedback.causes import Confirmation, LearningConfig, learn_ranking
from pipeline.analysis.feedback.duplicates import follow_originals, merge_duplicates
from pipeline.analysis.feedback.expectation import EXPECTED_S, expectation_of
from pipeline.analysis.feedback.precision import (
    RIGHT,
    WRONG,
    AnsweredEvent,
    Precision,
    Share,
    is_right,
    precision_table,
    wilson,
)
from pipeline.analysis.feedback.state import (
    FixState,
    Reported,
    confirmed_causes,
    fix_state,
    latest_verdicts,
    original_of,
)
from pipeline.analysis.feedback.thresholds import Proposal, Roc, ThresholdConfig, propose_thresholds, roc

__all__ = [
    "RIGHT",
    "WRONG",
    "EXPECTED_S",
    "Confirmation",
    "FixState",
    "AnsweredEvent",
    "LearningConfig",
    "Precision",
    "Proposal",
    "Reported",
    "Roc",
    "Share",
    "ThresholdConfig",
    "confirmed_causes",
    "expectation_of",
    "fix_state",
    "is_right",
    "follow_originals",
    "latest_verdicts",
    "learn_ranking",
    "merge_duplicates",
    "original_of",
    "precision_table",
    "propose_thresholds",
    "roc",
    "wilson",
]
