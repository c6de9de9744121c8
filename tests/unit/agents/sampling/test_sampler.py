"""The sampler over stand-ins for py-spy: programs that behave like it, or badly."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
import time
from itertools import islice
from pathlib import Path

import pytest

from agents.sampling.kernels import SamplerError, Sampling
from agents.sampling.kernels.pyspy import PySpy
from agents.sampling.process import ExistingProcess, SampledProcess, StartedCommand
from agents.sampling.sampler import Interval, Sampler, stop_limit_s
from pipeline.model.errors import ConfigError
from tests.unit.agents.host.fake_kernel import FakeKernels
from tests.unit.agents.steps import Steps

WELL = """
signal.signal(signal.SIGINT, finish)
print("py-spy> Sampling process 101 times a second", flush=True)
while True:
    time.sleep(60)
"""

FAILS = """
print("Error: Failed to find python version from target process\\n\\nStack backtrace:\\n   0: f")
sys.exit(1)
"""

DENIED = """
print("Permission Denied: Try running again with elevated permissions")
sys.exit(1)
"""


def stand_in(folder: Path, *behaviours: str) -> str:
    """Write a program that behaves in turn as given, the last way ever after; return its path."""
    head = """
    import os, pathlib, signal, sys, time
    folder = pathlib.Path(__file__).parent
    turn = len(list(folder.glob("turn-*")))
    (folder / f"turn-{turn}").touch()
    output = sys.argv[sys.argv.index("--output") + 1]
    def finish(*_):
        pathlib.Path(output).write_text(f"main;run{turn} 3\\n")
        os._exit(0)
    """
    branches = "".join(
        f"if turn {'>=' if i == len(behaviours) - 1 else '=='} {i}:\n{textwrap.indent(code, '    ')}\n"
        for i, code in enumerate(behaviours)
    )
    program = folder / "py-spy"
    program.write_text(f"#!{sys.executable} -S\n{textwrap.dedent(head)}\n{branches}")
    program.chmod(0o755)
    return str(program)


def make_sampler(folder: Path, binary: str, target: SampledProcess, interval_s: float = 0.5) -> Sampler:
    kernel = PySpy(Sampling(folder, time.time, rate_hz=101, longest_s=60), binary)
    return Sampler(kernel, target, interval_s=interval_s, clock=time.time)


def test_intervals_follow_one_another(tmp_path: Path, target: SampledProcess) -> None:
    sampler = make_sampler(tmp_path, stand_in(tmp_path, WELL), target, interval_s=1.0)
    intervals = list(islice(sampler.intervals(), 3))
    assert [interval.data for interval in intervals] == [b"main;run%d 3\n" % turn for turn in range(3)]
    for before, after in zip(intervals, intervals[1:], strict=False):
        assert before.end == after.start


@pytest.mark.parametrize(("begins_s", "first_s"), [(0.3, 0.7), (0.7, 0.3), (0.8, 1.2)])
def test_intervals_end_at_multiples(
    target: SampledProcess, monkeypatch: pytest.MonkeyPatch, begins_s: float, first_s: float
) -> None:
    clock = Steps()
    clock.now += begins_s
    monkeypatch.setattr("tests.unit.agents.host.fake_kernel.time.time", clock)
    sampler = Sampler(FakeKernels(), target, interval_s=1.0, clock=clock)
    clock.drive(sampler)
    running = sampler.intervals()
    intervals = list(islice(running, 3))
    running.close()
    assert [interval.end - interval.start for interval in intervals] == pytest.approx([first_s, 1.0, 1.0])
    for interval in intervals:
        assert interval.end == pytest.approx(round(interval.end), abs=1e-3, rel=0)


def test_stopping_yields_what_was_sampled(tmp_path: Path, target: SampledProcess) -> None:
    sampler = make_sampler(tmp_path, stand_in(tmp_path, WELL), target)
    running = sampler.intervals()
    first = next(running)
    sampler.stop()
    (last,) = running
    assert (first.data, last.data) == (b"main;run0 3\n", b"main;run1 3\n")
    assert first.end == last.start <= last.end
    assert sampler.stopping


ENDS = 'print("Sampling process", flush=True)\nfinish()\n'


PROLONGED = "extended: Failed to find python version"


@pytest.mark.parametrize(
    ("behaviours", "runs", "said"),
    [
        pytest.param((WELL, FAILS, WELL), [0, 2], PROLONGED, id="one that fails prolongs the interval"),
        pytest.param((ENDS, WELL), [0, 1], "", id="one that ends by itself is replaced"),
    ],
)
def test_a_run_that_is_over_early(
    tmp_path: Path,
    target: SampledProcess,
    caplog: pytest.LogCaptureFixture,
    behaviours: tuple[str, ...],
    runs: list[int],
    said: str,
) -> None:
    running = make_sampler(tmp_path, stand_in(tmp_path, *behaviours), target).intervals()
    first, second = islice(running, 2)
    assert [first.data, second.data] == [b"main;run%d 3\n" % run for run in runs]
    assert (first.end == second.start) is bool(said)
    assert said in caplog.text


@pytest.mark.parametrize(
    ("behaviours", "reason"),
    [
        pytest.param((FAILS,), "cannot sample process .*: Failed to find python version", id="cannot at all"),
        pytest.param((DENIED,), "not permitted", id="not permitted"),
        pytest.param((ENDS, FAILS), "any more", id="not any more"),
    ],
)
def test_a_process_that_cannot_be_sampled(
    tmp_path: Path, target: SampledProcess, behaviours: tuple[str, ...], reason: str
) -> None:
    sampler = make_sampler(tmp_path, stand_in(tmp_path, *behaviours), target)
    with pytest.raises(SamplerError, match=reason):
        list(sampler.intervals())


@pytest.mark.parametrize(
    ("user", "reason"), [(1000, "not permitted: py-spy needs root"), (0, "it has just ended, or root lacks")]
)
def test_root_is_not_asked_to_be_root(
    tmp_path: Path, target: SampledProcess, monkeypatch: pytest.MonkeyPatch, user: int, reason: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(SamplerError, match=reason):
        list(make_sampler(tmp_path, stand_in(tmp_path, DENIED), target).intervals())


def test_a_command_gets_time_to_start(tmp_path: Path) -> None:
    command = StartedCommand(["sleep", "60"])
    try:
        running = make_sampler(tmp_path, stand_in(tmp_path, FAILS, FAILS, WELL), command).intervals()
        assert next(running).data == b"main;run2 3\n"
    finally:
        command.stop()
    assert not command.alive()


def test_a_command_that_is_over_before_it_was_sampled_is_no_error(tmp_path: Path) -> None:
    command = StartedCommand(["sh", "-c", "exit 7"])
    assert list(make_sampler(tmp_path, stand_in(tmp_path, FAILS), command).intervals()) == []
    assert command.exit_code() == 7


def test_nothing_is_left_behind_by_a_consumer_that_goes_away(tmp_path: Path, target: SampledProcess) -> None:
    running = make_sampler(tmp_path, stand_in(tmp_path, WELL), target).intervals()
    assert isinstance(next(running), Interval)
    running.close()
    deadline = time.monotonic() + 60
    while _runs_under(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("rate_hz", "pauses_s"), [(1, 1.0), (11, 1 / 11), (101, 1 / 101)])
def test_a_kernel_has_the_time_to_draw_its_last_pause(rate_hz: int, pauses_s: float) -> None:
    """Pauses are exponential: a run that is ended after one that was too long loses its interval."""
    assert math.exp(-stop_limit_s(rate_hz) / pauses_s) < 1e-6


def test_a_zombie_is_not_alive_and_what_has_ended_no_process() -> None:
    process = subprocess.Popen(["sleep", "60"])
    target = ExistingProcess(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not target.alive()
    process.wait()
    with pytest.raises(ConfigError, match="no process has the id"):
        ExistingProcess(process.pid)


def test_a_command_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.sampling.process.STOP_S", 0.1)
    command = StartedCommand(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"])
    command.stop()
    assert command.exit_code() < 0


def _runs_under(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found
