"""Files of other tools that are no stacks here: what they are, and what to give instead."""

from __future__ import annotations

import re

from agents.profiles.formats.source import head_text

_UNPACK = "unpack it, and give the profile in it"
_SAMPLER = "give the stacks of a sampler"
_PICTURE = "a picture: give the stacks that it was drawn from"
_PROGRAM = "a program: give a profile of it"
_TOTALS = "a report of totals, without stacks"
_CPROFILE = "a file of cProfile, which has no stacks: `py-spy record -f raw` writes them"

_PERF = "give the output of `perf script`"

_BINARY = tuple(
    (re.compile(pattern, re.DOTALL), about)
    for pattern, about in (
        (rb"PK\x03\x04|7z\xbc\xaf\x27\x1c|.{257}ustar", f"an archive: {_UNPACK}"),
        (
            rb"BZh[1-9]1AY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18",
            f"compressed, and not by gzip: {_UNPACK}",
        ),
        (rb"\x7fELF|MZ\x90\x00|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe|\x00asm", _PROGRAM),
        (rb"PERFILE2|2ELIFREP", "perf's own recording: `perf script` writes it as text"),
        (
            rb"Nettrace",
            "a trace of .NET: `dotnet-trace convert --format Speedscope` writes what can be read",
        ),
        (rb"go 1\.\d+ trace\x00", "an execution trace of Go: give /debug/pprof/profile"),
        (rb"gmon\x01\x00", f"a profile of gprof, which has no stacks: {_SAMPLER}"),
        (rb"\xfflprofr\x81|\x81rforpl\xff", f"counters of LLVM, which have no stacks: {_SAMPLER}"),
        (rb"JAVA PROFILE 1\.0", "a dump of a JVM's heap: give a flight recording"),
        (rb"hdrbhetb", f"an event log of GHC: {_SAMPLER}"),
        (rb"\x5e\x97\xca\xfd", f"a recording of sysprof: record by `perf record -g`, {_PERF}"),
        (rb"memray\x00", "a recording of memray, of memory: `py-spy record -f raw` records CPU"),
        (rb"[{\xfb][)\xa9]\x03", _CPROFILE),
        (rb"PAR1\x15", "a table of Parquet: export the stacks as text"),
        (rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|%PDF-", _PICTURE),
        (rb"SQLite format 3\x00", "a database: export the profile from the tool that wrote it"),
    )
)
_LOOKED_AT = 1000
_LONGEST = 1000  # characters of a line that is looked at: patterns take up to the square of it
_MOST = 0.9
_LINES = tuple(
    (re.compile(pattern), about)
    for pattern, about in (
        (
            r".*;.* \d+(?:\.\d+)? \d+(?:\.\d+)?",
            "stacks with two counts each, as differences have: give the file of each side",
        ),
        (
            r"(?:\[pid +\d+\] |\d+ +)?(?:[\d:.]+ )?(?:\w+\(.*\)?\s+= (?:-?\d|\?|0x).*|[+-]{3} .* [+-]{3})",
            f"a log of strace: {_SAMPLER}",
        ),
        (
            r".*\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d.*|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d.*"
            r"|\w{3} [ \d]\d \d\d:\d\d:\d\d .*",
            "a log, whose lines have times: give stacks (`smidgen agent logs` reads access logs)",
        ),
    )
)
_TEXT = tuple(
    (re.compile(pattern, re.MULTILINE), about)
    for pattern, about in (
        (
            r"^[ \t]+\S.{0,300} Profiling Report +\(Final\)$|^COST CENTRE +MODULE\b",
            "a report of GHC's profiler: convert it by inferno-collapse-ghcprof",
        ),
        (r"\AJOB \".*\n(?:.*\n){0,9}?BEGIN_SAMPLE", f"a heap profile of GHC, of memory: {_SAMPLER}"),
        (
            r"^PeriodType: .*\n(?:.*\n){0,5}?Samples:",
            "the text of `pprof -raw`: give the profile itself, .pb.gz",
        ),
        (
            r"^# callgrind format|^creator: (?:callgrind|xdebug)|^events: .*\n(?:.*\n){0,40}?fn="
            r"|\Adesc: I1 cache: ",
            "a file of callgrind, which has no stacks: give a sampler's",
        ),
        (
            r"^-- (?:File:|Function)?[fF]unction summary|^I1 cache: +\d",
            f"{_TOTALS} (cg_annotate): {_SAMPLER}",
        ),
        (r"\A(?:desc: .*\n)?cmd: .*\ntime_unit: ", f"a file of massif, of memory: {_SAMPLER}"),
        (r"\Av [0-9a-f]+ \d+\n[xX] ", f"a file of heaptrack, of memory: {_SAMPLER}"),
        (
            r"^Flat profile:$|^[ \t]+Call graph \(explanation follows\)|^Showing nodes accounting for "
            r"|^ *flat +flat% +sum% +cum|^-{6,}\+-{6,}$",
            f"{_TOTALS}: give the profile itself",
        ),
        (
            r"^# (?:Children +Self|Overhead) +|^ *Percent +\|\s+Source code"
            r"|^ Performance counter stats for ",
            f"{_TOTALS}: {_PERF}",
        ),
        (r"\A# tracer: ", f"a trace of ftrace: record by `perf record -g`, {_PERF}"),
        (r"^% time +seconds +usecs/call", f"{_TOTALS} (strace -c): {_SAMPLER}"),
        (
            r"\A(?:heap profile: +\d|goroutine profile: total "
            r"|--- (?:heap|contention|thread|growth)z?\b.* ?\d? ---$|--- contention:$)",
            "pprof's text of memory, locks or threads: give /debug/pprof/profile, which is of CPU",
        ),
        (r"^goroutine \d+ \[.*\]:$", "a dump of goroutines, taken once: give /debug/pprof/profile"),
        (r"^Full thread dump .*:$", "a dump of a JVM's threads, taken once: give a flight recording"),
        (r"\AProcess \d+: .*\nPython v\d", "a dump of py-spy, taken once: `py-spy record -f raw` samples"),
        (r"^ *\d+ function calls .*in \S+ (?:CPU )?seconds", "a report of pstats, without stacks"),
        (r"^TRACE START \[|^file-format: Blackfire|\A\[events\]\n", f"a trace of a PHP profiler: {_SAMPLER}"),
        (
            r"^@\w*\[$",
            "the output of bpftrace: convert it by stackcollapse-bpftrace.pl",
        ),
        (r"\A\"?Function Stack\"?,", "a report of VTune: convert it by inferno-collapse-vtune"),
        (r"\A\W*Level,Function Name,", "a report of Visual Studio: convert it by inferno-collapse-vsprof"),
        (
            r"\A(?:Running Time|Weight)\s+Self.*Symbol Name",
            "a report of Instruments: convert it by stackcollapse-instruments.pl",
        ),
        (
            r"\A\s*(?:<[?!][^>]*>\s*)*<trace-query-result\b",
            "XML of Instruments: convert it by inferno-collapse-xctrace",
        ),
        (r"\A\s*(?:<[?!][^>]*>\s*)*<svg\b", "a drawn flame graph: give the stacks that it was drawn from"),
        (r"\A\s*(?:<!--.*?-->\s*)?<(?:!(?i:doctype)|(?i:html)\b)", "a page: give the stacks that it shows"),
        (r"\A\s*<\?xml ", "XML, of which no format is read: export stacks, or a format of speedscope"),
        (r"^v8-version,", "a log of V8: give the .cpuprofile of --cpu-prof"),
        (r'\A\s*\{"head":\{"callFrame":[^}]*\},"selfSize"', "a heap profile of V8: give a .cpuprofile"),
        (r'\A\s*\{"snapshot":\{"meta"', "a heap snapshot of V8: give a .cpuprofile"),
        (
            r'\A\s*\{(?s:.{0,5000}?)"(?:preprocessedProfileVersion|processType|stackwalk)"\s*:',
            "JSON of Firefox's profiler: open it in speedscope, and give what that exports",
        ),
        (
            r'\A\s*\{(?s:.{0,5000}?)"(?:resourceProfiles|resource_profiles)"\s*:',
            "OTLP profiles as JSON: give them as protocol buffers",
        ),
        (
            r'\A\s*\{(?s:.*)"(?:raw_timestamp_deltas|missed_samples)"\s*:',
            "a dump of stackprof: `stackprof --stackcollapse` writes its stacks",
        ),
        (
            r"^Call graph:\n(?:.*\n)?\s+\d+ Thread_",
            "a report of sample(1): convert it by stackcollapse-sample.awk",
        ),
    )
)


def name_foreign(head: bytes) -> str:
    """Return what a file of another tool is and what to give instead; empty if it is not known."""
    for magic, about in _BINARY:
        if magic.match(head):
            return about
    text = head_text(head).replace("\r\n", "\n")
    if "\0" in text:
        return ""
    for pattern, about in _TEXT:
        if pattern.search(text):
            return about
    lines = [line for line in text.split("\n")[:_LOOKED_AT] if line.strip()]
    for pattern, about in _LINES:
        if sum(len(line) <= _LONGEST and bool(pattern.fullmatch(line)) for line in lines) > _MOST * len(
            lines
        ):
            return about
    return ""
