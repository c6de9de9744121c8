"""Agents of a load as child processes, one per service, that can be killed while they publish."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from agents.publishing.pending import Tally
from agents.publishing.publisher import Delivery
from loadgen.bench.faults.agent_process import ALLOWED, DONE, JOB, STATE, AgentJob, AgentProgress, read_state
from loadgen.bench.faults.load import FaultLoad
from loadgen.bench.faults.workers import CODE
from pipeline.model.errors import SmidgenError
from pipeline.processes import Child, TaskSupervisor
from pipeline.settings.config import Settings

_TICK_S = 0.05
_LOOK_S = 0.002
_MARGIN = 5  # messages still to come when the agent is killed; some are handed over before it dies
_MID_S = 30.0
_PATIENCE_S = 3.0  # an agent that waits for its turn for this long is allowed one window more
_END_S = 900.0


@dataclass(frozen=True)
class Killed:
    """An agent that was killed."""

    name: str
    pid: int
    code: int | None
    left: int
    """Messages of the window that it was publishing and that it had not handed over."""


@dataclass
class _Agent:
    """One agent over all its starts."""

    folder: Path
    windows: tuple[int, ...]
    """Number of messages of each window."""
    child: Child | None = None
    wanted: int = 0
    """The window that its next process begins with."""
    allowed: int = 0
    confirmed: int = 0
    """Messages that its former processes knew to be confirmed."""

    @property
    def state(self) -> AgentProgress:
        return read_state(self.folder)

    @property
    def done(self) -> bool:
        return (self.folder / DONE).exists()

    def allow(self, windows: int) -> None:
        """Allow the agent to publish its first ``windows`` windows."""
        self.allowed = max(self.allowed, min(windows, len(self.windows)))
        partial = self.folder / "partial"
        partial.write_text(str(self.allowed))
        partial.replace(self.folder / ALLOWED)

    @property
    def left(self) -> int:
        """Number of messages still to come of the window being published; 0 between two windows."""
        state = self.state
        if not state.offered or state.window >= len(self.windows):
            return 0
        return self.windows[state.window] - state.offered


class Agents:
    """Agents that publish a load at its pace; a killed agent continues with the next window."""

    def __init__(self, load: FaultLoad, settings: Settings, folder: Path, *, seconds: float) -> None:
        self._windows = len(load.batches)
        self._agents: dict[str, _Agent] = {}
        for truth in load.truths:
            service = truth.dataset.service
            batches = load.of_service(service)
            home = folder / service
            home.mkdir(parents=True)
            gap_s = seconds / max(1, len(batches))
            job = AgentJob(batches, settings.broker, settings.idempotent_producer, gap_s)
            (home / JOB).write_bytes(job.to_json())
            agent = self._agents[service] = _Agent(home, tuple(map(len, batches)))
            agent.allow(self._windows)
        self._turn: list[str] = []
        self._failure = ""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.delivery: Delivery | None = None

    @property
    def offered(self) -> int:
        """Number of windows that all agents have handed over or lost."""
        return min(max(agent.wanted, agent.state.window) for agent in self._agents.values())

    @property
    def share(self) -> float:
        """Share of the load that was handed over or lost."""
        return self.offered / max(1, self._windows)

    def allow(self, share: float) -> None:
        """Allow the agents to send a share of the load."""
        for agent in self._agents.values():
            agent.allowed = 0
            agent.allow(-int(-share * self._windows // 1))

    def kill(self, rng: np.random.Generator) -> Killed:
        """SIGKILL an agent in the middle of a window; agents take turns.

        Raises:
            SmidgenError: the agent never was in the middle of a window.
        """
        if not self._turn:
            self._turn = [str(name) for name in rng.permutation(list(self._agents))]
        name = self._turn.pop()
        agent = self._agents[name]
        deadline, patience = time.monotonic() + _MID_S, time.monotonic() + _PATIENCE_S
        while agent.left < _MARGIN:
            if time.monotonic() > deadline:
                raise SmidgenError(f"faults: agent {name} published nothing for {_MID_S:g} s")
            if time.monotonic() > patience:
                agent.allow(agent.allowed + 1)
                patience += _PATIENCE_S
            time.sleep(_LOOK_S)
        with self._lock:
            child = agent.child
            if child is None:
                return Killed(name, 0, None, 0)
            child.send(signal.SIGKILL)
            code = child.wait(_MID_S)
            state, left = agent.state, agent.left
            agent.confirmed += state.confirmed
            agent.wanted = state.window + 1
            child.stop()
            (agent.folder / STATE).unlink()  # the next process has written no state yet
            agent.child = None
        return Killed(name, child.pid, code, left)

    def pause(self, timeout_s: float) -> None:
        """Do nothing: agents outlive an outage by themselves."""

    def resume(self) -> None:
        """Do nothing; see ``pause``."""

    def finish(self) -> Delivery:
        """Wait until every agent has published its last window, and count the messages known to be confirmed.

        Raises:
            SmidgenError: the broker did not take all messages that living agents handed over.
        """
        deadline = time.monotonic() + _END_S
        while not all(agent.done for agent in self._agents.values()):
            if self._failure or time.monotonic() > deadline:
                raise SmidgenError(self._failure or "faults: an agent did not get done")
            time.sleep(_TICK_S)
        ends = [(agent.folder / DONE).read_text().split() for agent in self._agents.values()]
        if lost := sum(int(lost) for _, lost in ends):
            raise SmidgenError(f"faults: {lost} messages of the load were not published")
        confirmed = sum(agent.confirmed for agent in self._agents.values())
        published = Tally(confirmed + sum(int(published) for published, _ in ends))
        self.delivery = Delivery(published, Tally(), Tally())
        return self.delivery

    def __enter__(self) -> Self:
        self._thread = TaskSupervisor().run_thread("agents", self._supervise, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _supervise(self) -> None:
        while not self._stop.wait(_TICK_S):
            with self._lock:
                for agent in self._agents.values():
                    self._look_after(agent)
        for agent in self._agents.values():
            if agent.child is not None:
                agent.child.stop()

    def _look_after(self, agent: _Agent) -> None:
        if agent.done or (agent.child is not None and agent.child.running):
            return
        if agent.child is not None:
            self._failure = f"faults: an agent ended: {(agent.folder / 'log').read_text()[-500:]}"
            return
        agent.child = Child(_command(agent), log=agent.folder / "log", folder=CODE)


def _command(agent: _Agent) -> Sequence[str]:
    module = "loadgen.bench.faults.agent_process"
    return [sys.executable, "-m", module, os.fspath(agent.folder), str(agent.wanted)]
