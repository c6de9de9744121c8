"""Discovery: the processes of the host, and the decision of the rules on each.

A scan lists all processes, but reads in full only those that it has not seen: rules look at a command
line, an environment and a cgroup, which do not change. Exceptions are young processes, which may still
become another program, and reused pids. A process that a rule takes is looked at in every scan; of the
others, a twelfth in turn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agents.host.proc import ProcessStat, ProcReader
from agents.host.rules import ProcessDecision, ProcessRule, SamplingTarget, decide

TURNS = 12
"""Number of scans in which every process is looked at once."""

YOUNG_S = 10.0
"""Up to this age a process is read anew in every scan: between fork and exec it looks like its parent."""

SHOWN = 200
"""Characters of a command line that are kept."""


@dataclass(frozen=True, slots=True)
class MatchedProcess:
    """A process that a rule takes. ``key`` identifies it, since pids are reused."""

    key: tuple[int, float]  # pid, and when it started
    target: SamplingTarget
    cpu_share: float  # CPUs used since the previous scan; in the first scan, since its start
    command: str = ""

    @property
    def pid(self) -> int:
        """The process id."""
        return self.key[0]


@dataclass(frozen=True, slots=True)
class Passed:
    """A process that is not sampled."""

    pid: int
    command: str
    decision: ProcessDecision


@dataclass(frozen=True, slots=True)
class ProcessScan:
    """All processes at one moment."""

    uptime_s: float
    matched: tuple[MatchedProcess, ...]
    passed: tuple[Passed, ...]  # without threads of the kernel
    own_cpu_s: float  # of the agent and its descendants
    covered: int = 0  # processes that are sampled with their ancestor

    @property
    def keys(self) -> frozenset[tuple[int, float]]:
        """All processes that a rule takes."""
        return frozenset(process.key for process in self.matched)


@dataclass(frozen=True, slots=True)
class _Known:
    stat: ProcessStat
    seen_s: float  # uptime when the stat was read
    decision: ProcessDecision | None  # None: a thread of the kernel, which has no command
    command: str
    cpu_share: float = 0.0

    @property
    def target(self) -> SamplingTarget | None:
        """The target, if the process is sampled."""
        return self.decision.target if self.decision else None


class Discovery:
    """Scans of one ``/proc``. ``own_pid`` and its descendants are never found."""

    def __init__(
        self, reader: ProcReader, rules: Sequence[ProcessRule], *, own_pid: int | None = None
    ) -> None:
        self._reader = reader
        self._rules = tuple(rules)
        self._own_pid = own_pid or os.getpid()
        self._known: dict[int, _Known] = {}
        self._turn = 0

    def use(self, rules: Sequence[ProcessRule]) -> None:
        """Use other rules from the next scan on."""
        self._rules = tuple(rules)
        self._known = {}

    def scan(self) -> ProcessScan:
        """Return all processes as they are now."""
        uptime_s = self._reader.uptime_s()
        processes: dict[int, _Known] = {}
        for pid in self._reader.pids():
            if process := self._look_at(pid, uptime_s):
                processes[pid] = process
        self._known = processes
        self._turn = (self._turn + 1) % TURNS
        own = {pid for pid in processes if self._own_pid in (pid, *_ancestors(pid, processes))}
        for pid in own:  # read in every scan, by pid: they are few
            stat = self._reader.stat(pid)
            if stat and stat.started == processes[pid].stat.started:
                processes[pid] = replace(processes[pid], stat=stat)
        return _scan_of(uptime_s, processes, own)

    def _look_at(self, pid: int, uptime_s: float) -> _Known | None:
        before = self._known.get(pid)
        if before and not self._is_due(pid, before, uptime_s):
            return before
        stat = self._reader.stat(pid)
        if stat is None:
            return None
        same = before is not None and (before.stat.started, before.stat.name) == (stat.started, stat.name)
        if before and same and not _is_young(before, before.seen_s):
            share = _cpu_share(stat.cpu_s - before.stat.cpu_s, uptime_s - before.seen_s)
            return replace(before, stat=stat, seen_s=uptime_s, cpu_share=share)
        facts = self._reader.facts(pid)
        lived_s = uptime_s - stat.started
        return _Known(
            stat,
            uptime_s,
            decide(facts, self._rules) if facts.command else None,
            facts.command[:SHOWN],
            _cpu_share(stat.cpu_s, lived_s),
        )

    def _is_due(self, pid: int, before: _Known, uptime_s: float) -> bool:
        return before.target is not None or pid % TURNS == self._turn or _is_young(before, before.seen_s)


def _is_young(process: _Known, uptime_s: float) -> bool:
    return uptime_s - process.stat.started < YOUNG_S


def _cpu_share(cpu_s: float, lasted_s: float) -> float:
    return cpu_s / lasted_s if lasted_s > 0 else 0.0


def _ancestors(pid: int, processes: Mapping[int, _Known]) -> Sequence[int]:
    """Return the ancestors of a process, the nearest first, up to the first unknown one."""
    parents: list[int] = []
    parent = processes[pid].stat.parent
    while parent in processes and parent not in parents:
        parents.append(parent)
        parent = processes[parent].stat.parent
    return parents


def _scan_of(uptime_s: float, processes: Mapping[int, _Known], own: set[int]) -> ProcessScan:
    sampled, passed, covered = [], [], 0
    with_children = {
        pid for pid, process in processes.items() if process.target and process.target.how.subprocesses
    }
    for pid, process in processes.items():
        if pid in own or process.decision is None:
            continue
        target = process.decision.target
        if target is None:
            passed.append(Passed(pid, process.command, process.decision))
        elif with_children and not with_children.isdisjoint(_ancestors(pid, processes)):
            covered += 1
        else:
            sampled.append(
                MatchedProcess((pid, process.stat.started), target, process.cpu_share, process.command)
            )
    own_cpu_s = sum(processes[pid].stat.cpu_s + processes[pid].stat.children_cpu_s for pid in own)
    return ProcessScan(uptime_s, tuple(sampled), tuple(passed), own_cpu_s, covered)
