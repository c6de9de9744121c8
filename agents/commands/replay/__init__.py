"""``smidgen replay``: record what a service is asked, and ask two builds of it the same."""

from agents.commands.replay.group import replay

__all__ = ["replay"]
