from __future__ import annotations

import itertools
import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import smidgen.inprocess as smidgen_sampler
from agents.inprocess.control import _process
from agents.inprocess.marks import sampling
from agents.inprocess.sampling import LARGEST_GAP_S, SamplerThread
from agents.inprocess.switching import SwitchInterval
from tests.support.paths import ROOT

RATE_HZ = 200.0
WAIT_S = 120.0


class Taken:
    """What a sampler sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def __call__(self, value: bytes) -> None:
        self.messages.append(json.loads(value))

    def counts(self, *leaves: str) -> Counter[str]:
        """Count samples by the innermost of some functions in their stacks; an empty name is all others."""
        found: Counter[str] = Counter()
        for message in self.messages:
            for stack, count in zip(message["stacks"], message["counts"], strict=True):
                names = [message["frames"][index].rpartition(".")[2] for index in reversed(stack)]
                found[next((name for name in names if name in leaves), "")] += count
        return found


@pytest.fixture
def taken() -> Iterator[Taken]:
    yield Taken()
    smidgen_sampler.stop()
    assert not sampling.on


def sample(taken: Taken, **options: Any) -> None:
    given: dict[str, Any] = {"rate_hz": RATE_HZ, "interval": "1h", "budget": 1.0} | options
    assert smidgen_sampler.start("shop", send_to=taken, **given)


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def often() -> None:
    burn(0.009)


def seldom() -> None:
    burn(0.003)


def asleep() -> None:
    time.sleep(0.012)


@dataclass(frozen=True)
class Effort:
    """What some threads and their sampler took while they ran: seconds, and how often the sampler looked."""

    cpu_s: float
    waited_s: float  # for a CPU that others had, of all these threads
    wall_s: float
    looks: int


def waited_s(thread: int | str = "thread-self") -> float:
    """Return how long a thread of this process has waited for a CPU, by its kernel id."""
    folder = f"/proc/self/task/{thread}" if isinstance(thread, int) else f"/proc/{thread}"
    return int(Path(folder, "schedstat").read_text().split()[1]) / 1e9


def run_threads(
    *steps: list[Any], seconds: float = 0.0, until: Callable[[], object] = lambda: True
) -> Effort:
    """Run threads that repeat their steps, for so long and on until something is so."""
    began = time.monotonic()
    over = threading.Event()
    spent: list[tuple[float, float]] = []

    def repeat(functions: list[Any]) -> None:
        while not over.is_set():
            for function in functions:
                function()
        spent.append((time.thread_time(), waited_s()))

    threads = [threading.Thread(target=repeat, args=(each,)) for each in steps]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    while not until() and time.monotonic() < began + WAIT_S:
        time.sleep(0.02)
    over.set()
    for thread in threads:
        thread.join()
    assert _process.run
    sampler = _process.run.sampler
    waited = waited_s(sampler._thread.native_id or 0) if sampler._thread.is_alive() else 0.0
    return Effort(
        sum(cpu for cpu, _ in spent),
        sum(waits for _, waits in spent) + waited,
        time.monotonic() - began,
        sampler._samples,
    )


def within(found: int, of: int, share: float, bias: float) -> bool:
    """Return whether a count is what a share of samples gives, within 4 standard errors and a known bias."""
    error: float = (of * share * (1 - share)) ** 0.5
    return abs(found - of * share) <= 4 * error + bias * of


def check_looks(effort: Effort) -> None:
    """Check that the sampler looked about as often as it was asked to, while there was a CPU for it.

    A look waits for the interpreter's lock, and one that would come late is left out.
    """
    free_s = effort.wall_s - effort.waited_s
    assert effort.looks >= 0.3 * RATE_HZ * free_s, effort
    assert effort.looks <= 1.2 * RATE_HZ * effort.wall_s, effort


def check_share(samples: int, effort: Effort) -> None:
    """Check that threads are in about as many looks as their CPU time says, or in more.

    Where others want the CPUs, the sampler runs rather when all of its process does: that shares grow by.
    """
    least = 0.6 * effort.looks * effort.cpu_s / effort.wall_s
    most = 1.4 * effort.looks * min(1.0, (effort.cpu_s + effort.waited_s) / effort.wall_s)
    assert samples >= least - 4 * least**0.5, effort
    assert samples <= most + 4 * most**0.5, effort


def test_shares_are_those_of_cpu(taken: Taken) -> None:
    sample(taken)
    effort = run_threads([often, seldom, asleep], seconds=2.0)
    smidgen_sampler.stop(WAIT_S)
    found = taken.counts("often", "seldom", "asleep")
    total = found.total()
    # A sample may come a tenth of a millisecond after the work that it has seen, here of 12 ms.
    assert found["asleep"] <= 0.05 * total + 4 * total**0.5
    assert within(found["often"], found["often"] + found["seldom"], 0.75, bias=0.03)
    check_looks(effort)
    check_share(total, effort)


@pytest.mark.slow
def test_threads_that_compete_for_the_interpreter_share_one_cpu(taken: Taken) -> None:
    sample(taken)
    effort = run_threads([often], [often], [seldom], seconds=2.0)
    smidgen_sampler.stop(WAIT_S)
    found = taken.counts("often", "seldom")
    check_looks(effort)
    check_share(found["often"] + found["seldom"], effort)
    assert within(found["often"], found["often"] + found["seldom"], 2 / 3, bias=0.12)


def test_wall_time_counts_those_who_sleep(taken: Taken) -> None:
    def often_enough() -> bool:  # the main thread waits, too
        found = taken.counts("asleep", "run_threads")
        return min(found["asleep"], found["run_threads"]) > 10

    sample(taken, wall=True, interval="500ms")
    run_threads([asleep], until=often_enough)
    assert often_enough()


def test_work_that_is_timed_like_the_sampler_is_not_missed(taken: Taken) -> None:
    def in_step() -> None:  # works at the same phase of each period of the rate
        burn(0.002)
        time.sleep(max(0.0, 1 / RATE_HZ - time.monotonic() % (1 / RATE_HZ)))

    sample(taken)
    effort = run_threads([in_step], seconds=1.5)
    smidgen_sampler.stop(WAIT_S)
    check_looks(effort)
    check_share(taken.counts("in_step")["in_step"], effort)


def test_intervals_join_and_the_last_one_is_sent(taken: Taken) -> None:
    sample(taken, interval="500ms", host="h", release="v1", labels={"a": "b"})
    run_threads([often], until=lambda: len(taken.messages) >= 2)
    before = len(taken.messages)
    smidgen_sampler.stop(WAIT_S)
    times = [(message["start"], message["end"]) for message in taken.messages]
    assert len(times) > before >= 2
    for (_, end), (start, _) in itertools.pairwise(times):
        # Only a sampler that had no CPU for so long begins anew.
        assert (start == end and start % 0.5 == 0) or start - end > LARGEST_GAP_S
    assert len({message["id"] for message in taken.messages}) == len(times)
    assert {(m["service"], m["host"], m["release"], m["labels"]["a"]) for m in taken.messages} == {
        ("shop", "h", "v1", "b")
    }


def test_the_rate_falls_when_a_sample_costs_too_much(taken: Taken, caplog: pytest.LogCaptureFixture) -> None:
    sample(taken, interval="500ms", budget=0.0005)
    run_threads([often], until=lambda: taken.messages and taken.messages[-1]["rate_hz"] < RATE_HZ)
    rates = [message["rate_hz"] for message in taken.messages]
    assert rates[0] == RATE_HZ
    assert rates[-1] < RATE_HZ
    assert "to take at most 0.05 % of a core" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"send_to": "nowhere"},
        {"send_to": "file:x", "rate_hz": -1},
        {"send_to": "file:x", "interval": "soon"},
    ],
)
def test_what_is_wrong_costs_one_line(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert not smidgen_sampler.start("shop", **options)
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("not sampling: ")
    assert not sampling.on


def test_a_sampler_that_fails_starts_again_and_costs_a_line_each_time(
    taken: Taken, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors, sample_once = [MemoryError("no room"), MemoryError("still no room")], SamplerThread._sample
    sampled: list[SamplerThread] = []

    def fail_twice(self: SamplerThread, switching: SwitchInterval) -> None:
        if errors:
            raise errors.pop(0)
        sample_once(self, switching)
        sampled.append(self)

    before = sys.getswitchinterval()
    monkeypatch.setattr(SamplerThread, "_sample", fail_twice)
    monkeypatch.setattr("agents.inprocess.sampling.FIRST_PAUSE_S", 0.01)
    sample(taken)
    run_threads([often], until=lambda: sampled)
    smidgen_sampler.stop(WAIT_S)
    assert caplog.messages == [
        "sampling failed, and starts again in 0 s: MemoryError: no room",
        "sampling failed, and starts again in 0 s: MemoryError: still no room",
    ]
    assert sys.getswitchinterval() == before


def test_a_second_start_changes_nothing(taken: Taken, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    sample(taken)
    assert smidgen_sampler.start("other", send_to="file:x")
    assert caplog.messages == ["the sampler runs already"]
    smidgen_sampler.stop()
    smidgen_sampler.stop()


PROGRAM = """
import multiprocessing, os, sys, threading, time

from agents.inprocess.control import _process

def burn(name):
    end = time.monotonic() + 100
    while time.monotonic() < end:
        stacks = list(_process.run.sampler._stacks.items())
        if sum(count for stack, count in stacks if f"{name} (program.py)" in stack) >= 5:
            return

def in_parent(): burn("in_parent")
def in_fork(): burn("in_fork")
def in_worker(): burn("in_worker")

if __name__ == "__main__":
    heavy = {"numpy", "faust", "aiohttp", "pipeline", "xxhash"}
    assert not heavy & {name.partition(".")[0] for name in sys.modules}
    assert sys.argv[1:] == ["one", "--two"], sys.argv
    in_parent()
    child = os.fork()
    if not child:
        in_fork()
        sys.exit()
    os.waitpid(child, 0)
    worker = multiprocessing.get_context("fork").Process(target=in_worker)
    worker.start()
    worker.join()
    assert worker.exitcode == 0
"""


def test_a_script_its_forks_and_its_exits(tmp_path: Path) -> None:
    script, out = tmp_path / "program.py", tmp_path / "out.jsonl"
    script.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [sys.executable, "-m", "smidgen.inprocess", "--", str(script), "one", "--two"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SMIDGEN_SERVICE": "shop",
            "SMIDGEN_SEND_TO": f"file:{out}",
            "SMIDGEN_RATE_HZ": "200",
            "SMIDGEN_BUDGET": "1",
            "PYTHONWARNINGS": "ignore",  # of forks beside threads
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    taken = Taken()
    for line in out.read_bytes().splitlines():
        taken(line)
    found = taken.counts("in_parent", "in_fork", "in_worker")
    assert {name for name, count in found.items() if count >= 5} >= {"in_parent", "in_fork", "in_worker"}


OWN = ("--service", "shop", "--send-to", "file:x")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([*OWN, "--", "-m", "nope"], "No module named nope"),
        (
            [*OWN, "--", "-m", "nope.x"],
            "Error while finding module specification for 'nope.x' (ModuleNotFoundE",
        ),
        ([*OWN, "--", "-m", "agents.inprocess.messages.x"], "Error while finding module specification for"),
        ([*OWN, "--", "-m", "agents.sampling.kernels"], "No module named agents.sampling.kernels.__main__"),
        ([*OWN, "--", "-m", "agents.nope"], "No module named agents.nope"),
        (["--service", "shop"], "give a script, or -m and a module, after --"),
        (["--", "app.py"], "service: should be a name of at most 200 characters, not ''"),
        (["--service", "shop", "--send-to", "x", "--", "app.py"], "send_to: should be http://host:port"),
        ([*OWN, "--", "gone.py"], "gone.py: no such file"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    arguments: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agents.inprocess.program import main

    monkeypatch.setattr(sys, "argv", ["agents.inprocess", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    if "-m" in arguments:  # a text ends Python with 1, and stands on stderr
        assert line in str(ended.value.code)
        assert "\n" not in str(ended.value.code)
    else:
        assert ended.value.code == 2
        assert line in capsys.readouterr().err
