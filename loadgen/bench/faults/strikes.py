"""Strikes of each fault, with proof of their effect.

Each strike returns when it is over. The kernel, a proxy or the store shows whether it had its effect.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from loadgen.bench.faults.agents import Agents
from loadgen.bench.faults.disk import SmallDisk
from loadgen.bench.faults.hits import Hit
from loadgen.bench.faults.proxies import StoreFault
from loadgen.bench.faults.rig import Rig
from loadgen.bench.faults.workers import CODE
from pipeline.stages.factory import SCAN_STAGES

_JOIN_S = 90.0
_BUSY_S = 4.0
"""Longest wait of a strike for messages that its stage has yet to process."""
_POLL_S = 0.05
_SEEN_S = 60.0
"""Longest time after a strike until its proof is seen."""

FREEZES = 0.35
"""Share of freezes among kills and freezes: they take longer."""


@dataclass
class Context:
    """The rig, random numbers and settings that a strike may use."""

    rig: Rig
    rng: np.random.Generator
    lasts_s: float = 0.0
    """How long a strike takes, as the catalogue has it."""
    outage_s: float | None = None
    """Seconds for which the store or the broker stays away, if set; otherwise ``lasts_s``."""
    disk: SmallDisk | None = None
    stages: Sequence[str] = SCAN_STAGES
    """The stages that are struck."""
    turn: list[str] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))
    notes: dict[str, int] = field(default_factory=dict)
    passed: int = 0
    """Number of batches of the load that were handed over at the last strike."""

    @property
    def away_s(self) -> float:
        """Seconds for which the store or the broker stays away."""
        return self.outage_s or self.lasts_s

    @property
    def under_way(self) -> int:
        """Return the number of messages that all stages have yet to process, as last seen."""
        return self.rig.watcher.view.under_way()

    def next_stage(self) -> str:
        """Return the next stage: all stages take turns, in an order drawn anew for each round."""
        if not self.turn:
            self.turn = [str(stage) for stage in self.rng.permutation(list(self.stages))]
        return self.turn.pop()

    def next_worker(self) -> tuple[str, str]:
        """Return the name of a worker and its stage; stages take turns."""
        stage = self.next_stage()
        names = [
            worker.name
            for worker in self.rig.supervisor.workers.values()
            if worker.stage == stage and worker.wanted
        ]
        return str(self.rng.choice(names)), stage

    def await_work(self, stage: str) -> int:
        """Wait, for at most _BUSY_S, until a stage has messages to process; return their number."""
        deadline = time.monotonic() + _BUSY_S
        while not (lag := self.rig.watcher.view.lag(stage)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return lag

    def note(self, what: str) -> None:
        """Count something for the report."""
        self.notes[what] = self.notes.get(what, 0) + 1

    def sleep(self, low_s: float, high_s: float) -> None:
        """Wait a random time between both bounds."""
        time.sleep(float(self.rng.uniform(low_s, high_s)))


Strike = Callable[[Context], Hit]


def process_state(pid: int) -> str:
    """Return the state of a process as the kernel gives it, such as R, S, T; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _is_ready(rig: Rig, name: str) -> bool:
    return "ready: " in rig.supervisor.log(name)


def _last(lasts_s: float, met: Callable[[], bool]) -> None:
    """Wait ``lasts_s``, and then up to _SEEN_S longer until ``met`` returns true."""
    time.sleep(lasts_s)
    deadline = time.monotonic() + _SEEN_S
    while not met() and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _frozen(
    target: str, pid: int, lasts_s: float, thaw: Callable[[], None], met: Callable[[], bool] = lambda: True
) -> Hit:
    """Wait while a stopped process stands still, and check that it does; then let it run on."""
    deadline = time.monotonic() + 10.0  # the process stops when it next gets the processor
    while (first := process_state(pid)) not in ("T", "") and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    _last(lasts_s, met)
    last = process_state(pid)
    thaw()
    proof = f"state {first or 'gone'} at first, {last or 'gone'} after {lasts_s:g} s"
    return Hit("freeze", target, pid > 0 and first == last == "T", proof, pid=pid)


def kill_stage(context: Context) -> Hit:
    """SIGKILL one worker; its supervisor starts it again."""
    name, stage = context.next_worker()
    lag = context.await_work(stage)
    pid, code = context.rig.supervisor.kill(name)
    if struck := code == -signal.SIGKILL:
        context.note(stage)
    return Hit("kill", name, struck, f"exit code {code}", stage, pid, lag)


def freeze_stage(context: Context) -> Hit:
    """SIGSTOP one worker until other workers have its partitions, then let it run on."""
    name, stage = context.next_worker()
    lag = context.await_work(stage)
    supervisor = context.rig.supervisor
    hit = _frozen(name, supervisor.freeze(name), context.lasts_s, lambda: supervisor.thaw(name))
    if hit.struck:
        context.note(stage)
    return replace(hit, stage=stage, under_way=lag)


def kill_or_freeze_stage(context: Context) -> Hit:
    """SIGKILL one worker, or SIGSTOP it for a while."""
    return freeze_stage(context) if context.rng.random() < FREEZES else kill_stage(context)


def kill_agent(context: Context) -> Hit:
    """SIGKILL an agent while it publishes a window; its successor continues with the next window."""
    under_way, agents = context.under_way, context.rig.feeder
    assert isinstance(agents, Agents)
    killed = agents.kill(context.rng)
    proof = f"exit code {killed.code}, {killed.left} messages of a window to come"
    struck = killed.code == -signal.SIGKILL and killed.left > 0
    context.note(killed.name)
    return Hit("agent", killed.name, struck, proof, pid=killed.pid, under_way=under_way)


def join_and_leave(context: Context) -> Hit:
    """Let an additional worker of a stage join, and one leave in order."""
    rig, stage = context.rig, context.next_stage()
    lag = context.await_work(stage)
    leaving = [w.name for w in rig.supervisor.workers.values() if w.stage == stage and w.wanted]
    name = f"{stage}-more-{next(context.numbers)}"
    rig.add_worker(name, stage)
    rig.wait(partial(_is_ready, rig, name), _JOIN_S, f"{name} to join")
    context.sleep(1, 4)
    left = str(context.rng.choice(leaving))
    pid = rig.supervisor.workers[left].pid
    code = rig.supervisor.retire(left)
    context.note(stage)
    proof = f"{name} is ready, {left} ended with exit code {code}"
    return Hit("rebalance", name, bool(pid) and not code, proof, stage, pid, lag)


def kill_store(context: Context) -> Hit:
    """SIGKILL the store and start it again on its data."""
    under_way, pid = context.under_way, context.rig.store.pid
    code = context.rig.kill_store()
    return Hit("kill", "store", code == -signal.SIGKILL, f"exit code {code}", pid=pid, under_way=under_way)


def freeze_store(context: Context) -> Hit:
    """SIGSTOP the store for a while."""
    under_way, rig = context.under_way, context.rig
    rig.signal_store(signal.SIGSTOP)
    waiting = 0

    def thaw() -> None:
        nonlocal waiting
        waiting = rig.proxy.waiting
        rig.signal_store(signal.SIGCONT)

    hit = _frozen("store", rig.store.pid, context.away_s, thaw, lambda: rig.proxy.waiting > 0)
    return replace(
        hit,
        struck=hit.struck and waiting > 0,
        proof=f"{hit.proof}, {waiting} requests waited",
        under_way=under_way,
    )


def store_away(context: Context) -> Hit:
    """Stop the store in order, and start it again later."""
    under_way, rig, pid = context.under_way, context.rig, context.rig.store.pid
    before = rig.proxy.unreached
    rig.store.stop()
    _last(context.away_s, lambda: rig.proxy.unreached > before)
    unreached = rig.proxy.unreached - before
    rig.start_store()
    proof = f"{unreached} requests found no store"
    return Hit("away", "store", unreached > 0, proof, pid=pid, under_way=under_way)


def _store_fault(fault: StoreFault, share: float) -> Strike:
    def strike(context: Context) -> Hit:
        under_way, proxy = context.under_way, context.rig.proxy
        before = proxy.faults
        proxy.decide = lambda insert: fault if insert and context.rng.random() < share else None
        _last(context.lasts_s, lambda: proxy.faults > before)
        proxy.decide = lambda _insert: None
        hit = proxy.faults - before
        context.notes["inserts hit"] = context.notes.get("inserts hit", 0) + hit
        return Hit(fault, "store", hit > 0, f"{hit} inserts hit", under_way=under_way)

    return strike


slow_store = _store_fault("slow", 0.7)
refusing_store = _store_fault("refused", 0.7)
losing_store = _store_fault("lost", 0.5)


def full_disk(context: Context) -> Hit:
    """Fill the file system that the store writes to, and make room again later."""
    assert context.disk is not None
    under_way, proxy = context.under_way, context.rig.proxy
    before = proxy.inserts_refused
    full = context.disk.fill()
    _last(context.lasts_s, lambda: proxy.inserts_refused > before)
    refused = proxy.inserts_refused - before
    context.disk.free()
    proof = f"{'ENOSPC' if full else 'there was room'}, {refused} inserts refused by the store"
    return Hit("full disk", "store", full and refused > 0, proof, under_way=under_way)


def kill_broker(context: Context) -> Hit:
    """SIGKILL a broker and start it again on its data."""
    under_way, broker = context.under_way, context.rig.broker
    number = int(context.rng.integers(len(broker.pids)))
    pid = broker.pids[f"broker-{number}"]
    code = broker.cluster.kill(number)
    context.sleep(0.5, 5)
    broker.cluster.restart(number)
    struck = pid > 0 and code == -signal.SIGKILL
    return Hit("kill", f"broker-{number}", struck, f"exit code {code}", pid=pid, under_way=under_way)


def freeze_broker(context: Context) -> Hit:
    """SIGSTOP a broker for longer than sessions last."""
    under_way, broker = context.under_way, context.rig.broker
    number = int(context.rng.integers(len(broker.pids)))
    pid = broker.pids[f"broker-{number}"]
    broker.cluster.pause(number)
    hit = _frozen(f"broker-{number}", pid, context.away_s, lambda: broker.cluster.resume(number))
    return replace(hit, under_way=under_way)


def silence_broker(context: Context) -> Hit:
    """Let nothing pass between the broker and its clients; connections stay open."""
    rig, proxy = context.rig, context.rig.broker.proxy
    assert proxy is not None
    if not rig.broker.idempotent:
        rig.feeder.pause(30.0)  # without idempotence an agent may send unconfirmed messages twice
    under_way, before = context.under_way, proxy.held_bytes
    proxy.fall_silent()
    time.sleep(context.away_s)
    held = proxy.held_bytes - before
    proxy.open_again()
    rig.feeder.resume()
    return Hit("silence", "broker", held > 0, f"{held} bytes held", under_way=under_way)


def cut_broker(context: Context) -> Hit:
    """Cut every connection, at a moment when requests may be done and their answers wait."""
    proxy = context.rig.broker.proxy
    assert proxy is not None
    under_way, before = context.under_way, (proxy.cut, proxy.held_bytes)
    proxy.fall_silent()
    context.sleep(0.3, 1.5)
    proxy.open_again()
    context.sleep(0.2, 0.4)
    cut, held = proxy.cut - before[0], proxy.held_bytes - before[1]
    proof = f"{cut} connections cut, {held} bytes held"
    return Hit("cut", "broker", cut > 0 and held > 0, proof, under_way=under_way)


def odd_load(context: Context) -> Hit:
    """Disturb nothing: the fault is in the load. Check that the load passes."""
    under_way, rig = context.under_way, context.rig
    before = context.passed
    _last(float(context.rng.uniform(3, 6)), lambda: sum(rig.load.odd[before : rig.feeder.offered]) > 0)
    context.passed = rig.feeder.offered
    odd = sum(rig.load.odd[before : context.passed])
    return Hit("load", "agents", odd > 0, f"{odd} messages of that kind handed over", under_way=under_way)


def malformed_load(context: Context) -> Hit:
    """Disturb nothing while a flood of malformed messages passes. Check that some are refused."""
    under_way, rig = context.under_way, context.rig
    before = context.passed
    _last(float(context.rng.uniform(3, 6)), lambda: len(rig.watcher.refused) > before)
    context.passed = refused = len(rig.watcher.refused)
    proof = f"{refused - before} dead letters"
    return Hit("malformed", "agents", refused > before, proof, under_way=under_way)


def roll(context: Context) -> Hit:
    """Replace the workers of one drawn stage by workers of the present version."""
    rig = context.rig
    stage = context.next_stage()
    lag = context.await_work(stage)
    old = [w for w in rig.supervisor.workers.values() if w.wanted and w.code != CODE and w.stage == stage]
    codes = []
    for worker in old:
        codes.append(rig.supervisor.retire(worker.name))
        name = f"{worker.name}-new"
        rig.add_worker(name, stage)
        rig.wait(partial(_is_ready, rig, name), _JOIN_S, f"{name} to join")
        context.note(stage)
        context.sleep(0.5, 3)
    context.sleep(1, 4)
    proof = f"{len(old)} workers of the former version ended with {codes}, as many are ready"
    return Hit("roll", stage, bool(old) and not any(codes), proof, stage, under_way=lag)
