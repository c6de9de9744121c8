"""Output of ``perf script`` as stacks."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from agents.profiles.formats import AUTO, ProfileSource, Sample, find_format, parse
from agents.profiles.formats.cpu import counts_cpu
from agents.profiles.formats.perf_script import PerfScriptFormat
from agents.profiles.message import ProfileOrigin
from agents.profiles.profile_files import Import, read_files
from pipeline.model.errors import ConfigError
from tests.support.paths import REAL_DATA

FRAMES = "\t          401136 work\n\t          401140 main\n\n"
SAMPLES = REAL_DATA / "profiles"
HEADER = "my app  12/13    [001]  100.250000:     250000 cpu-clock:u: \n"


def stacks_of(text: str, *, header: str = HEADER) -> dict[tuple[str, ...], int]:
    parsed = parse(PerfScriptFormat(), (header + text).encode())
    assert parsed.invalid == 0, parsed.first_invalid
    return dict(parsed.stacks)


@pytest.mark.parametrize(
    ("frames", "stack"),
    [
        pytest.param("\t 1f f (/bin/app)\n\t 2f main (/bin/app)", ("main", "f"), id="leaf first"),
        pytest.param("\t 1f f+0x12 (/bin/app)", ("f",), id="an offset"),
        pytest.param("\t 1f a::b(int, char (*)()) (/bin/app)", ("a::b(int, char (*)())",), id="a signature"),
        pytest.param("\t 1f do_sys_open ([kernel.kallsyms])", ("do_sys_open_[k]",), id="the kernel"),
        pytest.param("\t 1f nf_hook ([nf_tables])", ("nf_hook_[k]",), id="a module of the kernel"),
        pytest.param("\t 1f LApp;::run (/tmp/perf-12.map)", ("LApp;::run_[j]",), id="compiled as it runs"),
        pytest.param("\t 1f f (/usr/lib/debug/boot/vmlinux-6.1)", ("f_[k]",), id="the kernel's file"),
        pytest.param("\t 1f f (/modules/nf.ko+0x456)", ("f_[k]",), id="dsoff: a module"),
        pytest.param("\t 1f f (/tmp/perf-1.map+0x1)", ("f_[j]",), id="dsoff: a map file"),
        pytest.param("\t 1f [unknown] (/lib/libc.so.6+0x2a1ca)", ("[libc.so.6]",), id="dsoff: no symbol"),
        pytest.param("\t 1f f+0x14 (/opt/app (x86)/bin/app)", ("f",), id="a path with brackets"),
        pytest.param("\t 1f f(int (*)(char)) (/memfd:a (deleted))", ("f(int (*)(char))",), id="deleted"),
        pytest.param("\t 1f [unknown] ([JIT] tid 12)", ("[JIT]",), id="compiled code of a thread"),
        pytest.param("\t 1f f ([JIT] tid 12)", ("f_[j]",), id="compiled code with a name"),
        pytest.param("\t 1f [unknown] ([guest.kernel.kallsyms.7])", ("[guest.kernel.kallsyms]",), id="guest"),
        pytest.param("\t 1f g (inlined)", ("g_[i]",), id="inlined"),
        pytest.param("\t 1f [unknown] (/lib/libc.so.6)", ("[libc.so.6]",), id="a library without symbols"),
        pytest.param("\t 1f [unknown] ([unknown])", ("[unknown]",), id="nothing is known"),
        pytest.param(
            "\t 1f py::work:/srv/shop/cart.py (/tmp/perf-1.map)", ("work (/srv/shop/cart.py)",), id="Python"
        ),
    ],
)
def test_frames(frames: str, stack: tuple[str, ...]) -> None:
    assert stacks_of(frames) == {("my app", *stack): 1}


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("app 12 100.5: cpu-clock: \n", id="a pid alone"),
        pytest.param("app 12/12 100.5: 1 cycles:ppp: \r\n", id="with a period, CR LF"),
        pytest.param("app    -1/-1 [003] d..2. 100.5: cycles: \n", id="flags, no process"),
        pytest.param("app 12 cpu-clock: \n", id="no time"),
        pytest.param("# a comment\n\n\napp 1 1.0: cycles:\n", id="comments before it"),
    ],
)
def test_headers(header: str) -> None:
    assert stacks_of("\t 1f f (/bin/app)\n", header=header) == {("app", "f"): 1}


@pytest.mark.parametrize(
    ("header", "root"),
    [
        pytest.param(" 4711   100.000100:     250000 cycles:P: \n", (), id="no command"),
        pytest.param(" 4711/4712 [003]  100.000100: cycles: \n", (), id="no command, a CPU"),
        pytest.param("[003] d..2. 100.5: cycles: \n", (), id="no command and no process"),
        pytest.param("100.000100: cycles: \n", (), id="a time alone"),
        pytest.param("my app [003] 100.5: 1 cycles: \n", ("my app",), id="no process"),
        pytest.param("shop 100.5: cycles: \n", ("shop",), id="no process and no CPU"),
        pytest.param("100.5: 250000 cycles:P: \n", (), id="time and period"),
        pytest.param("cycles:P: \n", (), id="the event alone"),
        pytest.param("250000 cycles:P: \n", (), id="period and event"),
        pytest.param("shop 250000 cycles:P: \n", ("shop",), id="command, period and event"),
        pytest.param("shop cycles:P: \n", ("shop",), id="command and event"),
        pytest.param("my app 12/13 250000 cpu_core/cycles/: \n", ("my app",), id="no time, a period"),
        pytest.param("shop 12/13 [001] \n", ("shop",), id="no time and no event"),
        pytest.param("shop 12 100.5: \n", ("shop",), id="no event"),
        pytest.param("12 \n", (), id="a process alone"),
        pytest.param("nginx: worker p 12/12 [001] 1.5: 1 cycles: \n", ("nginx: worker p",), id="a colon"),
        pytest.param("7 12/12 [001] 1.5: 1 cycles: \n", ("7",), id="a command that is a number"),
        pytest.param("kworker/0:1-ev 12 1.5: 1 cycles: \n", ("kworker/0:1-ev",), id="a kernel thread"),
        pytest.param("shop 12 [001] 2026-11-28 12:00:00.5 1.5: 1 cycles: \n", ("shop",), id="time of day"),
        pytest.param("shop 12 2026-11-28 12:00:00.5 1 cycles: \n", ("shop",), id="time of day alone"),
        pytest.param("VM:  12 VCPU:000 shop 12 [001] 1.5: 1 cycles: \n", ("shop",), id="a machine's CPU"),
    ],
)
def test_headers_without_some_of_their_fields(header: str, root: tuple[str, ...]) -> None:
    assert stacks_of("\t 401000 f (/bin/app)\n", header=header) == {(*root, "f"): 1}
    assert PerfScriptFormat().recognises(f"{header}\t 401000 f (/bin/app)\n\n".encode())
    assert PerfScriptFormat().recognises(f"{header}\t 1f f (/bin/app)\n\n".encode())


@pytest.mark.parametrize(
    ("fields", "root"),
    [
        pytest.param("app   12/13    [001] 1.5: ", ("app",), id="comm,pid,tid,cpu,time"),
        pytest.param("app   12/13    [001] ", ("app",), id="comm,pid,tid,cpu"),
        pytest.param("app      12 ", ("app",), id="comm,tid"),
        pytest.param("node 18      12 ", ("node 18",), id="comm,tid of a command that ends in a number"),
        pytest.param("my app ", ("my app",), id="comm"),
        pytest.param("     12 ", (), id="tid"),
        pytest.param("1.5: ", (), id="time"),
        pytest.param("", (), id="nothing else"),
    ],
)
@pytest.mark.parametrize(
    ("periods", "weights"),
    [([7, 7], [1, 1]), ([1000, 3000], [1000, 3000]), ([10**11, 10**10], [10**11, 10**10])],
)
def test_a_period_without_its_event_is_a_weight_in_columns_as_perf_writes_them(
    fields: str, root: tuple[str, ...], periods: list[int], weights: list[int]
) -> None:
    text = "".join(f"{fields}{period:10d} \n\t    7f00c0de f (/bin/app)\n\n" for period in periods)
    reading = PerfScriptFormat().read(ProfileSource.of(text.encode()), "")
    assert list(reading.records) == [Sample((*root, "f"), weight) for weight in weights]
    assert counts_cpu(reading.measure)


COLUMNS = {  # as perf writes its fields, in the order in which it does
    "comm": "{comm} ",
    "pid": "   1234 ",
    "cpu": "[003] ",
    "tod": "2026-11-28 12:00:00.123456 ",
    "time": "   100.000001: ",
    "period": "{period:10d} ",
    "event": "cycles:P: ",
}


@pytest.mark.parametrize("comm", ["app", "my app", "kworker/0:1-ev", "1.5"])
@pytest.mark.parametrize("periods", [[250_000, 250_000], [1000, 3000]], ids=["equal", "different"])
def test_any_choice_of_fields_is_read_rightly_or_refused(comm: str, periods: list[int]) -> None:
    subsets = [fields for size in range(8) for fields in combinations(COLUMNS, size)]
    refused = 0
    for fields in subsets:
        header = "".join(COLUMNS[field] for field in fields)
        text = "".join(f"{header.format(comm=comm, period=period)}\n{FRAMES}" for period in periods).encode()
        try:
            records = list(find_format(AUTO, text).read(ProfileSource.of(text), "").records)
        except ConfigError:
            refused += 1
            continue
        stack = (*[comm] * ("comm" in fields), "main", "work")
        weights = periods if "period" in fields and periods[0] != periods[1] else [1, 1]
        assert records == [Sample(stack, weight) for weight in weights], header
    assert refused <= 15, "those without time, event and period"


def test_events_add_up_and_those_without_frames_are_counted_apart() -> None:
    event = HEADER + "\t 1f f (/bin/app)\n"
    parsed = parse(PerfScriptFormat(), f"{event}\n{event}{HEADER}\n{event}".encode())
    assert parsed.stacks == {("my app", "f"): 3}
    assert (parsed.frameless, parsed.invalid) == (1, 0)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param(HEADER + "\t no frame\n", "line 1", id="a frame that is none"),
        pytest.param("nothing of perf\n\n" + HEADER + "\t 1f f (/b)", "line 1", id="a header that is none"),
        pytest.param("\t 1f f (/b)\n", "line 1", id="frames without a header"),
    ],
)
def test_what_makes_no_sense_is_invalid(text: str, where: str) -> None:
    parsed = parse(PerfScriptFormat(), text.encode())
    assert parsed.invalid == 1
    assert parsed.first_invalid.startswith(where)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared profiles are not beside this checkout")
@pytest.mark.parametrize(("name", "stacks"), [("simple-with-pid", 7), ("forks", 22), ("rust-mangled", 22)])
def test_real_files_are_whole(name: str, stacks: int) -> None:
    data = (SAMPLES / f"{name}.linux-perf.txt").read_bytes()
    parsed = parse(PerfScriptFormat(), data)
    assert len(parsed.stacks) == stacks
    assert parsed.samples + parsed.frameless == sum(1 for line in data.splitlines() if line[:1].strip())


@pytest.mark.parametrize(
    "data", [b"", b"a;b 3\n", b"main 1 2.0: x\n", b"main 1 other:\n", b"\xff\xfe", HEADER.encode()]
)
def test_other_files_are_not_recognised(data: bytes) -> None:
    assert not PerfScriptFormat().recognises(data)


def events(*headers: str) -> bytes:
    """Events with a frame each: f, g, h, …"""
    frames = zip(headers, "fghijklm", strict=False)
    return "".join(
        f"app 12 100.5: {header}: \n\t 1f {name} (/bin/app)\n\n" for header, name in frames
    ).encode()


@pytest.mark.parametrize(
    ("headers", "value", "counts", "left_out"),
    [
        pytest.param(
            ["1 cycles:u", "1 instructions:u", "1 cycles:u"],
            "",
            {"f": 1, "h": 1},
            {"instructions": 1},
            id="two events",
        ),
        pytest.param(["1 cycles", "1 instructions:u"], "instructions", {"g": 1}, {"cycles": 1}, id="by name"),
        pytest.param(
            ["1 cpu_core/cycles/P", "1 cpu_atom/cycles/P"], "", {"f": 1, "g": 1}, {}, id="hybrid cores"
        ),
        pytest.param(
            ["1 cpu_core/cycles/", "1 cpu_atom/instructions/"],
            "cpu_core/cycles/",
            {"f": 1},
            {"instructions": 1},
            id="a kind of cores and another event",
        ),
        pytest.param(
            ["1 sched:sched_switch", "1 page-faults", "1 cpu-clock:ppp"],
            "",
            {"h": 1},
            {"sched:sched_switch": 1, "page-faults": 1},
            id="CPU after others",
        ),
        pytest.param(
            ["1 instructions:u", "1 cache-misses", "1 cycles"],
            "",
            {"h": 1},
            {"instructions": 1, "cache-misses": 1},
            id="cycles before instructions",
        ),
        pytest.param(["1 ibs_op//p", "1 ibs_fetch//"], "", {"f": 1}, {"ibs_fetch": 1}, id="AMD's"),
        pytest.param(["1 cycles/freq=99/u", "1 cycles:P"], "", {"f": 1, "g": 1}, {}, id="terms"),
        pytest.param(["probe:open", "probe:close"], "", {"f": 1}, {"probe:close": 1}, id="two probes"),
        pytest.param(
            ["1 cycles", "1 cycles", "2 cycles", "96 cycles"], "", {"i": 4}, {}, id="periods are weights"
        ),
        pytest.param(["250000 cpu-clock", "250000 cpu-clock"], "", {"f": 1, "g": 1}, {}, id="equal periods"),
    ],
)
def test_events_of_one_name_count_by_their_periods_and_the_others_are_named(
    headers: list[str], value: str, counts: dict[str, int], left_out: dict[str, int]
) -> None:
    parsed = parse(PerfScriptFormat(), events(*headers), value)
    assert dict(parsed.stacks) == {("app", name): count for name, count in counts.items()}
    assert (dict(parsed.left_out), parsed.invalid) == (left_out, 0)


@pytest.mark.parametrize(
    ("event", "is_cpu"),
    [
        ("cycles:P", True),
        ("task-clock", True),
        ("cpu_atom/cycles/", True),
        ("ibs_op//", True),
        ("cycles/period=100000,call-graph=fp/u", True),
        ("cpu/event=0x3c/", False),
        ("ibs_fetch//", False),
        ("page-faults", False),
    ],
)
def test_only_an_event_of_cpu_counts_as_cpu(event: str, is_cpu: bool) -> None:
    for headers in ([f"1 {event}"], [f"1 {event}", f"7 {event}"]):
        assert counts_cpu(parse(PerfScriptFormat(), events(*headers)).measure) is is_cpu


@pytest.mark.parametrize(
    ("text", "stacks"),
    [
        pytest.param(
            "   dd 12 100.5: 1 cycles:  ffff f+0x3 (/bin/app)\n"
            "   cat 12 100.6: 1 cycles:  ffff g (/bin/app)\n",
            {("dd", "f"): 1, ("cat", "g"): 1},
            id="padded commands, one of them spelt as a number",
        ),
        pytest.param(
            "java 19983 cycles:\nffffffff8103d0ca f ([kernel.kallsyms])\n    7f12 g (/lib/libjvm.so)\n\n",
            {("java", "g", "f_[k]"): 1},
            id="frames that are not indented",
        ),
        pytest.param(
            "java 1 1.0: cycles:\n\t 7f1 LA;::f->LB;::g (/tmp/perf-1.map)\n",
            {("java", "LA;::f_[j]", "LB;::g_[i]"): 1},
            id="Java's inlined functions",
        ),
        pytest.param(
            "app 1 1.0: cycles:\n\t 7f1 T::operator->() (/bin/app)\n",
            {("app", "T::operator->()"): 1},
            id="an arrow that is a name",
        ),
        pytest.param("app 12 100.5: 1 cycles:  55d3 f+0x3 (/bin/app)\n", {("app", "f"): 1}, id="one line"),
    ],
)
def test_what_versions_of_perf_write(text: str, stacks: dict[tuple[str, ...], int]) -> None:
    assert stacks_of("", header=text) == stacks


@pytest.mark.parametrize(
    "line",
    [
        "a" + " " * 100_000 + "b",
        "a 12/13" + " " * 100_000 + "b",
        "a 1" * 100_000,
        "a " * 100_000 + "1/1 [0",
        "a 1 [1] " + "x:" * 100_000,
    ],
    ids=["spaces", "spaces after the pid", "numbers", "words", "names"],
)
def test_a_long_line_takes_time_by_its_length(line: str) -> None:
    """Where it took the square of it, this test would not end within its limit."""
    assert PerfScriptFormat().recognises(f"{line}\n".encode()) is False
    assert parse(PerfScriptFormat(), f"{line}\n".encode()).samples == 0


@pytest.mark.parametrize(
    ("header", "added", "ends"),
    [
        pytest.param("app 12 U    1.5: 1 cycles: ", "", True, id="misc of user code"),
        pytest.param("app 12 [001] Kp   1.5: 1 cycles: ", "", True, id="misc of the kernel"),
        pytest.param("app 12 1.5: 1 cycles: ", "  cart.c:12\n", True, id="srcline"),
        pytest.param("app 12 1.5: 1 cycles: ", "  cart.c:12 (discriminator 3)\n", True, id="discriminator"),
        pytest.param("app 12 1.5: 1 cycles: ", "  app[1a0]\n", True, id="srcline without debug information"),
        pytest.param(
            "app 12 1.5: 1 cycles: ", " 0x401136/0x401120/P/-/-/3  0x41/0x42/M/-/-/1 \n", True, id="brstack"
        ),
        pytest.param("app 12 1.5: 1 cycles: ", " ABI:2    AX:0x1    BX:0x2\n", True, id="iregs"),
        pytest.param("app 12 1.5: 1 cycles: ", " ilen: 3 insn: 48 89 e5\n", True, id="insn"),
        pytest.param("app 12 1.5: 1 cycles: ", "    123456789abc\n", True, id="phys_addr"),
        pytest.param("app 12 1.5: 1 cycles:   /system.slice/app.service", "", True, id="cgroup"),
        pytest.param("app 12 1.5: 1 cycles:               30", "", True, id="weight"),
        pytest.param("app 12 1.5: 1 cycles: ", "", False, id="no binaries"),
    ],
)
def test_fields_beside_the_stack_change_nothing(header: str, added: str, ends: bool) -> None:
    binary = " (/bin/app)" if ends else ""
    event = f"{header}\n\t  55d0c0de f(int)+0x1{binary}\n{added}\t  55d0c0df main+0x2{binary}\n{added}\n"
    assert PerfScriptFormat().recognises((event * 3).encode())
    assert stacks_of(event * 3, header="") == {("app", "main", "f(int)"): 3}


def test_lost_events_are_counted_and_other_records_of_perf_are_no_samples() -> None:
    records = "app 1 0.5: PERF_RECORD_COMM exec: app:1/1\n\napp 1 2.0: PERF_RECORD_LOST lost 120\n\n"
    records += "app 1 2.1: PERF_RECORD_COMM: app:1/1\n"
    event = "app 1 1.5: 1 cycles: \n\t  55d0c0de f (/bin/app)\n\n"
    parsed = parse(PerfScriptFormat(), (event + records).encode())
    assert (parsed.samples, parsed.frameless, parsed.invalid) == (1, 0, 0)
    assert parsed.left_out == {"lost by perf": 120}


@pytest.mark.parametrize(
    ("text", "stack"),
    [
        pytest.param(f"\n{FRAMES}" * 2, ("main", "work"), id="ip,sym"),
        pytest.param(f"\n{FRAMES}" * 2000, ("main", "work"), id="more than the head"),
        pytest.param("\t    7f00c0de work (/bin/app)\n\n" * 2, ("work",), id="ip,sym,dso"),
        pytest.param(f"app 12 \n{FRAMES}" * 2, ("app", "main", "work"), id="comm,pid,ip,sym"),
        pytest.param("app 12/13 [001] \n\t 7f00c0de work\n\n" * 2, ("app", "work"), id="hexadecimal"),
    ],
)
def test_stacks_without_events_are_read_where_their_columns_are_sure(
    text: str, stack: tuple[str, ...]
) -> None:
    assert PerfScriptFormat().recognises(ProfileSource.of(text.encode()).head)
    assert stacks_of(text, header="") == {stack: text.count("work")}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        pytest.param(FRAMES.replace("\t", "  "), "-F comm,pid", id="no tabs: a sample a line, or a stack"),
        pytest.param("\n\twork\n\tmain\n\n" * 3, "-F comm,pid", id="sym alone"),
        pytest.param("app 12 \n\t 401136 work\n\t 401140 main\n\n", "-F comm,pid", id="no columns"),
        pytest.param("my app \n\t    7f00c0de f (/bin/a)\n\n" * 3, "-F comm,pid", id="comm,ip,sym,dso"),
        pytest.param("app 12 1.5: 1 cycles: \n\t    7f00c0de\n\n" * 3, "-F comm,pid", id="no symbols"),
        pytest.param(
            "app 12 [001] 1.5: 1 branches:uH:   main   401136 main+0x0 (/bin/app)\n"
            "app 12 [001] 1.6: 1 branches:uH:     f    401140 f+0x0 (/bin/app)\n",
            "without callindent",
            id="callindent",
        ),
        pytest.param("ls 12 [001] 1.5: ( /bin/ls ) main\n" * 3, "without callindent", id="call traces"),
        pytest.param(
            "swapper 0 [000] 1.5: sched:sched_switch: prev_comm=a ==> b\n", "`perf record -g`", id="no stacks"
        ),
    ],
)
def test_what_is_not_sure_is_refused_with_the_fields_to_give(text: str, about: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_format(AUTO, text.encode())
    assert about in str(refused.value)


def test_events_without_stacks_are_counted_where_a_file_has_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("app 12 [001] 1.5: cycles: \n\n" * 3)
    with pytest.raises(
        ConfigError, match="has no events of perf script .*; there are 3 samples without frames"
    ):
        read_files([tmp_path / "a"], Import(ProfileOrigin("s", "h"), 1e9, 60.0, 10_000, "perf"))
