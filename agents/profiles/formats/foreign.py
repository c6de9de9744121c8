"""Files of other tools that are no stacks here: what they are, and what to give instead."""

from __future__ import annotations

import re

from agents.profiles.formats.source import head_text

_BINARY = (
    (b"PK\x03\x04", "an archive: unpack it, and give the profile in it"),
    (b"\x7fELF", "a program: give a profile of it"),
    (b"PERFILE2", "perf's own recording: `perf script` writes it as text"),
    (b"2ELIFREP", "perf's own recording: `perf script` writes it as text"),
    (b"Nettrace", "a trace of .NET: `dotnet-trace convert --format Speedscope` writes what can be read"),
    (b"\x89PNG", "a picture: give the stacks that it was drawn from"),
    (b"SQLite format 3\x00", "a database: export the profile from the tool that wrote it"),
)
_LOOKED_AT = 1000
_MOST = 0.9
_DIFFERENTIAL = re.compile(r".*;.* \d+(?:\.\d+)? \d+(?:\.\d+)?")
_TEXT = tuple(
    (re.compile(pattern, re.MULTILINE), about)
    for pattern, about in (
        (
            r"^\s+.* Profiling Report\s+\(Final\)$|^COST CENTRE\s+MODULE\b",
            "a report of GHC's profiler: convert it by inferno-collapse-ghcprof",
        ),
        (
            r"^PeriodType: .*\n(?:.*\n){0,5}?Samples:",
            "the text of `pprof -raw`: give the profile itself, .pb.gz",
        ),
        (
            r"^# callgrind format|^creator: callgrind|^events: .*\n(?:.*\n){0,40}?fn=",
            "a file of callgrind, which has no stacks: give a sampler's",
        ),
        (r"^Flat profile:|^Showing nodes accounting for ", "a report of totals, without stacks"),
        (r"^\s*\d+ function calls .*in \S+ (?:CPU )?seconds", "a report of pstats, without stacks"),
        (r"\A\s*(?:<[?!][^>]*>\s*)*<svg\b", "a drawn flame graph: give the stacks that it was drawn from"),
        (r"^v8-version,", "a log of V8: give the .cpuprofile of --cpu-prof"),
        (
            r"^Call graph:\n(?:.*\n)?\s+\d+ Thread_",
            "a report of sample(1): convert it by stackcollapse-sample.awk",
        ),
    )
)


def name_foreign(head: bytes) -> str:
    """Return what a file of another tool is and what to give instead; empty if it is not known."""
    for magic, about in _BINARY:
        if head.startswith(magic):
            return about
    text = head_text(head)
    for pattern, about in _TEXT:
        if pattern.search(text):
            return about
    lines = [line.rstrip("\r") for line in text.split("\n")[:_LOOKED_AT] if line.strip()]
    if sum(bool(_DIFFERENTIAL.fullmatch(line)) for line in lines) > _MOST * len(lines):
        return "stacks with two counts each, as differences have: give the file of each side"
    return ""
