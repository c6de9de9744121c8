"""What verdicts of people teach: states of events, precision, thresholds, priors of suspects."""

from pipeline.feedback.state import (
    FixState,
    Reported,
    confirmed_causes,
    fix_state,
    latest_verdicts,
    original_of,
)

__all__ = [
    "FixState",
    "Reported",
    "confirmed_causes",
    "fix_state",
    "latest_verdicts",
    "original_of",
]
