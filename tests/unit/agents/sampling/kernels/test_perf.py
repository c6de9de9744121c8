"""perf: what it is asked for, how it fails, and what the installed one finds in a compiled program."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from agents.profiles.formats.collapsed import parse_collapsed
from agents.sampling.kernels import SamplerError, Sampling
from agents.sampling.kernels.perf import Perf, denied, explain
from agents.sampling.process import ExistingProcess, StartedCommand
from agents.sampling.sampler import Sampler

PROGRAM = """
#include <cstdint>
#include <csignal>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
namespace shop {
struct Price {
    __attribute__((noinline)) void total(int64_t n) { for (volatile int64_t i = 0; i < n; i = i + 1) {} }
    __attribute__((noinline)) void taxes(int64_t n) { for (volatile int64_t i = 0; i < 3 * n; i = i + 1) {} }
};
}
static void* work(void*) {
    shop::Price price;
    for (;;) { price.total(20000); price.taxes(20000); }
}
int main(int count, char** words) {
    if (count > 1) {
        while (access(words[1], F_OK)) usleep(10000);
        if (fork()) { for (;;) pause(); }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    pthread_t thread;
    pthread_create(&thread, nullptr, work, nullptr);
    pthread_join(thread, nullptr);
}
"""

STAND_IN = """#!{python} -S
import os, signal, sys
open({folder!r} + "/" + sys.argv[1], "w").write("\\n".join(sys.argv[1:]))
if sys.argv[1] == "script":
    sys.stdout.write(sys.stdin.read())
    sys.exit()
asked, answered = map(int, sys.argv[-1].removeprefix("fd:").split(","))
os.read(asked, 100)
print("{said}", file=sys.stderr, flush=True)
if {fails}:
    sys.exit(255)
signal.signal(signal.SIGINT, lambda *_: (print("shop 7 1.0: cpu-clock:\\n\\t1f main (/shop)\\n"), sys.exit()))
os.write(answered, b"ack\\n\\0")
signal.pause()
"""


def make_sampling(folder: Path, rate_hz: int = 101, **how: object) -> Sampling:
    return Sampling(folder, time.time, rate_hz=rate_hz, longest_s=60, **how)  # type: ignore[arg-type]


def make_stand_in(folder: Path, said: str = "", *, fails: bool = False) -> str:
    program = folder / "perf"
    program.write_text(STAND_IN.format(python=sys.executable, folder=str(folder), said=said, fails=fails))
    program.chmod(0o755)
    return str(program)


def run_stand_in(folder: Path, sampling: Sampling) -> bytes:
    run = Perf(sampling, make_stand_in(folder)).start(4711, lambda: None)
    deadline = time.monotonic() + 60
    while not run.ready and time.monotonic() < deadline:
        time.sleep(0.01)
    assert run.streams
    assert run.take() == b""
    run.stop()
    while run.exited is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return run.take()


def test_what_it_is_asked_for(tmp_path: Path) -> None:
    assert run_stand_in(tmp_path, make_sampling(tmp_path, rate_hz=11)) == b"shop;main 1\n"
    record, script = ((tmp_path / name).read_text() for name in ("record", "script"))
    for option in ("--pid\n4711", "--freq\n11", "--call-graph\nfp", "--event\ncpu-clock"):
        assert f"\n{option}\n" in record
    assert "\n--pid\n4711" in script  # the process alone, not its children
    run_stand_in(tmp_path, make_sampling(tmp_path, subprocesses=True, call_graph="dwarf"))
    assert "--pid" not in (tmp_path / "script").read_text()
    assert "dwarf,8192" in (tmp_path / "record").read_text().split("\n")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "Error:\nAccess to performance monitoring and observability operations is limited.",
            "not permitted: it",
        ),
        ("Error:\nNo permission to enable cpu-clock event.", "not permitted: it needs root, CAP_PERFMON"),
        (
            "Couldn't create thread/CPU maps: No such process",
            "perf: Couldn't create thread/CPU maps: No such",
        ),
        ("Events disabled\n[ perf record: Woken up 1 times ]", "perf ended"),
        ("", "perf ended"),
    ],
)
def test_complaints_are_one_line(said: str, reason: str) -> None:
    assert explain(said).startswith(reason)
    assert "\n" not in explain(said)


def test_a_run_that_fails_says_why(tmp_path: Path, target: ExistingProcess) -> None:
    kernel = Perf(make_sampling(tmp_path), make_stand_in(tmp_path, "Permission denied", fails=True))
    sampler = Sampler(kernel, target, interval_s=0.5, clock=time.time)
    with pytest.raises(SamplerError, match="cannot sample process .*: not permitted: it needs root"):
        list(sampler.intervals())


def test_who_may_use_it() -> None:
    assert denied(paranoid=2, privileged=False) == ""
    assert denied(paranoid=4, privileged=True) == ""
    assert "kernel.perf_event_paranoid=2" in denied(paranoid=3, privileged=False)


def test_what_it_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SamplerError, match="leave out --idle"):
        Perf(make_sampling(tmp_path, idle=True), "perf")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SamplerError, match="perf is not installed: install linux-perf"):
        Perf(make_sampling(tmp_path))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("perf", "g++"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("program")
    (folder / "shop.cpp").write_text(PROGRAM)
    flags = ["-O1", "-fno-omit-frame-pointer", "-pthread"]
    subprocess.run(["g++", *flags, "-o", folder / "shop", folder / "shop.cpp"], check=True)
    return folder / "shop"


def sampled(command: list[str], sampling: Sampling, wanted: int) -> tuple[Counter[str], float]:
    """Sample a command until there are so many samples.

    It stands still while perf begins and while it ends, so that no sample is on its way then.

    Returns:
        Leaves without the kernel, and the CPU time meanwhile, in seconds.
    """
    process = StartedCommand(command)
    os.kill(process.pid, signal.SIGSTOP)
    cpu_s = 0.0
    try:
        sampler = Sampler(Perf(sampling), process, interval_s=0.5, clock=time.time)
        leaves: Counter[str] = Counter()
        deadline = time.monotonic() + 120
        running = sampler.intervals()
        next(running)
        begun_s = cpu_s_of(process.pid)
        os.kill(process.pid, signal.SIGCONT)
        for interval in running:
            for stack, count in parse_collapsed(interval.data).stacks.items():
                leaves[[frame for frame in stack if not frame.endswith("_[k]")][-1]] += count
            if leaves.total() >= wanted or time.monotonic() > deadline:
                os.kill(process.pid, signal.SIGSTOP)
                cpu_s = cpu_s_of(process.pid) - begun_s
                sampler.stop()
    except SamplerError as error:
        pytest.skip(str(error))
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.stop()
    return leaves, cpu_s


def cpu_s_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_shares_and_counts_of_a_compiled_program_are_right(program: Path, tmp_path: Path) -> None:
    leaves, cpu_s = sampled([str(program)], make_sampling(tmp_path, rate_hz=997), 1800)
    inside = leaves["shop::Price::total"] + leaves["shop::Price::taxes"]
    assert inside > 0.9 * leaves.total()
    error = math.sqrt(0.25 * 0.75 / inside)
    assert leaves["shop::Price::total"] / inside == pytest.approx(0.25, abs=4 * error)
    assert leaves.total() == pytest.approx(cpu_s * 997, rel=0.3)


@pytest.mark.parametrize("subprocesses", [True, False])
def test_children_are_followed_if_asked_for(program: Path, tmp_path: Path, subprocesses: bool) -> None:
    forks = tmp_path / "forks"
    process = StartedCommand([str(program), str(forks)])
    sampling = make_sampling(tmp_path, rate_hz=499, subprocesses=subprocesses)
    found = b""
    try:
        sampler = Sampler(Perf(sampling), process, interval_s=0.5, clock=time.time)
        deadline = time.monotonic() + (120 if subprocesses else 3)
        for interval in sampler.intervals():
            forks.touch()
            found += interval.data
            if b"shop::Price" in found or time.monotonic() > deadline:
                sampler.stop()
    except SamplerError as error:
        pytest.skip(str(error))
    finally:
        process.stop()
    assert (b"work;shop::Price::t" in found) == subprocesses
