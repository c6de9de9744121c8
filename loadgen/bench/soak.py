"""``smidgen bench soak``: a steady load for long; memory, lag and file handles of every process."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from loadgen.bench.faults.brokers import BrokerKind
from loadgen.bench.faults.check import Differences
from loadgen.bench.faults.load import Shape, build_load
from loadgen.bench.faults.rig import Rig, Setup
from loadgen.bench.trend import Trend, trend
from loadgen.bench.usage import require_proc
from pipeline.model import FloatArray
from pipeline.processes import TaskSupervisor
from pipeline.stages.factory import SCAN_STAGES
from pipeline.stages.gather.changes import HISTORY_S

WINDOW_EVERY_S = 2.0
EVERY_S = 5.0

TOLERANCE: Mapping[str, float] = {"memory": 0.02, "handles": 1.0, "lag": 60.0}
"""Rise an hour that does not matter: of memory as a share of its level, handles and messages as they are."""


@dataclass(frozen=True)
class ProcessCurve:
    """One quantity of one process over time."""

    kind: str  # memory (MB), handles, lag (messages)
    process: str
    seconds: FloatArray
    values: FloatArray

    @property
    def trend(self) -> Trend:
        """Return the trend of the curve."""
        scale = float(np.median(self.values)) if self.kind == "memory" else 1.0
        return trend(self.seconds, self.values, tolerance=TOLERANCE[self.kind] * scale)


@dataclass(frozen=True)
class Soak:
    """Result of a soak."""

    broker: BrokerKind
    minutes: float
    messages: int
    samples: int
    events: int
    differences: Differences
    copies: int
    exits: dict[str, list[int]]
    curves: tuple[ProcessCurve, ...]

    def judged(self, curve: ProcessCurve) -> bool:
        """Return whether a curve must be flat: a worker's. Broker and store grow with the messages sent."""
        return curve.process.split("-")[0] in SCAN_STAGES

    @property
    def passed(self) -> bool:
        """Whether everything is flat and nothing differs."""
        flat = all(curve.trend.flat for curve in self.curves if self.judged(curve))
        return flat and not self.differences.any and not self.exits

    def to_json(self) -> dict[str, Any]:
        """Return the result as one object, without the points of the curves."""
        curves = [
            {"kind": c.kind, "process": c.process, "judged": self.judged(c), **asdict(c.trend)}
            for c in self.curves
        ]
        return {
            "broker": self.broker,
            "minutes": self.minutes,
            "messages": self.messages,
            "samples": self.samples,
            "events": self.events,
            "copies": self.copies,
            "differences": asdict(self.differences),
            "exits": self.exits,
            "passed": self.passed,
            "curves": curves,
        }


def run_soak(minutes: float, *, broker: BrokerKind, seed: int, advance: Callable[[str, float], None]) -> Soak:
    """Feed a steady load for a given time, and observe every process meanwhile.

    Raises:
        ConfigError: this system has no /proc to look at processes in.
        SmidgenError: a process did not start, or did not finish.
    """
    require_proc("soak")
    advance("drawing the load", 0.0)
    windows = max(60, round(minutes * 60 / WINDOW_EVERY_S))
    # Regressions throughout: their explanations take memory of their own.
    # A month of changes before the start: with more of them every hour the load would not be steady.
    load = build_load(Shape(windows=windows, steps_from=0.1, past_s=HISTORY_S), seed)
    advance("starting", 0.0)
    with Rig(Setup(broker=broker), load, seconds=minutes * 60) as rig, Observer(rig) as observer:
        while rig.feeder.offered < len(load.batches):
            advance("soaking", rig.feeder.share)
            time.sleep(1.0)
        rig.feeder.finish()
        observer.stop()
        rig.wait_drained()
        differences, copies = rig.compare()
        exits = rig.supervisor.exits
    return Soak(
        broker,
        minutes,
        load.messages,
        load.truth.samples,
        len(load.truth.events),
        differences,
        copies,
        exits,
        observer.curves(),
    )


class Observer:
    """Thread that observes the processes of a rig every few seconds."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._began = time.monotonic()
        self._points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        self._thread = TaskSupervisor().run_thread("observer", self._observe, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop observing."""
        self._stop.set()
        self._thread.join()

    def curves(self) -> tuple[ProcessCurve, ...]:
        """Return the observed curves."""
        return tuple(
            ProcessCurve(kind, process, *np.array(points).T)
            for (kind, process), points in sorted(self._points.items())
            if points
        )

    def _observe(self) -> None:
        while not self._stop.wait(EVERY_S):
            at = time.monotonic() - self._began
            for name, pid in self._pids().items():
                try:
                    memory, handles = memory_mb(pid), len(os.listdir(f"/proc/{pid}/fd"))
                except (FileNotFoundError, ProcessLookupError):
                    continue  # ended meanwhile
                self._points["memory", name].append((at, memory))
                self._points["handles", name].append((at, float(handles)))
            for stage in SCAN_STAGES:
                self._points["lag", stage].append((at, float(self._rig.watcher.view.lag(stage))))

    def _pids(self) -> dict[str, int]:
        workers = {name: worker.pid for name, worker in self._rig.supervisor.workers.items()}
        pids = {**workers, **self._rig.broker.pids, "store": self._rig.store.pid}
        return {name: pid for name, pid in pids.items() if pid}


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process.

    Raises:
        FileNotFoundError: the process has ended.
    """
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
