"""What a fault does each time that it strikes. Each returns when the fault itself is over."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from loadgen.bench.faults.disk import SmallDisk
from loadgen.bench.faults.proxies import StoreFault
from loadgen.bench.faults.rig import CODE, Rig
from pipeline.stages.factory import STAGES

_JOIN_S = 90.0


@dataclass
class Context:
    """What a strike may use."""

    rig: Rig
    rng: np.random.Generator
    lasts_s: float = 0.0
    """How long a strike takes, as the catalogue has it."""
    outage_s: float | None = None
    """How long the store or the broker stays away instead, if that was asked for."""
    disk: SmallDisk | None = None
    stages: Sequence[str] = STAGES
    """Which stages are struck."""
    turn: list[str] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def away_s(self) -> float:
        """How long the store or the broker stays away."""
        return self.outage_s or self.lasts_s

    def next_worker(self) -> str:
        """Return a worker: each stage in turn, in an order drawn anew for each round."""
        if not self.turn:
            self.turn = [str(stage) for stage in self.rng.permutation(list(self.stages))]
        stage = self.turn.pop()
        names = [
            worker.name
            for worker in self.rig.supervisor.workers.values()
            if worker.stage == stage and worker.wanted
        ]
        return str(self.rng.choice(names))

    def note(self, what: str) -> None:
        """Count something for the report."""
        self.notes[what] = self.notes.get(what, 0) + 1

    def sleep(self, low_s: float, high_s: float) -> None:
        """Wait a random time."""
        time.sleep(float(self.rng.uniform(low_s, high_s)))


Strike = Callable[[Context], None]


def kill_stage(context: Context) -> None:
    """SIGKILL one worker; its supervisor starts it again."""
    name = context.next_worker()
    if context.rig.supervisor.kill(name):
        context.note(context.rig.supervisor.workers[name].stage)


def freeze_stage(context: Context) -> None:
    """SIGSTOP one worker until its partitions have gone to others, then let it run on."""
    name = context.next_worker()
    if context.rig.supervisor.freeze(name):
        context.note(context.rig.supervisor.workers[name].stage)
        time.sleep(context.lasts_s)
        context.rig.supervisor.thaw(name)


def join_and_leave(context: Context) -> None:
    """Let one worker more of a stage join, and one leave in order."""
    rig, stage = context.rig, str(context.rng.choice(list(context.stages)))
    leaving = [w.name for w in rig.supervisor.workers.values() if w.stage == stage and w.wanted]
    name = f"{stage}-more-{next(context.numbers)}"
    rig.add_worker(name, stage)
    rig.wait(lambda: "ready: " in rig.supervisor.log(name), _JOIN_S, f"{name} to join")
    context.sleep(1, 4)
    if code := rig.supervisor.retire(str(context.rng.choice(leaving))):
        context.note(f"exit code {code} on SIGTERM")
    context.note(stage)


def kill_store(context: Context) -> None:
    """SIGKILL the store and start it again on its data."""
    context.rig.kill_store()


def freeze_store(context: Context) -> None:
    """SIGSTOP the store for a while."""
    context.rig.signal_store(signal.SIGSTOP)
    time.sleep(context.away_s)
    context.rig.signal_store(signal.SIGCONT)


def store_away(context: Context) -> None:
    """Stop the store in order, and start it again later."""
    context.rig.embedded.stop()
    time.sleep(context.away_s)
    context.rig.start_store()


def _store_fault(fault: StoreFault, share: float) -> Strike:
    def strike(context: Context) -> None:
        proxy = context.rig.proxy
        before = proxy.faults
        proxy.decide = lambda insert: fault if insert and context.rng.random() < share else None
        time.sleep(context.lasts_s)
        proxy.decide = lambda _insert: None
        context.notes["inserts hit"] = context.notes.get("inserts hit", 0) + proxy.faults - before

    return strike


slow_store = _store_fault("slow", 0.7)
refusing_store = _store_fault("refused", 0.7)
losing_store = _store_fault("lost", 0.5)


def full_disk(context: Context) -> None:
    """Fill the file system that the store writes to, and make room again later."""
    assert context.disk is not None
    context.disk.fill()
    time.sleep(context.lasts_s)
    context.disk.free()


def kill_broker(context: Context) -> None:
    """SIGKILL a broker and start it again on its data."""
    number = int(context.rng.integers(len(context.rig.broker.pids)))
    context.rig.broker.cluster.kill(number)
    context.sleep(0.5, 5)
    context.rig.broker.cluster.restart(number)


def freeze_broker(context: Context) -> None:
    """SIGSTOP a broker for longer than sessions last."""
    number = int(context.rng.integers(len(context.rig.broker.pids)))
    context.rig.broker.cluster.pause(number)
    time.sleep(context.away_s)
    context.rig.broker.cluster.resume(number)


def silence_broker(context: Context) -> None:
    """Let nothing pass between the broker and everyone else, connections staying open."""
    rig = context.rig
    assert rig.broker.proxy is not None
    if not rig.broker.idempotent:
        rig.feeder.pause(30.0)  # without idempotence an agent may send twice what was not confirmed
    rig.broker.proxy.fall_silent()
    time.sleep(context.away_s)
    rig.broker.proxy.open_again()
    rig.feeder.resume()


def cut_broker(context: Context) -> None:
    """Cut every connection, after a moment in which requests may be done and their answers wait."""
    proxy = context.rig.broker.proxy
    assert proxy is not None
    proxy.fall_silent()
    context.sleep(0.0, 1.5)
    proxy.open_again()


def nothing(context: Context) -> None:
    """Leave everything alone: the fault is in the load, or in the clocks."""
    context.sleep(3, 6)


def roll(context: Context) -> None:
    """Replace the workers of one stage, whichever is drawn, by those of the present version."""
    rig = context.rig
    old = [w for w in rig.supervisor.workers.values() if w.wanted and w.code != CODE]
    if not old:
        return
    stages = list(dict.fromkeys(worker.stage for worker in old))
    stage = str(context.rng.choice(stages))
    for worker in [w for w in old if w.stage == stage]:
        rig.supervisor.retire(worker.name)
        rig.add_worker(f"{worker.name}-new", stage)
        context.note(stage)
        context.sleep(0.5, 3)
    context.sleep(3, 8)
