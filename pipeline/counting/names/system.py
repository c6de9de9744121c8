"""Rules for names of any language: what samplers, kernels and threads add."""

from __future__ import annotations

import re

from pipeline.counting.names.rule import NameRule, cut

UNKNOWN = "[unknown]"
"""The symbol of code that has no name; perf spells it so."""

_DOMAIN = r"(?:com|net|org|io|dev|local|lan|svc|example|test):"
"""Ends of a host's name, whose port is no line."""

_POOL = re.compile(
    r"""(?:
        (?i:threads?|workers?|executors?|dispatcher|scheduler|scheduling|event-?loop(?:group)?|event-?queue)
        |(?i:acceptor|poller|consumer|producer|fetcher|(?:thread|worker)pool|context-global|utility)
        |(?:(?<![a-z])|(?=[A-Z]))(?i:pool|exec|epoll|elastic|parallel)
        |Process|Timer
    )$""",
    re.VERBOSE,
)
"""Words that threads and processes of a pool are called by, before their numbers."""

_POOLED = re.compile(r"(?P<name>\[?[^\[\]/#]*?[^\[\]/#\d-])(?:[-#]\d+)+(?P<end>\]?)")
_without_task_number = cut(
    (r"^([\w.:+]+(?:-[\w.:+]+)*?)-\d{4,}/\d{4,}$", r"\1"),
    (
        r"^(java|node|python[\d.]*|ruby|perl|php|php-fpm|dotnet|beam\.smp|nginx|postgres)-\d{4,}$",
        r"\1",
    ),
    (r"^(qtp)\d{5,}(?:-\d+)?$", r"\1"),
    (r"^(kworker)/.+$", r"\1"),
    (r"^(irq)/\d+-(?=\w)", r"\1/"),
    (r"^CPU \d+/KVM$", "CPU/KVM"),
    (r"^(Thread)-\d+ (?=\()", r"\1 "),
    (r"^(GC Thread|G1 (?:Conc|Refine))#\d+$", r"\1"),
    (r"^(swapper|ksoftirqd|migration|cpuhp|watchdog|idle_inject|rcuo[ps])/\d+$", r"\1"),
)


def _without_thread_number(name: str) -> str:
    """Return the name of a thread or process without its numbers; sha-256 and iso-8859-1 are none."""
    name = _without_task_number(name)
    match = _POOLED.fullmatch(name)
    return match["name"] + match["end"] if match and _POOL.search(match["name"]) else name


SYSTEM: tuple[NameRule, ...] = (
    NameRule(
        "frame-type",
        "any",
        # whether a frame is interpreted, compiled, inlined or of the kernel: _[j], _[i], _[k]
        ("_[",),
        cut((r"(?<=.)_\[[01ijk]\]$", "")),
    ),
    NameRule(
        "address",
        "any",
        # addresses, and offsets from a name
        ("0x",),
        cut(
            (r"(?<=[\w\])>!])\+0x[0-9a-fA-F]+(?:/0x[0-9a-fA-F]+)?$", ""),
            (r"(?<=[\w\])][`!])0x[0-9a-fA-F]+$", "0x"),
            (r"^\[?0x[0-9a-fA-F]+\]?$", UNKNOWN),
            (r"(?<=\w )at 0x[0-9a-fA-F]{6,16}(?=>|$)", "at 0x"),
            (r"(#<\w+:)0x[0-9a-fA-F]{6,16}(?=>)", r"\g<1>0x"),
            (r"(wasm-function\[\d+\]):0x[0-9a-fA-F]+$", r"\1"),
        ),
    ),
    NameRule(
        "bpf",
        "Linux",
        # the hash of a BPF program's instructions, and the key of what a trampoline leads to
        ("bpf_",),
        cut(
            (r"^bpf_prog_[0-9a-f]{16}_(?=\w)", "bpf_prog_"),
            (r"^(bpf_trampoline)_\d+(?:_\d+)?$", r"\1"),
        ),
        sign=r"^bpf_prog_[0-9a-f]{16}_|^bpf_trampoline_\d",
    ),
    NameRule(
        "uuid",
        "any",
        # universally unique identifiers
        ("-", "_"),
        cut(
            (
                r"[-_.$]?(?<![0-9a-zA-Z])[0-9a-fA-F]{8}(?:[-_][0-9a-fA-F]{4}){3}[-_][0-9a-fA-F]{12}(?=\b|_)",
                "",
            ),
        ),
        sign=r"(?:[-_][0-9a-fA-F]{4}){3}",
    ),
    NameRule(
        "process",
        "any",
        # numbers of processes and threads at the root of a stack
        ("pid", "PID", "tid", "TID", "thread", "Thread", "process", "Pool"),
        cut(
            (r"(?i)^(\[?[pt]id)[ =:]\s*\d+(\]?)$", r"\1\2"),
            (r"(?i)(?<=\S) ?\[[pt]id[ =:]\s*\d+\]$", ""),
            (r"(?i)(?<=[^\s\[(])[ ,]*\b[pt]id[ =:]\s*\d+(?=\]|\)|$)", ""),
            (r"(?i)^(process|thread) \(?(?:0x[0-9a-f]+|\d+)\)?(?=$|:| )", r"\1"),
            (r"\bpool-\d+-thread\b", "pool-thread"),
            (r"\b(ThreadPoolExecutor|Thread)-\d+(?:[_-][\w-]*?\d+)?(?=\]|$)", r"\1"),
            (r"\b(ForkJoinPool)-\d+(?:-worker)?(?:-\d+)?(?=\]|$)", r"\1"),
        ),
        sign=r"(?i:[pt]id)[ =:]|^(?i:process|thread) |-\d",
    ),
    NameRule(
        "numbered-thread",
        "any",
        # the numbers behind a word for threads or programs, and those of the kernel's threads
        ("-", "/", "#", "qtp"),
        _without_thread_number,
        sign=r"[-#]\d+\]?$|^qtp\d{5}|^kworker/|^\w+/\d|^Thread-\d|^CPU \d|-\d{4,}/\d",
    ),
    NameRule(
        "line",
        "any",
        # line numbers after a source file
        (":", "("),
        cut(
            (rf"(?<=[\w/])(\.(?!{_DOMAIN})[a-zA-Z]\w{{0,5}}):\d+(?::\d+)?(?=[\])}}]*$)", r"\1"),
            (r"(\.php)\(\d+\)(?=[ :}]|$)", r"\1"),
            (r"(\(eval at [^()]*):\d+\)(?::\d+)?", r"\1)"),
        ),
        sign=r":\d|\(\d",
    ),
    NameRule(
        "map-file",
        "any",
        # the process's number in perf's map file and in perf's own libraries
        ("perf-", "jitted-", "jit-"),
        cut((r"\bperf-\d+\.map\b", "perf.map"), (r"\bjit(ted)?-\d+(?:-\d+)?\.(so|dump)\b", r"jit\1.\2")),
    ),
    NameRule(
        "temporary-file",
        "any",
        # random parts of names of folders and libraries that a program unpacks, and that a file is deleted
        ("/tmp/", "_MEI", ".so", ".tmp", ".dll", " (deleted)"),
        cut(
            (r"(?:(?<=/tmp/)|(?<=/[tT]emp/)|(?<=/T/))tmp[a-z0-9_]{8}(?=/|$|\.\w)", "tmp"),
            (r"(?<=/)_MEI[0-9a-zA-Z]{5,8}(?=/)", "_MEI"),
            (r"(?<=[\w-])\d{10,}(?=\.(?:so|tmp|dll|dylib)\b)", ""),
            (r" \(deleted\)(?=\]$)", ""),
        ),
        sign=r"/tmp[a-z0-9_]{8}|_MEI[0-9a-zA-Z]|\d{10}\.(?:so|tmp|dll|dylib)| \(deleted\)\]$",
    ),
)
