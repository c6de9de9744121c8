"""One child process, for callers with and without an event loop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

_TETHER = Path(__file__).with_name("tether.py")
_KEPT_LINES = 200
_KEPT_BYTES = 4096  # of a line; what follows counts as the next one
_POLL_S = 0.02

STOP_S = 10.0
"""How long a program may take to end after SIGTERM."""


class Watcher(Protocol):
    """Whoever is called, from threads, about what a child says and that it ended."""

    def line(self, text: str) -> None:
        """Take a line of standard output or standard error."""

    def ended(self) -> None:
        """Take note that the program ended; all its lines were given."""


class Child:
    """A running program that ends with the thread that started it, and with it all that it started.

    It has a session of its own, so that Ctrl-C in a terminal reaches only the parent, which then stops its
    children in order. Without a log its standard input stays open until ``stop``: a child may take its end
    as a signal.

    Args:
        command: program and arguments; the program by its path, unless it is not tethered.
        log: file to which its output is appended; without one its last lines are kept, bounded.
        folder: where it runs, instead of here.
        environment: the whole of it, instead of this process's own.
        tethered: whether the kernel ends it with this thread; that costs the start of a Python, 10 ms.
        watcher: called with each line and at the end; not with a log.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        tethered: bool = True,
        watcher: Watcher | None = None,
    ) -> None:
        tether = (sys.executable, "-I", "-S", str(_TETHER), str(os.getpid())) if tethered else ()
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(log.open("ab")) if log else subprocess.PIPE
            self._process = subprocess.Popen(
                [*tether, *command],
                stdin=subprocess.DEVNULL if log or watcher else subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        self._lock = threading.Lock()
        self._group_ended = False
        self._watcher = watcher
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._readers: list[threading.Thread] = []
        self._keep(self._process.stderr)
        if watcher:
            self.drain()
            threading.Thread(target=self._await_end, args=(watcher,), daemon=True).start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for the signal that ended it; None while it runs."""
        code = self._process.poll()
        if code is not None:
            self._end_group()
        return code

    @property
    def running(self) -> bool:
        """Whether the program has not ended."""
        return self.returncode is None

    def first_line(self) -> str:
        """Wait for the first line on standard output; it is empty if the program ended without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline(_KEPT_BYTES).decode(errors="replace").strip()
        self.drain()
        return line

    def drain(self) -> None:
        """Read standard output from now on, keeping its last lines, so that the program never blocks."""
        self._keep(self._process.stdout)

    def output(self) -> str:
        """Return the last lines that the program wrote; all it wrote at the end, if it has ended."""
        if not self.running:
            for reader in self._readers:
                reader.join(timeout=STOP_S)
        return "\n".join(self._kept)

    def last_words(self) -> str:
        """Return the last line that the program wrote, for an error message."""
        return next((line for line in reversed(self.output().split("\n")) if line), "")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens if it has ended."""
        if self.running:
            self._process.send_signal(number)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end and return its exit code; None if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self.returncode

    def wait_ready(self, ready: Callable[[], bool], timeout_s: float) -> bool:
        """Ask again and again until it is ready; False if it ended or was not in time."""
        deadline = time.monotonic() + timeout_s
        while self.running and time.monotonic() < deadline:
            if ready():
                return True
            time.sleep(_POLL_S)
        return False

    def stop(self, timeout_s: float = STOP_S) -> int:
        """Ask the program to end, kill it if it does not, collect it, and return its exit code."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        code = end(self._process, timeout_s)
        self._end_group()
        for reader in self._readers:
            reader.join()
        self._close()
        return code

    def _close(self) -> None:
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _end_group(self) -> None:
        """Kill what the program started; once, as its process id may be another's later."""
        with self._lock:
            if not self._group_ended:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
            self._group_ended = True

    def _keep(self, stream: IO[bytes] | None) -> None:
        if stream is not None:
            reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _read(self, stream: IO[bytes]) -> None:
        while line := stream.readline(_KEPT_BYTES):
            text = line.decode(errors="replace").strip()
            self._kept.append(text)
            if self._watcher:
                self._watcher.line(text)

    def _await_end(self, watcher: Watcher) -> None:
        for reader in self._readers:
            reader.join()
        self._process.wait()
        self._end_group()
        self._close()
        watcher.ended()


def end(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    """End a process with SIGTERM, and with SIGKILL if that takes too long; return its exit code."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
