"""Choice of the kernels that suit a process, from its files in ``/proc``, also inside a container."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


class Runtime(enum.Enum):
    """Runtime of a program; the value is its name in messages."""

    PYTHON = "Python"
    JAVA = "Java"
    NODE = "Node.js"
    RUBY = "Ruby"
    COMPILED = "compiled code"


_INTERPRETERS = {
    Runtime.PYTHON: re.compile(
        r"(?:python|uwsgi-python)[\d.]*\w*|libpython[\d.]+\w*\.so.*|.*\.cpython-\d+.*\.so"
    ),
    Runtime.JAVA: re.compile(r"java|libjvm\.so"),
    Runtime.NODE: re.compile(r"node(?:js)?[\d.]*|libnode\.so.*"),
    Runtime.RUBY: re.compile(r"ruby[\d.]*|libruby[\w.-]*\.so.*"),
}
"""Names of an interpreter's program, and of libraries that only a process with it maps."""


@dataclass(frozen=True, slots=True)
class SeenProcess:
    """Facts about a process; ``program`` is empty if unknown, as after the process has ended."""

    program: str  # name of its file
    mapped: tuple[str, ...] = ()  # names of the files that it has mapped
    perf_map: bool = False  # whether it writes names of code that it compiles while it runs


def see_process(pid: int, proc: Path = PROC) -> SeenProcess:
    """Read the facts about a process; files that may not be read count as missing."""
    folder = proc / str(pid)
    try:
        program = os.readlink(folder / "exe").removesuffix(" (deleted)")
        lines = (folder / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return SeenProcess("")
    paths = (line.split(maxsplit=5)[5] for line in lines if line.count("/"))
    mapped = tuple(dict.fromkeys(_name(path.removesuffix(" (deleted)")) for path in paths))
    perf_map = folder / "root" / "tmp" / f"perf-{_own_pid(folder, pid)}.map"
    return SeenProcess(_name(program), mapped, perf_map.exists())


def runtimes(seen: SeenProcess) -> tuple[Runtime, ...]:
    """Return the runtimes of a process, that of its program first.

    A program that embeds an interpreter is taken for what it interprets. What is interpreted is compiled code
    too if the process writes a map of it for perf.
    """
    if not seen.program:
        return ()
    names = (seen.program, *seen.mapped)
    runtimes_seen = [
        runtime
        for name in names
        for runtime, pattern in _INTERPRETERS.items()
        if pattern.fullmatch(name)
    ]  # fmt: skip
    if not runtimes_seen or seen.perf_map:
        runtimes_seen.append(Runtime.COMPILED)
    return tuple(dict.fromkeys(runtimes_seen))


def suitable(kernels: Mapping[str, tuple[Runtime, ...]], present: Iterable[Runtime]) -> tuple[str, ...]:
    """Return the kernels that sample one of the runtimes, best first.

    Args:
        kernels: The runtimes that each samples, all if it names none, in order of preference.
        present: The runtimes of a process, see ``runtimes``.
    """
    names = (
        name for runtime in present for name, sampled in kernels.items() if not sampled or runtime in sampled
    )
    return tuple(dict.fromkeys(names))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _own_pid(folder: Path, pid: int) -> str:
    """Return the id that a process has in its own namespace, which names its files."""
    try:
        status = (folder / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(pid)
    match = re.search(r"^NSpid:.*?(\d+)$", status, re.MULTILINE)
    return match[1] if match else str(pid)
