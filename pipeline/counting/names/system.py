"""Rules for names of any language: what samplers, kernels and threads add."""

from __future__ import annotations

from pipeline.counting.names.rule import NameRule, cut

UNKNOWN = "[unknown]"
"""The symbol of code that has no name; perf spells it so."""

SYSTEM: tuple[NameRule, ...] = (
    NameRule(
        "frame-type",
        "any",
        # whether a frame is interpreted, compiled, inlined or of the kernel: _[j], _[i], _[k]
        ("_[",),
        cut((r"(?<=.)_\[[0-9a-zA-Z]\]$", "")),
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
        "process",
        "any",
        # numbers of processes and threads at the root of a stack
        ("pid", "PID", "tid", "TID", "thread", "Thread", "process"),
        cut(
            (r"(?i)^(\[?[pt]id)[ =:]\s*\d+(\]?)$", r"\1\2"),
            (r"(?i)(?<=\S) ?\[[pt]id[ =:]\s*\d+\]$", ""),
            (r"(?i)(?<=[^\s\[(])[ ,]*\b[pt]id[ =:]\s*\d+(?=\]|\)|$)", ""),
            (r"(?i)^(process|thread) \(?(?:0x[0-9a-f]+|\d+)\)?(?=$|:| )", r"\1"),
            (r"\bpool-\d+-thread\b", "pool-thread"),
            (r"\b(ThreadPoolExecutor|ForkJoinPool|Thread)-\d+(?:[_-][\w-]*?\d+)?(?=\]|$)", r"\1"),
            (r"(?<=[a-zA-Z])[-#]\d+(?=\]$)", ""),
        ),
        sign=r"(?i:[pt]id)[ =:]|^(?i:process|thread) |[-#]\d",
    ),
    NameRule(
        "numbered-thread",
        "any",
        # the numbers at the end of a process's or thread's name
        ("-", "/", "#"),
        cut(
            (r"^([\w.:+]+(?:-[\w.:+]+)*?)(?:-\d+)+(?:/\d+)?$", r"\1"),
            (r"^(kworker)/.+$", r"\1"),
            (r"^(irq)/\d+-(?=\w)", r"\1/"),
            (r"^CPU \d+/KVM$", "CPU/KVM"),
            (r"^(Thread)-\d+ (?=\()", r"\1 "),
            (r"^(GC Thread|G1 (?:Conc|Refine))#\d+$", r"\1"),
            (r"^(swapper|ksoftirqd|migration|cpuhp|watchdog|idle_inject|rcuo[ps])/\d+$", r"\1"),
        ),
        sign=r"-\d|^kworker/|^\w+/\d|^CPU \d|^G[C1] \w+#\d",
    ),
    NameRule(
        "line",
        "any",
        # line numbers after a source file
        (":", "("),
        cut(
            (r"(?<=[\w/])(\.[a-zA-Z]\w{0,5}):\d+(?::\d+)?(?=[\])}]*$)", r"\1"),
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
            (r"(?<=/)tmp[a-z0-9_]{8}(?=/|$|\.\w)", "tmp"),
            (r"(?<=/)_MEI[0-9a-zA-Z]{5,8}(?=/)", "_MEI"),
            (r"(?<=[\w-])\d{10,}(?=\.(?:so|tmp|dll|dylib)\b)", ""),
            (r" \(deleted\)(?=\]$)", ""),
        ),
        sign=r"/tmp[a-z0-9_]{8}|_MEI[0-9a-zA-Z]|\d{10}\.(?:so|tmp|dll|dylib)| \(deleted\)\]$",
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
)
