"""CPU time of a side: of a process with its children, or of a cgroup."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pipeline.model.errors import ConfigError

_USAGE = "usage_usec "


def process_cpu(pid: int, proc: Path = Path("/proc")) -> Callable[[], float | None]:
    """Return a reader of the CPU seconds of a process and its descendants, None once the process has ended.

    They come from each thread's ``schedstat``, in nanoseconds. A thread's last reading is kept after it ends;
    a thread that starts and ends between two readings is missed.

    Raises:
        ConfigError: there is no such process.
    """
    used_ns: dict[Path, int] = {}

    def read() -> float | None:
        if not (proc / str(pid)).exists():
            return None
        for path in _threads(pid, proc):
            used = _first_number(path)
            if used is not None:
                used_ns[path] = used
        return sum(used_ns.values()) / 1e9

    if read() is None:
        raise ConfigError(f"no process has the id {pid}")
    return read


def cgroup_cpu(folder: Path) -> Callable[[], float | None]:
    """Return a reader of the CPU seconds of a cgroup (version 2), None once the cgroup has gone.

    Raises:
        ConfigError: it is no cgroup.
    """

    def read() -> float | None:
        try:
            lines = (folder / "cpu.stat").read_text(encoding="ascii").splitlines()
        except OSError:
            return None
        values = (line.removeprefix(_USAGE) for line in lines if line.startswith(_USAGE))
        return next((int(text) / 1e6 for text in values if text.isdecimal()), None)

    if read() is None:
        raise ConfigError(f"{folder}: has no cpu.stat with usage_usec; it should be a cgroup of version 2")
    return read


def _threads(pid: int, proc: Path) -> Iterable[Path]:
    """Yield the files of all threads of a process and its descendants."""
    waiting, seen = [pid], set()
    while waiting:
        process = waiting.pop()
        if process in seen:
            continue
        seen.add(process)
        try:
            tasks = list((proc / str(process) / "task").iterdir())
        except OSError:  # it has ended
            continue
        for task in tasks:
            yield task / "schedstat"
            waiting += _children(task)


def _children(task: Path) -> list[int]:
    try:
        return [int(text) for text in (task / "children").read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []


def _first_number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").partition(" ")[0]
    except OSError:  # it has ended
        return None
    return int(text) if text.isdecimal() else None
