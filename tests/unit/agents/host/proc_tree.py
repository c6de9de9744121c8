"""A made-up tree of /proc."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from agents.host.proc import ProcessFacts, ProcessStat, ProcReader

TICKS_PER_S = 100


class ProcTree:
    """Processes as files; times are in seconds since the machine started."""

    def __init__(self, root: Path, uptime_s: float = 1000.0) -> None:
        self.root = root
        for name in ("self", "sys"):
            (root / name).mkdir(parents=True, exist_ok=True)
        self.uptime_s = uptime_s

    @property
    def uptime_s(self) -> float:
        return float((self.root / "uptime").read_text().split()[0])

    @uptime_s.setter
    def uptime_s(self, seconds: float) -> None:
        (self.root / "uptime").write_text(f"{seconds:.2f} 1.00\n")

    def add(
        self,
        pid: int,
        command: str,
        *,
        started: float = 1.0,
        parent: int = 1,
        cpu_s: float = 0.0,
        children_cpu_s: float = 0.0,
        name: str = "python",
        state: str = "S",
        environment: Mapping[str, str] | None = None,
        cgroup: str = "0::/\n",
        user_id: int = 0,
        executable: str = "/usr/bin/python3",
    ) -> None:
        """Add a process, or change it."""
        folder = self.root / str(pid)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        ticks = [int(seconds * TICKS_PER_S) for seconds in (cpu_s, 0, children_cpu_s, 0)]
        fields = [state, parent, 0, 0, 0, 0, 0, 0, 0, 0, 0, *ticks, 20, 0, 1, 0, int(started * TICKS_PER_S)]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))} 0 0\n")
        (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0" if command else b"")
        pairs = [f"{key}={value}" for key, value in (environment or {}).items()]
        (folder / "environ").write_bytes("\0".join(pairs).encode())
        (folder / "cgroup").write_text(cgroup)
        (folder / "status").write_text(f"Name:\t{name}\nUid:\t{user_id}\t{user_id}\t{user_id}\t{user_id}\n")
        (folder / "exe").symlink_to(executable)

    def end(self, pid: int) -> None:
        """Let a process end."""
        shutil.rmtree(self.root / str(pid))

    def reader(self) -> CountingReader:
        return CountingReader(self.root)


class CountingReader(ProcReader):
    """Notes which processes are read in full."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, TICKS_PER_S)
        self.in_full: list[int] = []
        self.stats: list[int] = []

    def facts(self, pid: int) -> ProcessFacts:
        self.in_full.append(pid)
        return super().facts(pid)

    def stat(self, pid: int) -> ProcessStat | None:
        self.stats.append(pid)
        return super().stat(pid)
