"""``smidgen feedback``: what people say of events, and what that teaches."""

from agents.commands.feedback.group import feedback

__all__ = ["feedback"]
