"""What verdicts of people teach: states of events, precision, thresholds, priors of suspects."""

from pipeline.feedback.state import confirmed_causes, latest_verdicts

__all__ = ["confirmed_causes", "latest_verdicts"]
