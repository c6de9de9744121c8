"""Samplings of real processes by a kernel that needs none: followed, handed over, slowed down, backed off."""

from __future__ import annotations

import logging
import os
import queue
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agents.host.bursts import BURST_HZ, BurstSampler
from agents.host.discovery import MatchedProcess
from agents.host.parts import Part
from agents.host.process_sampling import ProcessSampling, SamplingSettings
from agents.host.rules import How, Identity, SamplingTarget
from agents.host.samplings import Samplings
from agents.profiles.formats.collapsed import parse_collapsed
from agents.sampling.process import ExistingProcess
from agents.sampling.sampler import CannotSample, ProcessSampler
from tests.unit.agents.host.fake_kernel import FakeKernels
from tests.unit.agents.steps import Steps

INTERVAL_S = 0.2
WAIT_S = 60.0


class Fixture:
    """Samplings at one rate, and the parts that they hand over."""

    def __init__(self, folder: Path, rate_hz: float = 19.0) -> None:
        self.rate_hz = rate_hz
        self.parts: queue.SimpleQueue[Part] = queue.SimpleQueue()
        self.ends: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.samplings = Samplings(
            SamplingSettings(
                folder=folder,
                interval_s=INTERVAL_S,
                clock=time.time,
                rate_of=lambda _: self.rate_hz,
                take=self.parts.put,
                wake=lambda: self.ends.put(None),
            )
        )

    def follow(
        self, *found: MatchedProcess, now: float = 0.0, present: frozenset[tuple[int, float]] | None = None
    ) -> None:
        keys = frozenset(each.key for each in found) if present is None else present
        self.samplings.follow(found, keys, now)

    def part(self) -> Part:
        return self.parts.get(timeout=WAIT_S)


def found(pid: int, service: str = "shop", endpoint: str = "") -> MatchedProcess:
    return MatchedProcess((pid, 1.0), SamplingTarget(1, Identity(service), How(kernel="fake"), endpoint), 0.0)


@pytest.fixture
def fixture(tmp_path: Path, kernels: FakeKernels) -> Fixture:
    return Fixture(tmp_path)


def test_a_process_is_sampled_interval_by_interval_until_it_is_not_wanted(
    fixture: Fixture, kernels: FakeKernels, pid: int
) -> None:
    fixture.follow(found(pid))
    first, second = fixture.part(), fixture.part()
    assert (first.identity.service, first.rate_hz, dict(first.stacks)) == ("shop", 19, {("main", "run0"): 1})
    assert first.end == second.start
    fixture.follow()
    fixture.ends.get(timeout=WAIT_S)
    assert fixture.samplings.keys == frozenset()
    assert all(run.exited for run in kernels.runs)


def test_a_run_that_streams_is_started_once(fixture: Fixture, kernels: FakeKernels, pid: int) -> None:
    kernels.streams = True
    fixture.follow(found(pid, endpoint="/buy"))
    parts = [fixture.part() for _ in range(3)]
    fixture.samplings.stop(WAIT_S)
    (run,) = kernels.runs
    assert run.exited
    assert run.takes >= 4  # the last one after its end
    assert all(before.end == after.start for before, after in zip(parts, parts[1:], strict=False))
    assert dict(parts[0].stacks) == {("endpoint=/buy (<smidgen>)", "main", "run0"): 1}


def test_another_rate_counts_from_the_next_interval_on(
    fixture: Fixture, kernels: FakeKernels, pid: int
) -> None:
    fixture.follow(found(pid))
    assert fixture.part().rate_hz == 19
    fixture.rate_hz = 7.0
    while (rate_hz := fixture.part().rate_hz) == 19:
        continue
    assert rate_hz == 7
    fixture.rate_hz = 0.5
    while (rate_hz := fixture.part().rate_hz) == 7:
        continue
    assert rate_hz == 0.5
    assert [sampling.rate_hz for sampling in kernels.made][:3] == [19, 7, BURST_HZ], "in bursts under 1 Hz"
    fixture.samplings.stop(WAIT_S)
    assert all(run.exited for run in kernels.runs)


def test_a_changed_target_is_sampled_anew_as_its_rule_says(
    fixture: Fixture, kernels: FakeKernels, pid: int
) -> None:
    fixture.follow(found(pid))
    fixture.part()
    mail = found(pid, service="mail")
    how = replace(mail.target.how, call_graph="dwarf", native=True)
    mail = replace(mail, target=replace(mail.target, how=how))
    fixture.follow(mail)
    fixture.ends.get(timeout=WAIT_S)
    fixture.follow(mail)
    while fixture.part().identity.service != "mail":
        continue
    fixture.samplings.stop(WAIT_S)
    assert [(each.call_graph, each.native) for each in kernels.made][-1] == ("dwarf", True)


def test_what_cannot_be_sampled_is_tried_less_and_less_often_and_reported_once(
    fixture: Fixture, kernels: FakeKernels, pid: int, caplog: pytest.LogCaptureFixture
) -> None:
    kernels.fails = "not permitted"
    processes = [found(pid), found(os.getppid())]
    caplog.set_level(logging.WARNING)
    for now, runs in ((0.0, 2), (1.0, 2), (6.0, 4), (7.0, 4), (12.0, 4), (17.0, 6)):
        fixture.follow(*processes, now=now)
        while len(kernels.runs) < runs:
            time.sleep(0.01)
        while any(not sampling.ended for sampling in fixture.samplings.running):
            time.sleep(0.01)
        fixture.follow(*processes, now=now)
        assert len(kernels.runs) == runs, now
    assert fixture.samplings.failures() == {"not permitted": 2}
    assert fixture.samplings.waiting(18.0) == {each.key for each in processes}
    assert len(caplog.records) == 1
    assert "2 of the processes: not permitted" in caplog.text
    fixture.follow(present=frozenset())
    assert fixture.samplings.failures() == {}


def test_an_unforeseen_error_of_a_sampling_is_its_failure(
    fixture: Fixture, pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: ProcessSampling) -> bool:
        raise ValueError("a bug")

    monkeypatch.setattr(ProcessSampling, "_sample_at_one_rate", fail)
    fixture.follow(found(pid), now=0.0)
    while any(not sampling.ended for sampling in fixture.samplings.running):
        time.sleep(0.01)
    fixture.follow(found(pid), now=0.0)
    assert fixture.samplings.failures() == {"ValueError: a bug": 1}
    assert fixture.samplings.waiting(1.0) == {found(pid).key}


def test_a_process_that_has_ended_is_nothing_to_report(fixture: Fixture) -> None:
    fixture.follow(found(2**22 + 1))
    fixture.ends.get(timeout=WAIT_S)
    fixture.follow(found(2**22 + 1))
    assert fixture.samplings.failures() == {}
    fixture.samplings.stop(WAIT_S)


def bursts(kernels: FakeKernels, pid: int, rate_hz: float, interval_s: float) -> tuple[BurstSampler, Steps]:
    steps = Steps()
    sampler = BurstSampler(
        kernels, ExistingProcess(pid), rate_hz, interval_s=interval_s, clock=steps, draws=random.Random(1)
    )
    steps.drive(sampler)
    return sampler, steps


@pytest.mark.parametrize(("rate_hz", "interval_s"), [(1 / 60, 10.0), (0.5, 10.0), (0.2, 1.0), (0.9, 2.0)])
def test_bursts_last_as_long_as_the_rate_asks_for(
    kernels: FakeKernels, pid: int, rate_hz: float, interval_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler, steps = bursts(kernels, pid, rate_hz, interval_s)
    monkeypatch.setattr("tests.unit.agents.host.fake_kernel.time.time", steps)
    began, samples = steps.now, 0
    intervals = []
    for interval in sampler.intervals():
        intervals.append(interval)
        samples += parse_collapsed(interval.data).samples
        if steps.now - began > 3600:
            break
    lasted_s = sum((run.exited or 0.0) - run.ready for run in kernels.runs)
    assert lasted_s * BURST_HZ / (steps.now - began) == pytest.approx(rate_hz, rel=0.05)
    assert samples == len(kernels.runs)
    assert all(a.end == pytest.approx(b.start) for a, b in zip(intervals, intervals[1:], strict=False))
    assert all(interval.end % interval_s == pytest.approx(0.0, abs=1.0) for interval in intervals[1:2])
    moments = [run.ready % max(interval_s, 1 / rate_hz) for run in kernels.runs]
    assert max(moments) - min(moments) > 0.5 * max(interval_s, 1 / rate_hz)  # anywhere in the period


def test_a_burst_that_fails_says_why(kernels: FakeKernels, pid: int) -> None:
    kernels.fails = "not permitted"
    sampler, _ = bursts(kernels, pid, 1 / 60, 10.0)
    with pytest.raises(CannotSample) as caught:
        list(sampler.intervals())
    assert caught.value.reason == "not permitted"


def test_a_run_that_ends_while_it_streams_is_taken_up_again(kernels: FakeKernels, pid: int) -> None:
    kernels.streams = True
    sampler = ProcessSampler(kernels, ExistingProcess(pid), interval_s=INTERVAL_S, clock=time.time)
    intervals = sampler.intervals()
    next(intervals)
    kernels.runs[0].stop()
    assert next(intervals).data == b"main;run0 1\n"
    assert next(intervals).data == b"main;run1 1\n"
    intervals.close()
    assert kernels.runs[1].exited
