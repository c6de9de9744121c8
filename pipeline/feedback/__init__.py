"""What verdicts of people teach: states of events, precision, thresholds, priors of suspects."""

from pipeline.feedback.duplicates import follow_originals, merge_duplicates
from pipeline.feedback.expectation import EXPECTED_S, expectation_of
from pipeline.feedback.state import (
    FixState,
    Reported,
    confirmed_causes,
    fix_state,
    latest_verdicts,
    original_of,
)

__all__ = [
    "EXPECTED_S",
    "FixState",
    "Reported",
    "confirmed_causes",
    "expectation_of",
    "fix_state",
    "follow_originals",
    "latest_verdicts",
    "merge_duplicates",
    "original_of",
]
