"""Processes of this machine, as ``/proc`` shows them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

MAX_READ = 256 * 1024
"""Most bytes of a command line or an environment that are read."""

_RUNS_NO_MORE = ("Z", "X")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """Properties of a process that change while it runs, and those that identify it.

    ``pid`` and ``started`` together name a process: a pid is given again after its end.
    """

    pid: int
    name: str  # of its program, at most 15 characters; another one after exec
    parent: int
    started: float  # seconds since the machine started
    cpu_s: float  # of the process, without its children
    children_cpu_s: float = 0.0  # of children that have ended


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """Properties of a process that rules match."""

    pid: int
    command: str  # words with blanks between them; empty for threads of the kernel
    executable: str = ""  # empty where it may not be read
    user: str = ""
    user_id: int = 0
    cgroup: str = ""  # lines of the file
    environment: Mapping[str, str] = field(default_factory=dict)  # empty where it may not be read


class ProcReader:
    """Reads one tree of ``/proc``. A process that ends meanwhile has no stat, and facts without a command.

    Args:
        root: the tree.
        ticks_per_s: units of its times, 1 / 100 s on all usual machines.
    """

    def __init__(self, root: Path = Path("/proc"), ticks_per_s: float | None = None) -> None:
        self._root = str(root)  # paths as texts: a scan reads many
        self._ticks_per_s = ticks_per_s or os.sysconf("SC_CLK_TCK")
        self._users: dict[int, str] = {}

    def pids(self) -> list[int]:
        """Return all processes, without their threads."""
        return sorted(int(name) for name in os.listdir(self._root) if name.isdecimal())

    def uptime_s(self) -> float:
        """Return the seconds since the machine started."""
        return float((self._read("uptime").split() or ["0"])[0])

    def stat(self, pid: int) -> ProcessStat | None:
        """Return the state of a process, None if it has ended or only waits to be reaped."""
        head, closing, tail = self._read(f"{pid}/stat").rpartition(")")
        fields = tail.split()
        if not closing or len(fields) < 20 or fields[0] in _RUNS_NO_MORE:
            return None
        user, system, children_user, children_system = (int(text) for text in fields[11:15])
        return ProcessStat(
            pid=pid,
            name=head.partition("(")[2],
            parent=int(fields[1]),
            started=int(fields[19]) / self._ticks_per_s,
            cpu_s=(user + system) / self._ticks_per_s,
            children_cpu_s=(children_user + children_system) / self._ticks_per_s,
        )

    def facts(self, pid: int) -> ProcessFacts:
        """Return the properties that rules match."""
        user_id = self._user_id(pid)
        entries = (entry.partition("=") for entry in self._read(f"{pid}/environ").split("\0"))
        return ProcessFacts(
            pid=pid,
            command=" ".join(self._read(f"{pid}/cmdline").rstrip("\0").split("\0")),
            executable=self._executable(pid),
            user=self._user(user_id),
            user_id=user_id,
            cgroup=self._read(f"{pid}/cgroup"),
            environment={key: value for key, equals, value in entries if equals},
        )

    def _read(self, name: str) -> str:
        try:
            with open(f"{self._root}/{name}", "rb", buffering=0) as file:
                return _read_up_to(file, MAX_READ).decode(errors="replace")
        except OSError:  # it has ended, or belongs to somebody else
            return ""

    def _executable(self, pid: int) -> str:
        try:
            return os.readlink(f"{self._root}/{pid}/exe").removesuffix(" (deleted)")
        except OSError:
            return ""

    def _user_id(self, pid: int) -> int:
        lines = self._read(f"{pid}/status").splitlines()
        fields = next((line.split() for line in lines if line.startswith("Uid:")), [])
        return int(fields[2]) if len(fields) > 2 else 0  # the effective one

    def _user(self, user_id: int) -> str:
        if user_id not in self._users:
            try:
                self._users[user_id] = pwd.getpwuid(user_id).pw_name
            except KeyError:  # of a container
                self._users[user_id] = str(user_id)
        return self._users[user_id]


def _read_up_to(file: FileIO, most: int) -> bytes:
    """Read a file of /proc, which gives a page or so at a time."""
    data = file.read(most) or b""
    while data and len(data) < most and (more := file.read(most - len(data))):
        data += more
    return data
