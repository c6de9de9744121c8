"""Strikes say whether they struck by what the kernel and the proxies saw, not by what was asked for."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loadgen.bench.faults import strikes
from loadgen.bench.faults.strikes import Context, process_state
from loadgen.bench.faults.watch import OffsetView
from loadgen.bench.faults.workers import Supervisor, Worker
from pipeline.processes import Child
from pipeline.settings.topics import load_topics
from pipeline.stages.factory import STAGES
from tests.support.open_faults import open_fault

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


class SleepingWorker(Worker):
    def command(self) -> list[str]:
        return SLEEPS


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path) as supervisor:
        supervisor.add(SleepingWorker("detect", "detect", (), tmp_path))
        deadline = time.monotonic() + 60
        while not supervisor.workers["detect"].pid and time.monotonic() < deadline:
            time.sleep(0.01)
        yield supervisor


def context(supervisor: Supervisor | None = None, **rig: Any) -> Context:
    topics = load_topics()
    view = OffsetView(0.0, topics, {("windows", 0): 7, ("profiles", 0): 2}, {("windows", 0): 3})
    watched = SimpleNamespace(view=view, refused=set())
    parts = SimpleNamespace(supervisor=supervisor, watcher=watched, **rig)
    return Context(parts, np.random.default_rng(1), lasts_s=0.05, stages=("detect",))  # type: ignore[arg-type]


def test_a_kill_has_the_exit_code_as_its_proof(supervisor: Supervisor) -> None:
    pid = supervisor.workers["detect"].pid
    hit = strikes.kill_stage(context(supervisor))
    assert (hit.struck, hit.proof, hit.pid) == (True, "exit code -9", pid)
    assert (hit.stage, hit.target, hit.under_way) == ("detect", "detect", 4)
    assert process_state(pid) in ("", "Z")


def test_a_freeze_has_the_state_as_its_proof(supervisor: Supervisor) -> None:
    pid = supervisor.workers["detect"].pid
    hit = strikes.freeze_stage(context(supervisor))
    assert (hit.struck, hit.proof) == (True, "state T at first, T after 0.05 s")
    assert (hit.pid, hit.stage, hit.under_way) == (pid, "detect", 4)
    assert supervisor.workers["detect"].process is not None
    assert process_state(pid) != "T"


def test_a_worker_that_does_not_run_is_not_struck(tmp_path: Path) -> None:
    idle = Supervisor(tmp_path)
    idle.workers["detect"] = SleepingWorker("detect", "detect", (), tmp_path)
    where = context(idle)
    for strike in (strikes.kill_stage, strikes.freeze_stage):
        hit = strike(where)
        assert (hit.struck, hit.pid) == (False, 0)
    assert where.notes == {}


def test_a_process_that_ends_while_it_is_frozen_was_not_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = Supervisor(tmp_path)
    idle.workers["detect"] = worker = SleepingWorker("detect", "detect", (), tmp_path)
    worker.process = Child(SLEEPS)
    pid = worker.process.pid

    def killed(_lasts_s: float, _met: object) -> None:
        os.kill(pid, signal.SIGKILL)
        while process_state(pid) == "T":
            time.sleep(0.01)

    monkeypatch.setattr(strikes, "_last", killed)
    hit = strikes.freeze_stage(context(idle))
    worker.process.stop()
    assert not hit.struck
    assert hit.proof.startswith("state T at first, ")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strikes, "_SEEN_S", 0.05)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("hits", "struck"), [(0, False), (3, True)])
def test_a_store_fault_strikes_if_inserts_were_hit(hits: int, struck: bool) -> None:
    class Proxy:
        faults = 5

        def __setattr__(self, name: str, value: object) -> None:
            if name == "decide":
                type(self).faults += hits  # what passes while it is set
            object.__setattr__(self, name, value)

    hit = strikes.slow_store(context(proxy=Proxy()))
    assert (hit.kind, hit.struck, hit.under_way) == ("slow", struck, 10)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("full", "refused", "struck"), [(True, 2, True), (True, 0, False), (False, 2, False)]
)
def test_a_full_disk_strikes_if_the_store_could_not_write(full: bool, refused: int, struck: bool) -> None:
    proxy = SimpleNamespace(inserts_refused=1)

    def fill() -> bool:
        proxy.inserts_refused += refused
        return full

    where = context(proxy=proxy)
    where.disk = SimpleNamespace(fill=fill, free=lambda: None)  # type: ignore[assignment]
    assert strikes.full_disk(where).struck == struck


@pytest.mark.parametrize(("held", "struck"), [(0, False), (10, True)])
def test_a_broker_is_silent_if_bytes_were_held(held: int, struck: bool) -> None:
    proxy = SimpleNamespace(held_bytes=7, open_again=lambda: None)

    def fall_silent() -> None:
        proxy.held_bytes += held

    proxy.fall_silent = fall_silent
    feeder = SimpleNamespace(resume=lambda: None)
    where = context(broker=SimpleNamespace(proxy=proxy, idempotent=True), feeder=feeder)
    assert strikes.silence_broker(where).struck == struck


@pytest.mark.usefixtures("impatient")
def test_what_is_wrong_with_a_load_strikes_once_it_is_handed_over() -> None:
    load, feeder = SimpleNamespace(odd=(0, 2, 0, 1)), SimpleNamespace(offered=2)
    where = context(load=load, feeder=feeder)
    where.rng = SimpleNamespace(uniform=lambda _low, _high: 0.0)  # type: ignore[assignment]
    assert strikes.odd_load(where).struck
    feeder.offered = 3
    assert not strikes.odd_load(where).struck  # nothing late among what has been handed over since
    feeder.offered = 4
    assert strikes.odd_load(where).struck


@pytest.mark.usefixtures("impatient")
@open_fault("44.20", "faults of the store hit INSERTs alone: no SELECT is refused, lost or slow")
@pytest.mark.parametrize("strike", [strikes.slow_store, strikes.refusing_store, strikes.losing_store])
def test_a_store_fault_hits_reading_too(strike: strikes.Strike) -> None:
    decisions: list[Callable[[bool], object]] = []

    class Proxy:
        faults = 1

        def __setattr__(self, name: str, value: Any) -> None:
            decisions.append(value)

    where = context(proxy=Proxy())
    strike(where)
    assert any(decide(False) for decide in decisions for _ in range(100))


@open_fault("44.20", "the stages releases and judge are neither run nor struck")
def test_all_stages_are_struck() -> None:
    assert set(Context(context().rig, np.random.default_rng(1)).stages) == set(STAGES)
