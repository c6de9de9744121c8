"""``smidgen trial``: verdicts of experiments on a change before its release."""

from pipeline.commands.trial.command import trial

__all__ = ["trial"]
