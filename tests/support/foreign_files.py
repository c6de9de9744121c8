"""Beginnings of files that are no profiles here: what other tools write, and what the refusal has to say."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

FOREIGN: dict[str, tuple[bytes, str]] = {
    "zip": (b"PK\x03\x04" + b"\xc3\n" * 300 + b"a;b 8\n", "an archive"),
    "tar": (b"shop.pb" + bytes(250) + b"ustar\x0000", "an archive"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00", "not by gzip"),
    "xz": (b"\xfd7zXZ\x00\x00", "not by gzip"),
    "ELF": (b"\x7fELF\x02\x01 1\n", "a program"),
    "class": (b"\xca\xfe\xba\xbe\x00\x00\x00\x41", "a program"),
    "perf.data": (b"PERFILE2" + bytes(9), "`perf script`"),
    "nettrace": (b"Nettrace\x14", "dotnet-trace convert"),
    "go trace": (b"go 1.22 trace\x00\x00\x00\x01", "execution trace of Go"),
    "gmon.out": (b"gmon\x01\x00\x00\x00", "gprof"),
    "hprof": (b"JAVA PROFILE 1.0.2\x00", "heap"),
    "GHC event log": (b"hdrbhetb\x00", "GHC"),
    "simpleperf": (b"SIMPLEPERF\x00\x00", "simpleperf"),
    "perf as JSON": (
        b'{"linux-perf-json-version": 1, "headers": {}, "samples": [{"comm": "app", "callchain": []}]}',
        "perf data convert",
    ),
    "sysprof": (b"\x5e\x97\xca\xfd\x01", "sysprof"),
    "cProfile": (b"{\xa9\x03z\x06app.py\xe9\x01", "cProfile"),
    "PNG": (b"\x89PNG\r\n", "a picture"),
    "PDF": (b"%PDF-1.7\n", "a picture"),
    "SQLite": (b"SQLite format 3\x00", "a database"),
    "GHC report": (
        b"\tSun Mar  1 12:00 2026 Time and Allocation Profiling Report  (Final)\n\nMAIN MAIN 337 0.0 100.0\n",
        "inferno-collapse-ghcprof",
    ),
    "GHC .hp": (b'JOB "shop"\nDATE "x"\nSAMPLE_UNIT "seconds"\nBEGIN_SAMPLE 0.1\nmain 8\n', "memory"),
    "pprof -raw": (b"PeriodType: cpu ns\nPeriod: 10000\nSamples:\n  3: 1 2\nLocations\n", "-raw"),
    "callgrind without a header": (b"events: Ir\nfl=a.c\nfn=main\n16 20\ncfn=f\ncalls=1 50\n", "callgrind"),
    "callgrind": (b"# callgrind format\nversion: 1\n", "callgrind"),
    "Xdebug": (b"version: 1\ncreator: xdebug 3.3.1\ncmd: a.php\npart: 1\n\nevents: Time\n", "callgrind"),
    "cachegrind": (b"desc: I1 cache: 32768 B\ncmd: ./shop\nevents: Ir I1mr\nfl=a.c\n", "callgrind"),
    "cg_annotate": (b"-- File:function summary\n Ir  file:function\n 90 a.c:main 7\n", "totals"),
    "massif": (b"desc: (none)\ncmd: ./shop\ntime_unit: i\n#-----\nsnapshot=0\n", "massif"),
    "heaptrack": (b"v 10500 3\nx 4 shop\nX ./shop\n", "heaptrack"),
    "gprof": (b"Flat profile:\n\n  %   cumulative\n 50 1 1\n", "without stacks"),
    "gprof's call graph": (b"\t\t     Call graph (explanation follows)\n\n[1] 9 0 1 main [1]\n", "totals"),
    "pprof -top": (b"Showing nodes accounting for 1s\n 1s 9\n", "without stacks"),
    "pprof -text": (
        b"Type: cpu\n      flat  flat%   sum%        cum   cum%\n 1s 50% 50% 1s 50% f\n",
        "totals",
    ),
    "pprof -traces": (b"Type: cpu\n-----------+-------------------\n     1s   f\n          main\n", "totals"),
    "perf report": (
        b"# Samples: 3\n#\n# Overhead  Command  Symbol\n  50.00%  shop  [.] f\n",
        "`perf script`",
    ),
    "perf annotate": (
        b" Percent |\tSource code & Disassembly of shop\n  9.00 : 1f: mov 1\n",
        "`perf script`",
    ),
    "perf stat": (b"\n Performance counter stats for './shop':\n\n  9 cycles # 1\n", "`perf script`"),
    "ftrace": (b"# tracer: function\n#\n shop-12 [000] .... 1.5: f <-main\n", "ftrace"),
    "strace": (b'read(3, "a;b", 4)  = 4\nopen("/x") = -1 ENOENT (No)\nclose(3) = 0\n', "strace"),
    "strace -c": (b"% time     seconds  usecs/call     calls    errors syscall\n 9 1 1 1 read\n", "strace"),
    "heap profile": (b"heap profile: 3: 9 [3: 9] @ heap/1048576\n1: 2 [1: 2] @ 0x1 0x2\n", "memory"),
    "old heap profile": (b"--- heapz 1 ---\nformat = java\n 7 9\n", "memory"),
    "goroutines": (b"goroutine 1 [running]:\nmain.main()\n\t/a.go:3 +0x1\n", "goroutines"),
    "jstack without a header": (
        b'"main" #1 prio=5 os_prio=0 cpu=12.3ms tid=0x00007f nid=0x1 runnable\n   java.lang.Thread.State: '
        b"RUNNABLE\n\tat com.acme.Shop.total(Shop.java:12)\n",
        "flight recording",
    ),
    "jcmd's dump": (b'4711\n2026-03-01T12:00:00Z\n21\n\n#1 "main"\n      shop.A.f(A.java:3)\n', "flight rec"),
    "jcmd's JSON": (b'{"threadDump": {"processId": "4711", "threadContainers": []}}', "flight recording"),
    "jstack": (b"2026-03-01 12:00:00\nFull thread dump OpenJDK 64-Bit (21):\n\n", "flight recording"),
    "py-spy dump": (b"Process 12: python a.py\nPython v3.11.2 (/usr/bin/python)\n", "py-spy record"),
    "pstats": (b"   7 function calls in 0.003 seconds\n", "pstats"),
    "Xdebug's trace": (b"TRACE START [2026-03-01 12:00:00.1]\n1 0 0 0.1 9 {main} 1\n", "PHP"),
    "Blackfire": (b"file-format: BlackfireProbe\ncost-dimensions: wt\n\nmain//1 8\n", "PHP"),
    "SPX": (b"[events]\n0 1 9\n", "PHP"),
    "bpftrace": (b"Attaching 1 probe...\n@[\n    f+12\n    main+3\n]: 7\n", "stackcollapse-bpftrace"),
    "VTune": (b"Function Stack,CPU Time:Self\nTotal,0\n", "inferno-collapse-vtune"),
    "Visual Studio": (b"Level,Function Name,Number of Calls\n0,main,1\n", "inferno-collapse-vsprof"),
    "Instruments": (b"Weight\tSelf Weight\t\tSymbol Name\n9.00 ms 90%\t1 ms\tmain\n", "instruments"),
    "Instruments XML": (b'<?xml version="1.0"?>\n<trace-query-result>\n', "inferno-collapse-xctrace"),
    "dotTrace": (b'<?xml version="1.0"?>\n<Report>\n<Function FQN="f" TotalTime="8"/>\n', "XML"),
    "flame graph": (b"<?xml version='1.0'?>\n<svg width='1'>\n", "drawn flame graph"),
    "page": (b"<!DOCTYPE html>\n<script>f(3, 0, 7)\n</script>\n", "a page"),
    "V8's log": (b"v8-version,12,4,254\ntick,0x1,3\n", "--cpu-prof"),
    "heap of V8": (b'{"head":{"callFrame":{"functionName":""},"selfSize":9}}', "heap profile of V8"),
    "Firefox": (b'{"meta":{"interval":1,"processType":0},"libs":[]}', "Firefox"),
    "samply": (
        b'{"meta":{"categories":[' + b'{"name":"User","color":"blue"},' * 300 + b'null],"markerSchema":[]}}',
        "samply",
    ),
    "processed Firefox": (b'{"meta":{"preprocessedProfileVersion":49}}', "samply"),
    "Firefox 59": (b'{"label":"a","duration":7.1,"markers":[],"frames":[],"ticks":[]}', "Firefox"),
    "Cleopatra": (b'{"format":"profileJSON,1","meta":{},"profileJSON":{}}', "Firefox"),
    "Safari": (b'{"version":1,"recording":{"displayName":"a","instrumentTypes":[]}}', "Safari"),
    "xhprof": (b'{"main()":{"ct":1,"wt":9},"main()==>f":{"ct":2,"wt":5}}', "xhprof"),
    "xhprof serialised": (b'a:2:{s:6:"main()";a:2:{s:2:"ct";i:1;s:2:"wt";i:9;}}', "xhprof"),
    "jemalloc": (b"heap_v2/524288\n  t*: 8: 640 [0: 0]\n@ 0x1 0x2\n  t*: 3: 80 [0: 0]\n", "jemalloc"),
    "DHAT": (b'{"dhatFileVersion":2,"mode":"heap","verb":"Allocated"}', "DHAT"),
    "pyinstrument": (b'{"session":{"start_time":1.5},"frame_tree":{"function":"f"}}', "-r speedscope"),
    "older pyinstrument": (b'{"start_time":1.5,"sample_count":9,"root_frame":{}}', "-r speedscope"),
    "Scalene": (b'{"alloc_samples":0,"elapsed_time_sec":3.1,"files":{}}', "Scalene"),
    "stackprof without stacks": (b'{"version":1.2,"mode":"cpu","missed_samples":0}', "raw: true"),
    "stackprof's own dump": (b"\x04\x08{\x0d:\x0cversionf\x081.2", "raw: true"),
    "pmcstat": (b"@ inst_retired.any [35 samples]\n\n20.8%  [7]  lz4 @ /boot/kernel/zfs.ko\n", "pmc.pl"),
    "Papyrus": (b"Stack_3185 log opened (PC)\n500:PUSH:3185:3:None:Quest..f\n", "Papyrus"),
    "GHC's JSON": (b'{\n"program": "shop",\n"rts_arguments": ["-pj"],\n"end_time": "x"}', "+RTS -p"),
    "heap of V8, samples first": (b'{"samples":[{"size":9,"nodeId":3,"ordinal":1}],"head":{}}', "of memory"),
    "heap snapshot of V8": (b'{"snapshot":{"meta":{"node_fields":["type"]}}}', "heap snapshot of V8"),
    "py-spy's chrometrace": (b'[{"cat":"py-spy","name":"main","ph":"B","ts":1,"args":{}}]', "raw"),
    "VizTracer": (b'{"traceEvents":[{"ph":"X","cat":"FEE","name":"f (a.py:3)","ts":1}]}', "VizTracer"),
    "hprof's text": (b"JAVA PROFILE 1.0.1\nTRACE 3:\n\nCPU SAMPLES BEGIN (total = 9) x\n", "hprof"),
    "NYTProf": (b"NYTProf 5 0\n:basetime=1\n", "NYTProf"),
    "bcc": (b"Sampling at 49 Hertz of all threads by user + kernel stack.\n\n    f\n    3\n", "profile -f"),
    "uniq -c": (b"     12 main;work\n      3 main;rest\n", "count in front"),
    "phpspy": (b"0 f /srv/a.php:3\n1 main /srv/a.php:9\n\n0 g /srv/a.php:4\n", "stackcollapse-phpspy.pl"),
    "Pyroscope's JSON": (b'{"version":1,"flamebearer":{"names":["total"]}}', "pprof"),
    "d3": (b'{"name":"root","value":9,"children":[{"name":"f","value":9}]}', "a tree of a flame graph"),
    "Hermes": (b'{"traceEvents":[],"samples":[{"sf":2}],"stackFrames":{}}', "Hermes"),
    "gdb": (b"#0  0x1f in f () from /lib/libc.so.6\n#1  0x2f in main () at a.c:3\n", "gdb"),
    "Prometheus": (b'up{job="a;b",host="c"} 1\nhits_total{path="/x;y"} 7\n', "Prometheus"),
    "Prometheus's comments": (b"# HELP up Is it up\n# TYPE up gauge\nup 1\n", "Prometheus"),
    "Graphite": (b"shop.cpu;host=a;zone=b 42 1789999980\n", "Graphite"),
    "OTLP as JSON": (b'{"resourceProfiles":[{"scopeProfiles":[]}]}', "protocol buffers"),
    "stackprof": (b'{"version":1.2,"missed_samples":0,"frames":{}}', "stackprof --stackcollapse"),
    "sample(1)": (b"Call graph:\n    9 Thread_1   DispatchQueue\n    + 9 main\n", "stackcollapse-sample"),
    "difference": (b"main;a 3 5\nmain;b 2 0\n", "two counts"),
    "access log": (
        b'1.2.3.4 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 9 "Mozilla (X11; x)" 12\n' * 9,
        "a log",
    ),
    "log": (b"2026-03-01T12:00:00Z cart;total took 12\n" * 9, "a log"),
}
"""By what wrote it: the first bytes of a file, and a text that its refusal holds."""

_TEXT = "run 12 ms 40; see a.py:3 (main) 7 total, 3 5% x=1 {} [k] 0x1f -> `f+0x1 # P1;T2 9"
_WORDS = tuple(_TEXT.split())


def noises(seed: int) -> Iterator[bytes]:
    """Yield what is no profile, made anew for each seed: bytes, words, tables, code, JSON, and logs."""
    rng = Random(seed)

    def word() -> str:
        return "".join(rng.choices("abcdefgh_", k=rng.randint(2, 9)))

    def number() -> str:
        return str(rng.randrange(10 ** rng.randint(1, 6)))

    lines = range(rng.randint(20, 60))
    yield rng.randbytes(rng.randint(20, 3000))
    yield "\n".join(" ".join(rng.choices(_WORDS, k=rng.randint(4, 12))) for _ in lines).encode()
    yield "\n".join(",".join((word(), number(), number())) for _ in lines).encode()
    yield "\n".join(f"{word()};{number()};{word()}" for _ in lines).encode()
    yield "\n".join(f"  {word()} = {word()}({number()}); // {word()} {number()}" for _ in lines).encode()
    yield "\n".join(f"{number():>9} {word()} {number()}" for _ in lines).encode()
    yield ("{" + ",".join(f'"{word()}":[{number()},{{"{word()}":{number()}}}]' for _ in lines) + "}").encode()
    yield "\n".join(f"{number()}.{number()} id={number()};{word()} took {number()}" for _ in lines).encode()
    yield "\n".join(f"[{word()}] {word()} {word()}: {word()} ({number()})" for _ in lines).encode()
