"""Worker processes under a supervisor, as in production: whatever ends is started again."""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pipeline
from pipeline.processes import Child, TaskSupervisor, smidgen_environment

CODE = Path(pipeline.__file__).parents[1]
"""The folder that the running version is imported from."""

_TICK_S = 0.1
_FIRST_PAUSE_S = 0.5
_LAST_PAUSE_S = 5.0
_STEADY_S = 20.0  # a worker that ran for this long is started again at once
STOP_S = 30.0

_CHANGED = """
import sys, time
real, by, items = time.time, float(sys.argv.pop(1)), int(sys.argv.pop(1))
if by:
    time.time = lambda: real() + by  # before anything is loaded that could keep the old one
if items:
    from pipeline.messages import scans
    scans.split_scan.__defaults__ = (items,)
from pipeline.cli import main
main()
"""
"""Program of a worker. Arguments: seconds that the clock runs ahead, items per part of a scan; 0 for none."""


@dataclass
class Worker:
    """One ``smidgen worker`` over all its starts."""

    name: str
    stage: str
    arguments: tuple[str, ...]
    code: Path
    clock_ahead_s: float = 0.0
    part_items: int = 0
    wanted: bool = True
    process: Child | None = None
    started: float = 0.0
    failures: int = 0
    next_start: float = 0.0
    exits: list[int] = field(default_factory=list)
    """Exit codes of unexpected ends."""
    expected_end: bool = False

    @property
    def pid(self) -> int:
        """The present process id; 0 while it does not run."""
        return self.process.pid if self.process and self.process.running else 0

    def command(self) -> list[str]:
        """Return the command line."""
        worker = ("worker", self.stage, *self.arguments)
        if self.clock_ahead_s or self.part_items:
            changes = (str(self.clock_ahead_s), str(self.part_items))
            return [sys.executable, "-c", _CHANGED, *changes, *worker]
        return [sys.executable, "-m", "pipeline", *worker]


class Supervisor:
    """Thread that keeps workers running; they end with it."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.workers: dict[str, Worker] = {}
        self._lock = threading.RLock()
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        self._thread = TaskSupervisor().run_thread("workers", self._supervise, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def add(self, worker: Worker) -> None:
        """Start a worker and keep it running."""
        with self._lock:
            self.workers[worker.name] = worker

    @property
    def exits(self) -> dict[str, list[int]]:
        """Exit codes of unexpected ends, by worker."""
        return {name: list(worker.exits) for name, worker in self.workers.items() if worker.exits}

    def log(self, name: str) -> str:
        """Return what a worker has logged, over all its lives."""
        path = self._logs / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def ready(self) -> bool:
        """Return whether every wanted worker has had its partitions once since it was last started."""
        return all(
            worker.pid and "ready: " in self.log(name).rpartition(_BANNER)[2]
            for name, worker in self.workers.items()
            if worker.wanted
        )

    def kill(self, name: str) -> tuple[int, int | None]:
        """SIGKILL a worker; return its process id and exit code, 0 and None if none runs."""
        process = self._send(name, signal.SIGKILL)
        return (process.pid, process.wait(STOP_S)) if process else (0, None)

    def freeze(self, name: str) -> int:
        """SIGSTOP a worker, as if its machine were paused; return its process id, 0 if none runs."""
        process = self._send(name, signal.SIGSTOP)
        return process.pid if process else 0

    def thaw(self, name: str) -> None:
        """Let a frozen worker run on."""
        self._send(name, signal.SIGCONT)

    def retire(self, name: str) -> int:
        """Ask a worker to end without restarting it, and return its exit code."""
        worker = self.workers[name]
        with self._lock:
            worker.wanted = False
            worker.expected_end = True
            process = worker.process
        return process.stop(STOP_S) if process else 0

    def _send(self, name: str, number: signal.Signals) -> Child | None:
        with self._lock:
            worker = self.workers[name]
            if worker.process is None or not worker.process.running:
                return None
            worker.expected_end = worker.expected_end or number == signal.SIGKILL
            worker.process.send(number)
            return worker.process

    def _supervise(self) -> None:
        while not self._stop.wait(_TICK_S):
            with self._lock:
                for worker in self.workers.values():
                    self._look_after(worker)
        for worker in self.workers.values():
            self._end(worker)

    def _look_after(self, worker: Worker) -> None:
        now = time.monotonic()
        if worker.process is not None and (code := worker.process.returncode) is not None:
            if not worker.expected_end:
                worker.exits.append(code)
                worker.failures = 1 if now - worker.started > _STEADY_S else worker.failures + 1
                worker.next_start = now + min(_FIRST_PAUSE_S * 2**worker.failures, _LAST_PAUSE_S)
            worker.process, worker.expected_end = None, False
        if worker.process is None and worker.wanted and now >= worker.next_start:
            self._start(worker)

    def _start(self, worker: Worker) -> None:
        path = self._logs / f"{worker.name}.log"
        with path.open("a") as log:
            log.write(f"{_BANNER}\n")
        # Python looks for the package in this folder first.
        worker.process = Child(
            worker.command(), log=path, folder=worker.code, environment=smidgen_environment("PYTHON")
        )
        worker.started = time.monotonic()

    def _end(self, worker: Worker) -> None:
        if worker.process is not None:
            worker.process.send(signal.SIGKILL)
            worker.process.stop()


_BANNER = "===== started ====="
