"""The sampler over a kernel that streams: one run a process, intervals that join."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from agents.sampling.process import ExistingProcess, SampledProcess
from agents.sampling.sampler import ProcessSampler
from pipeline.model.clock import Clock
from tests.unit.agents.sampling.kernels.streaming import Streaming
from tests.unit.agents.steps import Steps


@pytest.fixture
def target() -> Iterator[ExistingProcess]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield ExistingProcess(process.pid)
        process.kill()


def sampler_of(kernel: Streaming, target: SampledProcess, clock: Clock = time.time) -> ProcessSampler:
    return ProcessSampler(kernel, target, interval_s=0.2, clock=clock)


def test_one_run_gives_all_intervals_and_they_join(
    target: SampledProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, clock = Streaming(), Steps()
    monkeypatch.setattr("tests.unit.agents.sampling.kernels.streaming.time.time", clock)
    sampler = sampler_of(kernel, target, clock)
    clock.drive(sampler)
    running = sampler.intervals()
    found = list(islice(running, 3))
    sampler.stop()
    found += running
    assert len(kernel.runs) == 1
    assert [interval.data for interval in found] == [b"main;run0 1\n"] * 3 + [b"main;run0 2\n"]
    assert found[0].start == kernel.runs[0].ready
    for before, after in zip(found, found[1:], strict=False):
        assert before.end == after.start
    for interval in found[:3]:
        assert interval.end / 0.2 == pytest.approx(round(interval.end / 0.2), abs=1e-3, rel=0)
    assert not kernel.runs[0].killed


def test_a_run_that_ended_is_taken_to_the_last_and_another_follows(target: SampledProcess) -> None:
    kernel = Streaming()
    running = sampler_of(kernel, target).intervals()
    next(running)
    kernel.runs[0].stop()
    assert next(running).data == b"main;run0 2\n"
    assert next(running).data == b"main;run1 1\n"
    assert len(kernel.runs) == 2


def test_a_consumer_that_goes_away_ends_the_run(target: SampledProcess) -> None:
    kernel = Streaming()
    running = sampler_of(kernel, target).intervals()
    next(running)
    running.close()
    assert kernel.runs[0].killed
