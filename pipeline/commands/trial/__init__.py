"""``smidgen trial``: what experiments before a release say of a change."""

from pipeline.commands.trial.command import trial

__all__ = ["trial"]
