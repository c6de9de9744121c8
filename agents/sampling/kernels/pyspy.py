"""py-spy, the kernel of Python processes: one ``py-spy record`` a run, stopped by SIGINT."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from agents.sampling.kernels.base import SamplerError, Sampling
from pipeline.model.clock import Clock
from pipeline.processes import Child

NAME = "py-spy"

READY = "Sampling process"
"""Text that py-spy prints when it starts to sample."""

_DENIED = ("Permission Denied", "Permission denied", "Operation not permitted")


_NOT_FOUND = "Failed to find python version"
_NO_PYTHON = (_NOT_FOUND, "Failed to find a python interpreter", "python library")
"""Text that py-spy prints of a process without an interpreter."""


class PySpy:
    """Starts runs of py-spy.

    Raises:
        SamplerError: py-spy is not installed.
    """

    def __init__(self, sampling: Sampling, binary: str | None = None) -> None:
        self._sampling = sampling
        self._binary = binary or find_py_spy()
        self._numbers = itertools.count()

    def start(self, pid: int, wake: Callable[[], None]) -> PySpyRun:
        """Start a run on a process and call ``wake``, from a thread, when it samples and when it ended."""
        output = self._sampling.folder / f"{next(self._numbers)}.txt"
        command = [self._binary, "record", "--pid", str(pid), "--output", str(output), *self._options()]
        return PySpyRun(command, output, self._sampling.clock, wake)

    def _options(self) -> Iterator[str]:
        yield from ("--format", "raw", "--nolineno", "--rate", str(self._sampling.rate_hz))
        yield from ("--duration", str(self._sampling.longest_s))
        for name in ("native", "idle", "subprocesses", "nonblocking"):
            if getattr(self._sampling, name):
                yield f"--{name}"


class PySpyRun:
    """One run. ``ready`` and ``exited`` are set by threads, in epoch seconds."""

    streams = False  # py-spy hands out its stacks only when it ends

    def __init__(self, command: list[str], output: Path, clock: Clock, wake: Callable[[], None]) -> None:
        self.ready = 0.0
        self.exited: float | None = None
        self._output = output
        self._clock = clock
        self._wake = wake
        # Not tethered: a run lasts seconds, and starting another Python for each would cost the host more
        # than the sampling. ``--duration`` ends a run whose agent was killed.
        self._child = Child(command, tethered=False, watcher=self)

    def line(self, text: str) -> None:
        """Take a line that py-spy printed."""
        if READY in text:
            self.ready = self._clock()
            self._wake()

    def ended(self) -> None:
        """Take note that py-spy ended."""
        self.exited = self._clock()
        self._wake()

    def stop(self) -> None:
        """Ask it to end and write what it has."""
        if self.exited is None:
            self._child.send(signal.SIGINT)

    def kill(self) -> None:
        """End it at once; what it sampled is lost."""
        self._child.send(signal.SIGKILL)

    def take(self) -> bytes:
        """Return the collapsed stacks it wrote, empty if it wrote none, and remove their file."""
        data = self._output.read_bytes() if self._output.exists() else b""
        self._output.unlink(missing_ok=True)
        return data

    def complaint(self) -> str:
        """Return in one line why it failed."""
        text = self._child.output()
        if any(words in text for words in _DENIED):
            return _denied(is_root=os.geteuid() == 0)
        if any(words in text for words in _NO_PYTHON):
            return f"{_NOT_FOUND}: it is no Python program, or one that has not begun or is just ending"
        lines = [line.strip() for line in text.split("Stack backtrace")[0].splitlines()]
        reasons = [line.removeprefix("Error: ") for line in lines if line and "py-spy>" not in line]
        return reasons[0] if reasons else f"py-spy ended with code {self._child.returncode}"


def _denied(*, is_root: bool) -> str:
    if is_root:
        return (
            "not permitted, though to root: it has just ended, or root lacks CAP_SYS_PTRACE here, "
            "as in a container (docs/agent.md)"
        )
    return (
        "not permitted: py-spy needs root, CAP_SYS_PTRACE, or the same user and "
        "kernel.yama.ptrace_scope=0 (docs/agent.md)"
    )


def find_py_spy() -> str:
    """Return the path of py-spy: beside this Python first, then anywhere on PATH.

    Raises:
        SamplerError: there is none.
    """
    for folder in (str(Path(sys.executable).parent), sysconfig.get_path("scripts"), None):
        if path := shutil.which(NAME, path=folder):
            return path
    raise SamplerError("py-spy is not installed: pip install py-spy")
