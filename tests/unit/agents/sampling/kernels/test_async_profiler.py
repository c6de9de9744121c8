"""async-profiler: a stand-in for asprof, and its library in a real JVM where both are here."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from agents.profiles.formats.collapsed import parse_collapsed
from agents.sampling.kernels import SamplerError, Sampling
from agents.sampling.kernels.async_profiler import AsyncProfiler, explain
from agents.sampling.process import ExistingProcess, StartedCommand
from agents.sampling.sampler import Sampler

PROGRAM = """
public class Shop {
    static volatile long sum;
    static void total(int n) { for (int i = 0; i < n; i++) sum += i; }
    static void taxes(int n) { for (int i = 0; i < 3 * n; i++) sum += i; }
    public static void main(String[] words) { for (;;) { total(20000); taxes(20000); } }
}
"""

STAND_IN = """#!{python} -S
import pathlib, sys
action, file, folder = sys.argv[1], sys.argv[sys.argv.index("-f") + 1], pathlib.Path({folder!r})
with (folder / "asked").open("a") as asked:
    asked.write(" ".join(sys.argv[1:]) + "\\n")
if {said!r}:
    sys.exit({said!r})
turn = len((folder / "asked").read_text().splitlines()) - 1
if action != "start":
    pathlib.Path(file).write_text(f"main;work {{10 * turn}}\\nmain;once 7\\n")
"""

SHIM = """#!/bin/sh
# What asprof does, by the JVM's own tool: the library is published without asprof.
action=$1; shift
options=
while [ $# -gt 1 ]; do
    case $1 in
        -e) options=$options,event=$2 ;;
        -i) options=$options,interval=$2 ;;
        -o) options=$options,$2 ;;
        -f) options=$options,file=$2 ;;
    esac
    shift 2
done
jcmd $1 JVMTI.agent_load {library} "\\"$action$options\\"" | grep -q "return code: 0"
"""


def write_program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def make_stand_in(folder: Path, said: str = "") -> str:
    return write_program(
        folder / "asprof", STAND_IN.format(python=sys.executable, folder=str(folder), said=said)
    )


def make_sampling(folder: Path, rate_hz: int = 101, **how: object) -> Sampling:
    return Sampling(folder, time.time, rate_hz=rate_hz, longest_s=60, **how)  # type: ignore[arg-type]


def test_a_take_is_the_difference_of_two_dumps(tmp_path: Path, target: ExistingProcess) -> None:
    kernel = AsyncProfiler(make_sampling(tmp_path), make_stand_in(tmp_path))
    sampler = Sampler(kernel, target, interval_s=0.5, clock=time.time)
    running = sampler.intervals()
    found = [interval.data for interval in islice(running, 2)]
    sampler.stop()
    found += [interval.data for interval in running]
    assert found == [b"main;work 10\nmain;once 7\n", b"main;work 10\n", b"main;work 10\n"]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["start", "dump", "dump", "stop"]
    assert "-e cpu -i 9900990ns -o collapsed -f /tmp/smidgen-" in asked[0]
    assert asked[0].endswith(f" {target.pid}")
    assert not Path(asked[0].split()[8]).exists()


def test_a_process_that_ends_ends_the_run(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        run = AsyncProfiler(make_sampling(tmp_path), make_stand_in(tmp_path)).start(process.pid, lambda: None)
        wait_for(lambda: run.ready > 0)
        process.kill()
    wait_for(lambda: run.exited is not None)
    assert run.take() == b""
    assert run.complaint() == "the JVM ended"


def test_a_run_that_fails_says_why(tmp_path: Path, target: ExistingProcess) -> None:
    kernel = AsyncProfiler(
        make_sampling(tmp_path), make_stand_in(tmp_path, "[ERROR] Profiler already started")
    )
    sampler = Sampler(kernel, target, interval_s=0.5, clock=time.time)
    with pytest.raises(SamplerError, match="process .*: async-profiler: Profiler already started$"):
        list(sampler.intervals())


def test_complaints() -> None:
    assert explain("Could not attach to 7: Permission denied").startswith(
        "not permitted: async-profiler needs"
    )
    assert explain("\n[ERROR] no such event\nmore") == "async-profiler: no such event"


def test_what_it_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SamplerError, match="leave out --subprocesses"):
        AsyncProfiler(make_sampling(tmp_path, subprocesses=True), "asprof")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ASPROF", raising=False)
    with pytest.raises(SamplerError, match="not installed: put its asprof on PATH, or name it by ASPROF="):
        AsyncProfiler(make_sampling(tmp_path))
    monkeypatch.setenv("ASPROF", make_stand_in(tmp_path))
    AsyncProfiler(make_sampling(tmp_path))


def test_shares_of_a_java_program_are_right(tmp_path: Path) -> None:
    for tool in ("java", "javac", "jcmd"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    jars = sorted((Path.home() / ".m2/repository/tools/profiler/async-profiler").glob("*/*[0-9].jar"))
    if not jars:
        pytest.skip("tools.profiler:async-profiler is not in the local Maven repository")
    with zipfile.ZipFile(jars[-1]) as jar:
        library = jar.extract("linux-x64/libasyncProfiler.so", tmp_path)
    (tmp_path / "Shop.java").write_text(PROGRAM)
    subprocess.run(["javac", "-d", tmp_path, tmp_path / "Shop.java"], check=True)
    kernel = AsyncProfiler(
        make_sampling(tmp_path, rate_hz=997), write_program(tmp_path / "asprof", SHIM.format(library=library))
    )
    process = StartedCommand(["java", "-Xmx64m", "-cp", str(tmp_path), "Shop"])
    leaves: Counter[str] = Counter()
    try:
        sampler = Sampler(kernel, process, interval_s=0.5, clock=time.time)
        deadline = time.monotonic() + 120
        for interval in sampler.intervals():
            for stack, count in parse_collapsed(interval.data).stacks.items():
                leaves[stack[-1]] += count
            if leaves["Shop.total"] + leaves["Shop.taxes"] > 900 or time.monotonic() > deadline:
                sampler.stop()
    finally:
        process.stop()
    inside = leaves["Shop.total"] + leaves["Shop.taxes"]
    assert inside > 900
    assert leaves["Shop.total"] / inside == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / inside))


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)
