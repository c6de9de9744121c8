"""Formats of profile files. A new one is a module here and a line below."""

from agents.formats import collapsed, perf_script, pprof
from agents.formats.base import AUTO, Stack, StackSamples, find_format, format_names, register

register(collapsed.CollapsedFormat())
register(perf_script.PerfScriptFormat())
register(pprof.PprofFormat())

__all__ = ["AUTO", "Stack", "StackSamples", "find_format", "format_names", "register"]
