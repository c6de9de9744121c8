"""Files of other tools that are no stacks here: what they are, and what to give instead. One row a tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from agents.profiles.formats.source import head_text

_SAMPLER = "give the stacks of a sampler"
_UNPACK = "unpack it, and give the profile in it"
_PICTURE = "a picture: give the stacks that it was drawn from"
_TOTALS = "a report of totals, without stacks"
_PERF = "give the output of `perf script`"
_PY_SPY = "`py-spy record -f raw` writes stacks"
_SPEEDSCOPE = "open it in speedscope, and give what that exports"
_CPUPROFILE = "give the .cpuprofile of --cpu-prof"


class _Tool(NamedTuple):
    """What a file is with what to give instead, and the signs of it: each alone suffices.

    ``lines`` is of nine of ten lines, and ``keys`` are paths of JSON that all have to be there, or those
    after a ``|``, see ``_json_paths``.
    """

    about: str
    magic: bytes = b""
    text: str = ""
    lines: str = ""
    keys: str = ""


_TOOLS = (
    _Tool(f"an archive: {_UNPACK}", magic=rb"PK\x03\x04|7z\xbc\xaf\x27\x1c|.{257}ustar"),
    _Tool(
        f"compressed, and not by gzip: {_UNPACK}",
        magic=rb"BZh[1-9]1AY|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18",
    ),
    _Tool(
        "a program: give a profile of it",
        magic=rb"\x7fELF|MZ\x90\x00|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe|\x00asm",
    ),
    _Tool("perf's own recording: `perf script` writes it as text", magic=rb"PERFILE2|2ELIFREP"),
    _Tool("simpleperf's own recording: its pprof_proto_generator.py writes pprof", magic=rb"SIMPLEPERF"),
    _Tool(f"JSON of `perf data convert`: {_PERF}", keys="linux-perf-json-version"),
    _Tool(
        "a trace of .NET: `dotnet-trace convert --format Speedscope` writes what can be read",
        magic=rb"Nettrace",
    ),
    _Tool("an execution trace of Go: give /debug/pprof/profile", magic=rb"go 1\.\d+ trace\x00"),
    _Tool(f"a profile of gprof, which has no stacks: {_SAMPLER}", magic=rb"gmon\x01\x00"),
    _Tool(f"counters of LLVM, which have no stacks: {_SAMPLER}", magic=rb"\xfflprofr\x81|\x81rforpl\xff"),
    _Tool("a heap or report of hprof: give a flight recording", magic=rb"JAVA PROFILE 1\.0"),
    _Tool(f"an event log of GHC: {_SAMPLER}", magic=rb"hdrbhetb"),
    _Tool(f"a recording of sysprof: record by `perf record -g`, {_PERF}", magic=rb"\x5e\x97\xca\xfd"),
    _Tool(f"a recording of memray, of memory: {_PY_SPY} of CPU", magic=rb"memray\x00"),
    _Tool(f"a file of cProfile, which has no stacks: {_PY_SPY}", magic=rb"[{\xfb][)\xa9]\x03"),
    _Tool(
        "a dump of Ruby, as stackprof writes it: record with `raw: true`, and give what "
        "`stackprof --stackcollapse` writes",
        magic=rb"\x04\x08\{",
    ),
    _Tool("a table of Parquet: export the stacks as text", magic=rb"PAR1\x15"),
    _Tool(_PICTURE, magic=rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|%PDF-"),
    _Tool("a database: export the profile from the tool that wrote it", magic=rb"SQLite format 3\x00"),
    _Tool(f"a profile of NYTProf, which has no stacks: {_SAMPLER}", magic=rb"NYTProf \d"),
    _Tool(
        f"JSON of Firefox's profiler, as samply writes it: record by `perf record -g`, {_PERF}",
        keys="meta.preprocessedProfileVersion | meta.markerSchema",
    ),
    _Tool(
        f"JSON of Firefox's profiler: {_SPEEDSCOPE}",
        keys="meta.processType | meta.stackwalk | format meta profileJSON",
    ),
    _Tool(f"JSON of Firefox's performance tool: {_SPEEDSCOPE}", keys="label duration markers"),
    _Tool(
        f"a timeline of Safari: {_SPEEDSCOPE}", keys="recording.instrumentTypes | recording.sampleStackTraces"
    ),
    _Tool(
        "OTLP profiles as JSON: give them as protocol buffers", keys="resourceProfiles | resource_profiles"
    ),
    _Tool(
        "a dump of stackprof: record with `raw: true`, and give what `stackprof --stackcollapse` writes",
        keys="missed_samples | raw_timestamp_deltas",
    ),
    _Tool(
        f"a heap profile of V8, of memory: {_CPUPROFILE}", keys="head.selfSize | samples.nodeId samples.size"
    ),
    _Tool(f"a heap snapshot of V8, of memory: {_CPUPROFILE}", keys="snapshot.meta"),
    _Tool(f"a log of V8 as JSON: {_CPUPROFILE}", keys="code functions"),
    _Tool(f"a trace of py-spy: {_PY_SPY}", keys="cat=py-spy"),
    _Tool(f"a trace of VizTracer, of every call: {_PY_SPY}", keys="viztracer_metadata | traceEvents.cat=FEE"),
    _Tool(f"a trace of PyTorch: {_PY_SPY}", keys="deviceProperties traceEvents"),
    _Tool(
        "a report of pyinstrument: give what `pyinstrument -r speedscope` writes",
        keys="root_frame | session frame_tree | frame_records | sample_count cpu_time",
    ),
    _Tool(
        f"a report of Scalene, by lines and without stacks: {_PY_SPY}",
        keys="elapsed_time_sec | alloc_samples",
    ),
    _Tool("a flame graph of Pyroscope: export its pprof", keys="flamebearer"),
    _Tool("a tree of a flame graph: give the stacks that it was drawn from", keys="name value children"),
    _Tool(f"a trace of Hermes: {_SPEEDSCOPE}", keys="stackFrames samples.sf"),
    _Tool(f"a file of DHAT, of memory: {_SAMPLER}", keys="dhatFileVersion"),
    _Tool(
        "a profile of GHC as JSON: run with `+RTS -p`, and convert that by inferno-collapse-ghcprof",
        keys="program rts_arguments",
    ),
    _Tool(
        f"totals of xhprof by caller and function, without stacks: {_SAMPLER}, such as excimer's",
        text=r'\A\s*(?:\{\s*|a:\d+:\{s:\d+:)"[^"\n]{1,300}"\s*[:;]\s*(?:\{\s*|a:\d+:\{s:2:)"(?:ct|wt)"',
    ),
    _Tool(
        "a report of GHC's profiler: convert it by inferno-collapse-ghcprof",
        text=r"^[ \t]+\S.{0,300} Profiling Report +\(Final\)$|^COST CENTRE +MODULE\b",
    ),
    _Tool(f"a heap profile of GHC, of memory: {_SAMPLER}", text=r"\AJOB \".*\n(?:.*\n){0,9}?BEGIN_SAMPLE"),
    _Tool(
        "the text of `pprof -raw`: give the profile itself, .pb.gz",
        text=r"^PeriodType: .*\n(?:.*\n){0,5}?Samples:",
    ),
    _Tool(
        "a file of callgrind, which has no stacks: give a sampler's",
        text=r"^# callgrind format|^creator: (?:callgrind|xdebug)|^events: .*\n(?:.*\n){0,40}?fn="
        r"|\Adesc: I1 cache: ",
    ),
    _Tool(
        f"{_TOTALS} (cg_annotate): {_SAMPLER}",
        text=r"^-- (?:File:|Function)?[fF]unction summary|^I1 cache: +\d",
    ),
    _Tool(f"a file of massif, of memory: {_SAMPLER}", text=r"\A(?:desc: .*\n)?cmd: .*\ntime_unit: "),
    _Tool(f"a file of heaptrack, of memory: {_SAMPLER}", text=r"\Av [0-9a-f]+ \d+\n[xX] "),
    _Tool(f"a heap profile of jemalloc, of memory: {_SAMPLER}", text=r"\Aheap_v2/\d+"),
    _Tool(
        f"{_TOTALS}: give the profile itself",
        text=r"^Flat profile:$|^[ \t]+Call graph \(explanation follows\)|^Showing nodes accounting for "
        r"|^ *flat +flat% +sum% +cum|^-{6,}\+-{6,}$",
    ),
    _Tool(
        f"{_TOTALS}: {_PERF}",
        text=r"^# (?:Children +Self|Overhead) +|^ *Percent +\|\s+Source code"
        r"|^ Performance counter stats for ",
    ),
    _Tool(f"a trace of ftrace: record by `perf record -g`, {_PERF}", text=r"\A# tracer: |\Acpus=\d+\n"),
    _Tool(f"{_TOTALS} (strace -c): {_SAMPLER}", text=r"^% time +seconds +usecs/call"),
    _Tool(
        "pprof's text of memory, locks or threads: give /debug/pprof/profile, which is of CPU",
        text=r"\A(?:heap profile: +\d|(?:goroutine|threadcreate) profile: total "
        r"|--- (?:heap|contention|thread|growth)z?\b.* ?\d? ---$|--- (?:contention|mutex):$)",
    ),
    _Tool(
        "a dump of goroutines, taken once: give /debug/pprof/profile",
        text=r"^goroutine \d+ \[.*\]:$",
    ),
    _Tool(
        "a dump of a JVM's threads, taken once: give a flight recording",
        text=r"^Full thread dump .*:$|^ {2,4}java\.lang\.Thread\.State: [A-Z_]+"
        r"|^\"[^\"\n]{1,300}\" .{0,40}\bos_prio="
        r"|^#\d+ \"[^\"\n]{0,300}\"(?: virtual)?(?: .{1,99})?\n {6}\S+\(",
        keys="threadDump",
    ),
    _Tool(
        f"a dump of py-spy, taken once: {_PY_SPY}",
        text=r"\AProcess \d+: .*\nPython v\d",
    ),
    _Tool("a report of pstats, without stacks", text=r"^ *\d+ function calls .*in \S+ (?:CPU )?seconds"),
    _Tool(
        f"a trace of a PHP profiler: {_SAMPLER}",
        text=r"^TRACE START \[|^file-format: Blackfire|\A\[events\]\n",
    ),
    _Tool("the output of bpftrace: convert it by stackcollapse-bpftrace.pl", text=r"^@\w*\[$"),
    _Tool(
        "the output of phpspy: convert it by its stackcollapse-phpspy.pl",
        text=r"\A0 \S+ \S+:-?\d+\n(?:1 \S+ \S+:-?\d+\n|\n|# )",
    ),
    _Tool("the output of bcc's profile: `profile -f` writes stacks", text=r"^Sampling at \d+ Hertz of "),
    _Tool(
        "a call graph of pmcstat: convert it by stackcollapse-pmc.pl",
        text=r"\A@ [^\n\[]+ \[\d+ samples\]$|\A\s*\d+\.\d+%\s+\[\d+\]\s+\S+ @ /",
    ),
    _Tool(
        f"a log of the Papyrus profiler: {_SPEEDSCOPE}",
        text=r"\A(?:Stack|Script|Obj)_\S+ log opened \(PC\)",
    ),
    _Tool("a report of VTune: convert it by inferno-collapse-vtune", text=r"\A\"?Function Stack\"?,"),
    _Tool(
        "a report of Visual Studio: convert it by inferno-collapse-vsprof",
        text=r"\A\W*Level,Function Name,",
    ),
    _Tool(
        "a report of Instruments: convert it by stackcollapse-instruments.pl",
        text=r"\A(?:(?:Running Time|Weight)\s+Self|Bytes Used\s+Count).*Symbol Name",
    ),
    _Tool(
        "XML of Instruments: convert it by inferno-collapse-xctrace",
        text=r"\A\s*(?:<[?!][^>]*>\s*)*<trace-query-result\b",
    ),
    _Tool(
        "a drawn flame graph: give the stacks that it was drawn from",
        text=r"\A\s*(?:<[?!][^>]*>\s*)*<svg\b",
    ),
    _Tool(
        "a page: give the stacks that it shows",
        text=r"\A\s*(?:<!--.*?-->\s*)?<(?:!(?i:doctype)|(?i:html)\b)",
    ),
    _Tool(
        "XML, of which no format is read: export stacks, or a format of speedscope",
        text=r"\A\s*<\?xml ",
    ),
    _Tool(f"a log of V8: {_CPUPROFILE}", text=r"^v8-version,"),
    _Tool(
        "a report of sample(1): convert it by stackcollapse-sample.awk",
        text=r"^Call graph:\n(?:.*\n)?\s+\d+ Thread_",
    ),
    _Tool(
        "a backtrace of gdb, taken once: convert many by stackcollapse-gdb.pl",
        text=r"^#0 +(?:0x[0-9a-f]+ in )?\S.*\n(?:#1 +0x[0-9a-f]+ in )",
    ),
    _Tool(
        "metrics of Prometheus, and no stacks: `smidgen gateway` fetches them",
        text=r"^# (?:HELP|TYPE) [a-zA-Z_:][\w:]* \S",
        lines=r'[a-zA-Z_:][\w:]*+\{(?:\w++="(?:[^"\\]|\\.)*+",?\s*+)*+\}\s+\S+(?:\s+-?\d+)?',
    ),
    _Tool(
        "metrics of Graphite with tags, and no stacks",
        lines=r"[^\s;=]++(?:;[^\s;=]++=[^\s;]++)++ -?[\d.]+(?: -?\d+)?",
    ),
    _Tool(
        "stacks with the count in front, as of `uniq -c`: put it behind each stack",
        lines=r"\s*\d+\s+[^\s;][^;]*;.*\D",
    ),
    _Tool(
        "stacks with two counts each, as differences have: give the file of each side",
        lines=r".*;.* \d+(?:\.\d+)? \d+(?:\.\d+)?",
    ),
    _Tool(
        f"a log of strace: {_SAMPLER}",
        lines=r"(?:\[pid +\d+\] |\d+ +)?(?:[\d:.]+ )?(?:\w+\(.*\)?\s+= (?:-?\d|\?|0x).*|[+-]{3} .* [+-]{3})",
    ),
    _Tool(
        "a log, whose lines have times: give stacks (`smidgen agent logs` reads access logs)",
        lines=r".*\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d.*|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d.*"
        r"|\w{3} [ \d]\d \d\d:\d\d:\d\d .*",
    ),
)
_GUESSES = (  # signs that files of a format have, too: looked at once no format takes a text
    _Tool(
        f"events without stacks: record by `perf record -g`, and {_PERF}, without callindent",
        lines=r"\S.{0,300}?\s\d+\.\d+:\s+(?:\d+\s+)?(?:[^\s:]\S*:(?:\s.*)?|\( ?\S+ ?\)\s.*)",
    ),
    _Tool(
        "frames without their events or addresses: give `perf script -F comm,pid,tid,time,event,ip,sym,dso`",
        text=r"\A\s*(?:^\S.{0,20}?\s\d+(?:/\d+)?\s*(?:\[\d+\])?\s*\n)?"
        r"(?:^[ \t]+(?:[0-9a-f]{1,16} +)?[^\s\d`;=\"][^\s`;=\"]*+\n)++(?:\n|\Z)"
        r"|\A\s*(?:^\S.{0,80}\n)?(?:^[ \t]+[0-9a-f]{5,16}(?: .{1,500})?\n)+(?:\n|\Z)",
    ),
    _Tool(
        "a table (CSV), and no stacks: `smidgen detect` reads series",
        lines=r'(?:"(?:[^"]|"")*+"|[^",;\t]*+)(?:[,\t](?! )(?:"(?:[^"]|"")*+"|[^",;\t]*+))+',
    ),
    _Tool(
        "a table, or stacks without counts: a count stands behind each stack, after a space",
        lines=r"(?:[^;]*+;)++(?:[^;\s]*|[^;]*\D)",
    ),
)
_MAGICS = tuple((re.compile(tool.magic, re.DOTALL), tool.about) for tool in _TOOLS if tool.magic)
_TEXTS = tuple((re.compile(tool.text, re.MULTILINE), tool.about) for tool in _TOOLS if tool.text)
_LINES = tuple((re.compile(tool.lines), tool.about) for tool in _TOOLS if tool.lines)
_GUESSED = tuple((re.compile(tool.lines), tool.about) for tool in _GUESSES if tool.lines)
_GUESSED_TEXTS = tuple((re.compile(tool.text, re.MULTILINE), tool.about) for tool in _GUESSES if tool.text)
_KEYS = tuple(
    (frozenset(keys.split()), tool.about) for tool in _TOOLS if tool.keys for keys in tool.keys.split("|")
)

_LOOKED_AT = 1000
_LONGEST = 1000  # characters of a line that is looked at: patterns take up to the square of it
_MOST = 0.9
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"|[{}\[\],:]')
_DEEPEST = 2


def name_foreign(head: bytes) -> str:
    """Return what a file of another tool is and what to give instead; empty if it is not known."""
    for magic, about in _MAGICS:
        if magic.match(head):
            return about
    text = head_text(head).replace("\r\n", "\n")
    if "\0" in text:
        return ""
    paths = _json_paths(text)
    for keys, about in _KEYS:
        if keys <= paths:
            return about
    for pattern, about in _TEXTS:
        if pattern.search(text):
            return about
    return _name_lines(_lines_of(text), _LINES)


def guess_foreign(text: str) -> str:
    """Return what a text is that no format takes, and what to give instead; empty if nothing shows it."""
    by_text = (about for pattern, about in _GUESSED_TEXTS if pattern.search(text))
    return next(by_text, "") or _name_lines(_lines_of(text), _GUESSED)


def _lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n")[:_LOOKED_AT] if line.strip()]


def _name_lines(lines: Sequence[str], patterns: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for pattern, about in patterns:
        matching = sum(len(line) <= _LONGEST and bool(pattern.fullmatch(line)) for line in lines)
        if matching > _MOST * len(lines):
            return about
    return ""


def _json_paths(text: str) -> frozenset[str]:
    """Return the keys in the beginning of a JSON document, two deep: ``meta``, ``meta.version``.

    Lists are no level of their own. A text as a value is there, too: ``cat=py-spy``.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return frozenset()
    paths: set[str] = set()
    objects: list[str] = []  # the path of each open object
    key, last, is_value = "", "", False
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "{":
            objects.append(f"{key}." if key else "")
            key, is_value = "", False
        elif token == "}" and objects:
            key, is_value = objects.pop().removesuffix("."), False
        elif token == ":":
            key, is_value = (objects[-1] if objects else "") + last, True
            if len(objects) <= _DEEPEST:
                paths.add(key)
        elif match[1] is not None:
            last = match[1]
            if is_value and len(objects) <= _DEEPEST:
                paths.add(f"{key}={last}")
        elif token == ",":
            is_value = False
    return frozenset(paths)
