"""Formats of profile files. A new one is a module here and a line below."""

from agents.profiles.formats import (
    austin,
    chrome,
    collapsed,
    dtrace,
    jfr,
    mojo,
    otlp,
    perf_script,
    pprof,
    pprof_legacy,
    speedscope,
)
from agents.profiles.formats.base import (
    AUTO,
    Measure,
    Reading,
    Recorded,
    Sample,
    Stack,
    StackSamples,
    find_format,
    format_names,
    read_profile,
    register,
)
from agents.profiles.formats.source import ProfileSource
from agents.profiles.formats.tally import count_samples, parse

register(collapsed.CollapsedFormat())
register(perf_script.PerfScriptFormat())
register(pprof.PprofFormat())
register(speedscope.SpeedscopeFormat())
register(chrome.ChromeFormat())
register(austin.AustinFormat())
register(mojo.MojoFormat())
register(dtrace.DtraceFormat())
register(pprof_legacy.LegacyPprofFormat())
register(otlp.OtlpFormat())
register(jfr.JfrFormat())

__all__ = [
    "AUTO",
    "Measure",
    "Reading",
    "Recorded",
    "Sample",
    "ProfileSource",
    "Stack",
    "StackSamples",
    "count_samples",
    "find_format",
    "format_names",
    "parse",
    "read_profile",
    "register",
]
