"""async-profiler, the kernel of Java: ``asprof start`` once a process, and ``asprof dump`` at each take.

A dump holds what was sampled since the start, so what a take returns is the difference of two. A JVM that
ends writes its last one by itself.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agents.profiles.formats import Stack
from agents.profiles.formats.collapsed import parse_collapsed
from agents.sampling.kernels.base import SamplerError, Sampling
from pipeline.processes import run_bounded

NAME = "async-profiler"
BINARY = "asprof"
VARIABLE = "ASPROF"
EVENTS = {False: "cpu", True: "wall"}
"""Events by whether waiting threads count, too."""

COMMAND_S = 10.0
"""Seconds that a JVM may take for a command."""

_MOST_SAID = 1 << 20
_DENIED = ("Operation not permitted", "Permission denied", "Could not attach", "not allowed")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class JavaProcess:
    """A JVM, and the file in its own /tmp that it writes."""

    binary: str
    pid: int
    file: str

    def ask(self, action: str, *options: str) -> str:
        """Send a command to async-profiler in the JVM; return its error, empty if it succeeded."""
        command = (self.binary, action, *options, "-o", "collapsed", "-f", f"/tmp/{self.file}", str(self.pid))
        done = run_bounded(command, max_bytes=_MOST_SAID, timeout_s=COMMAND_S)
        message = f"{done.errors}\n{done.data.decode(errors='replace')}".strip()
        return done.cut or (message or f"{BINARY} ended with code {done.code}" if done.code else "")


class AsyncProfiler:
    """Starts runs of async-profiler.

    Raises:
        SamplerError: it is not installed, or does not support the settings.
    """

    def __init__(self, sampling: Sampling, binary: str | None = None) -> None:
        if sampling.subprocesses:
            raise SamplerError("async-profiler samples one JVM: leave out --subprocesses")
        self._sampling = sampling
        self._binary = binary or find_asprof()

    def start(self, pid: int, wake: Callable[[], None]) -> AsyncProfilerRun:
        """Start a run on a process and call ``wake``, from a thread, when it samples and when it ended."""
        file = f"smidgen-{os.getpid()}-{next(_numbers)}.collapsed"
        return AsyncProfilerRun(JavaProcess(self._binary, pid, file), self._sampling, wake)


class AsyncProfilerRun:
    """One run. ``ready`` and ``exited`` are set by a thread, in epoch seconds."""

    streams = True

    def __init__(self, process: JavaProcess, sampling: Sampling, wake: Callable[[], None]) -> None:
        self.ready = 0.0
        self.exited: float | None = None
        self._process, self._sampling, self._wake = process, sampling, wake
        self._asked = os.eventfd(0)
        self._failure = ""
        self._seen: Mapping[Stack, int] = {}
        self._last = b""
        self._folder = -1
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Ask it to end and write what it has."""
        if self.exited is None:
            with contextlib.suppress(OSError):  # it has just ended
                os.eventfd_write(self._asked, 1)

    def kill(self) -> None:
        """Ask the run to end: only the JVM, which goes on, can end its profiler."""
        self.stop()

    def take(self) -> bytes:
        """Return the collapsed stacks since the last take; after a failed dump, the next has all of them."""
        if self.exited is None:
            self._failure = self._process.ask("dump")
            dump = b"" if self._failure else self._read()
        else:
            dump, self._last = self._last, b""
        stacks = parse_collapsed(dump).stacks
        new = {stack: count - self._seen.get(stack, 0) for stack, count in stacks.items()}
        self._seen = stacks or self._seen
        return "".join(f"{';'.join(stack)} {count}\n" for stack, count in new.items() if count > 0).encode()

    def complaint(self) -> str:
        """Return in one line why it failed."""
        return explain(self._failure)

    def _run(self) -> None:
        with contextlib.ExitStack() as opened:
            try:
                self._sample(opened)
            except OSError as error:
                self._failure = error.strerror or str(error)
            self.exited = self._sampling.clock()
        self._wake()

    def _sample(self, opened: contextlib.ExitStack) -> None:
        """Start, follow the JVM until it is asked to end or has ended, and keep its last dump."""
        ended = os.pidfd_open(self._process.pid)
        opened.callback(os.close, ended)
        opened.callback(os.close, self._asked)
        # Held open: the file is read after the JVM has ended, and may be in a container.
        self._folder = os.open(f"/proc/{self._process.pid}/root/tmp", os.O_RDONLY | os.O_DIRECTORY)
        opened.callback(os.close, self._folder)
        self._failure = self._process.ask("start", *self._options())
        if self._failure:
            return
        self.ready = self._sampling.clock()
        self._wake()
        readable, _, _ = select.select([ended, self._asked], [], [])
        if ended not in readable:
            self._failure = self._process.ask("stop")
        self._last = self._read()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._process.file, dir_fd=self._folder)

    def _options(self) -> tuple[str, ...]:
        interval = f"{round(1e9 / self._sampling.rate_hz)}ns"
        return ("-e", EVENTS[self._sampling.idle], "-i", interval)

    def _read(self) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            flags = os.O_RDONLY | os.O_NOFOLLOW
            with os.fdopen(os.open(self._process.file, flags, dir_fd=self._folder), "rb") as stream:
                return stream.read()
        return b""


def explain(said: str) -> str:
    """Return in one line why async-profiler failed, from its output."""
    if any(words in said for words in _DENIED):
        return (
            "not permitted: async-profiler needs the user of the JVM, or root, and a JVM without "
            "-XX:+DisableAttachMechanism (docs/agent.md)"
        )
    lines = [line.removeprefix("[ERROR]").strip() for line in said.splitlines() if line.strip()]
    return f"async-profiler: {lines[0]}" if lines else "the JVM ended"


def find_asprof() -> str:
    """Return the path of asprof: what the environment names, else on PATH.

    Raises:
        SamplerError: it is not installed.
    """
    path = shutil.which(os.environ.get(VARIABLE) or BINARY)
    if not path:
        raise SamplerError(
            f"async-profiler is not installed: put its {BINARY} on PATH, "
            f"or name it by {VARIABLE}=/path/{BINARY}"
        )
    return path
