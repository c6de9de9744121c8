"""Austin, a second kernel of Python: started once a process, which it never pauses; some stacks are torn.

It counts the threads that run, as py-spy does.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from agents.profiles.formats import AUTO, Measure
from agents.profiles.formats.frames import join_frame, split_frame, without_line
from agents.sampling.kernels.base import SamplerError, Sampling
from agents.sampling.kernels.stream import LINE_BUFFERED, Pipe, StreamRun, find_line_buffer

NAME = "austin"
_DENIED = ("Insufficient permissions", "ermission denied", "not permitted", "Requires root")
_NO_PYTHON = ("not a valid Python", "not a Python", "Cannot attach", "Not a Python")


class Austin:
    """Starts runs of Austin.

    Raises:
        SamplerError: it is not installed, or does not support the settings.
    """

    def __init__(self, sampling: Sampling, binary: str | None = None) -> None:
        if sampling.native:
            raise SamplerError("austin samples Python frames alone: leave out --native")
        self._sampling = sampling
        self._binary = binary or find_austin()
        find_line_buffer(NAME)

    def start(self, pid: int, wake: Callable[[], None]) -> StreamRun:
        """Start a run on a process and call ``wake``, from a thread, when it samples and when it ended."""
        period_us = round(1e6 / self._sampling.rate_hz)
        command = (*LINE_BUFFERED, self._binary, *self._options(), "-i", str(period_us), "-p", str(pid))
        # Its first line says that it is attached.
        measure = Measure("cpu", "microseconds", period_us)
        spell = lru_cache(maxsize=16_384)(partial(shortened, root=Path(f"/proc/{pid}/root")))
        pipe = Pipe((command,), AUTO, measure, begins_with_output=True, spell=spell)
        return StreamRun(pipe, self._sampling.clock, wake, explain)

    def _options(self) -> Iterator[str]:
        yield "-P"
        if not self._sampling.idle:
            yield "-s"
        if self._sampling.subprocesses:
            yield "-C"


def shortened(frame: str, root: Path) -> str:
    """Return a frame without its line, and with its file from the outermost package on, as py-spy spells it.

    Args:
        frame: As formats spell it.
        root: Path at which the file system of the process is visible.
    """
    name, file, _ = split_frame(frame)
    path = PurePosixPath(file)
    if path.suffix != ".py":
        return without_line(frame)
    first = path
    while (root / str(first.parent).lstrip("/") / "__init__.py").exists():
        first = first.parent
    return join_frame(name, str(path.relative_to(first.parent)))


def explain(text: str) -> str:
    """Return in one line why Austin failed, from its output."""
    if any(words in text for words in _DENIED):
        return "not permitted: austin needs root or CAP_SYS_PTRACE (docs/agent.md)"
    if any(words in text for words in _NO_PYTHON):
        return "austin finds no Python in it: it is no Python program, or has not begun or is just ending"
    lines = [line for line in text.splitlines() if line]
    return f"austin: {lines[-1]}" if lines else "austin ended"


def find_austin() -> str:
    """Return the path of Austin: beside this Python first, then anywhere on PATH.

    Raises:
        SamplerError: there is none.
    """
    path = shutil.which(NAME, path=str(Path(sys.executable).parent)) or shutil.which(NAME)
    if not path:
        raise SamplerError("austin is not installed: pip install austin-dist")
    return path
