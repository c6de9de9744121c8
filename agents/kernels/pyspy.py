"""py-spy as the sampler of Python processes: one ``py-spy record`` a run, stopped by SIGINT."""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.clock import Clock
from pipeline.errors import SmidgenError

READY = "Sampling process"
"""What py-spy prints when it starts to sample."""

_DENIED = ("Permission Denied", "Permission denied", "Operation not permitted")


class SamplerError(SmidgenError):
    """The sampler cannot sample this process."""


@dataclass(eq=False, slots=True)
class Run:
    """One run of the sampler. ``ready`` and ``exited`` are set by a thread, in epoch seconds."""

    output: Path
    process: subprocess.Popen[str]
    ready: float = 0.0  # since when it samples; 0 until it does
    exited: float | None = None
    words: list[str] = field(default_factory=list)  # what it printed

    @property
    def is_ready(self) -> bool:
        """Whether it ever sampled."""
        return self.ready > 0

    def stop(self) -> None:
        """Ask it to end and write what it has."""
        if self.exited is None:
            self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it at once; what it sampled is lost."""
        self.process.kill()

    def take(self) -> bytes:
        """Return the collapsed stacks it wrote, empty if it wrote none, and remove their file."""
        data = self.output.read_bytes() if self.output.exists() else b""
        self.output.unlink(missing_ok=True)
        return data

    def complaint(self) -> str:
        """Return in one line why it failed."""
        text = "\n".join(self.words)
        if any(words in text for words in _DENIED):
            return (
                "not permitted: py-spy needs root, CAP_SYS_PTRACE, or the same user and "
                "kernel.yama.ptrace_scope=0 (docs/agent.md)"
            )
        lines = [line.strip() for line in text.split("Stack backtrace")[0].splitlines()]
        reasons = [line.removeprefix("Error: ") for line in lines if line and "py-spy>" not in line]
        return reasons[0] if reasons else f"py-spy ended with code {self.process.poll()}"


@dataclass(frozen=True, slots=True)
class PySpy:
    """Starts runs of py-spy that write to ``folder``.

    ``longest_s`` ends a run by itself, so that none outlives for long an agent that was killed.
    """

    binary: str
    folder: Path
    clock: Clock
    rate_hz: int
    longest_s: int
    native: bool = False
    idle: bool = False
    subprocesses: bool = False
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def start(self, pid: int, wake: Callable[[], None]) -> Run:
        """Start a run on a process and call ``wake``, from a thread, when it samples and when it ended."""
        output = self.folder / f"{next(self.numbers)}.txt"
        process = subprocess.Popen(
            [self.binary, "record", "--pid", str(pid), "--output", str(output), *self._options()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C in the terminal is for the agent, which ends its runs itself
        )
        run = Run(output, process)
        threading.Thread(target=self._follow, args=(run, wake), daemon=True).start()
        return run

    def _options(self) -> Iterator[str]:
        yield from ("--format", "raw", "--nolineno", "--rate", str(self.rate_hz))
        yield from ("--duration", str(self.longest_s))
        for name in ("native", "idle", "subprocesses"):
            if getattr(self, name):
                yield f"--{name}"

    def _follow(self, run: Run, wake: Callable[[], None]) -> None:
        for line in run.process.stdout or ():
            run.words.append(line.rstrip())
            if READY in line:
                run.ready = self.clock()
                wake()
        run.process.wait()
        run.exited = self.clock()
        wake()


def find_py_spy() -> str:
    """Return the path of py-spy: beside this Python first, then anywhere on PATH.

    Raises:
        SamplerError: there is none.
    """
    for place in (str(Path(sys.executable).parent), sysconfig.get_path("scripts"), None):
        if found := shutil.which("py-spy", path=place):
            return found
    raise SamplerError("py-spy is not installed: pip install py-spy")
