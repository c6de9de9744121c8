"""A kernel is one class and one line: the sampler and the commands know none by name."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.sampling.kernels import (
    AUTO,
    AutoKernel,
    Runtime,
    SamplerError,
    Sampling,
    base,
    kernel_names,
    make_kernel,
    register,
)
from agents.sampling.process import ExistingProcess
from agents.sampling.sampler import ProcessSampler
from pipeline.model.errors import ConfigError


class DummyRun:
    streams = False

    def __init__(self) -> None:
        self.ready = time.time()
        self.exited: float | None = None

    def stop(self) -> None:
        self.exited = time.time()

    kill = stop

    def take(self) -> bytes:
        return b"main;dummy 3\n"

    def complaint(self) -> str:
        return ""


class Dummy:
    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling

    def start(self, pid: int, wake: Callable[[], None]) -> DummyRun:
        return DummyRun()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_registry", {})


@pytest.fixture
def sampling(tmp_path: Path) -> Sampling:
    return Sampling(tmp_path, time.time, rate_hz=101, longest_s=60)


def missing(_: Sampling) -> Dummy:
    raise SamplerError("missing is not installed")


def test_the_kernels_there_are() -> None:
    assert kernel_names() == ("auto", "py-spy", "austin", "perf", "async-profiler")


def test_a_dummy_kernel_samples(registry: None, sampling: Sampling) -> None:
    register("missing", missing)
    register("dummy", Dummy)
    assert kernel_names() == (AUTO, "missing", "dummy")
    kernel = make_kernel("dummy", sampling)
    with subprocess.Popen(["sleep", "60"]) as process:
        sampler = ProcessSampler(kernel, ExistingProcess(process.pid), interval_s=0.5, clock=time.time)
        intervals = sampler.intervals()
        assert [next(intervals).data for _ in range(2)] == [b"main;dummy 3\n"] * 2
        process.kill()


def test_auto_takes_the_first_that_is_installed(registry: None, sampling: Sampling) -> None:
    register("missing", missing)
    for name in (AUTO, "missing"):
        with pytest.raises(SamplerError, match="missing is not installed"):
            make_kernel(name, sampling)
    register("dummy", Dummy)
    kernel = make_kernel(AUTO, sampling)
    assert isinstance(kernel, AutoKernel)
    assert isinstance(kernel.start(os.getpid(), lambda: None), DummyRun)
    assert kernel.chosen == "dummy"
    with pytest.raises(ConfigError, match="should be one of auto, missing, dummy, not 'other'"):
        make_kernel("other", sampling)


def test_auto_takes_the_one_that_suits_and_says_what_is_missing(registry: None, sampling: Sampling) -> None:
    register("dummy", Dummy, Runtime.COMPILED)
    register("missing", missing, Runtime.PYTHON)
    kernel = make_kernel(AUTO, sampling)
    run = kernel.start(os.getpid(), lambda: None)
    assert (run.ready, run.take()) == (0, b"")
    assert run.exited
    assert run.complaint() == "it runs Python: missing is not installed"
    with subprocess.Popen(["sleep", "60"]) as process:
        assert isinstance(kernel.start(process.pid, lambda: None), DummyRun)
        process.kill()
    complaint = kernel.start(process.pid, lambda: None).complaint()
    assert complaint == "it has ended before it could be sampled"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("S", "its files in /proc may not be read: run the agent as root"),
        ("Z", "it has ended before it could be sampled"),
        ("", "it has ended before it could be sampled"),
    ],
    ids=["runs", "waits to be reaped", "gone"],
)
def test_a_process_of_which_nothing_is_seen_has_ended_or_is_somebody_elses(
    registry: None, sampling: Sampling, tmp_path: Path, state: str, reason: str
) -> None:
    register("dummy", Dummy, Runtime.COMPILED)
    if state:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "stat").write_text(f"7 (java) {state} 1 7")
    assert AutoKernel(sampling, tmp_path).start(7, lambda: None).complaint() == reason


def test_auto_says_where_no_kernel_suits(registry: None, sampling: Sampling) -> None:
    register("dummy", Dummy, Runtime.JAVA)
    run = make_kernel(AUTO, sampling).start(os.getpid(), lambda: None)
    assert run.complaint() == "it runs Python, which no kernel samples (docs/agent.md)"
