"""Formats of profile files. A new one is a module here and a line below."""

from agents.formats import collapsed
from agents.formats.base import AUTO, Format, Stack, StackSamples, find_format, format_names, register

register(collapsed.CollapsedFormat())

__all__ = ["AUTO", "Format", "Stack", "StackSamples", "find_format", "format_names", "register"]
