"""A child process whose last words are kept, bounded, for the error message."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

_TETHER = Path(__file__).with_name("tether.py")
_KEPT_LINES = 50
_STOP_TIMEOUT_S = 10.0


class Child:
    """A running program, tied to this process: it is told to end when the thread that started it ends.

    It has a session of its own, so that Ctrl-C in a terminal reaches only the parent, which then stops its
    children in order. Its standard input stays open until ``stop``: a child may take its end as a signal.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._errors: deque[str] = deque(maxlen=_KEPT_LINES)
        self._readers: list[threading.Thread] = []
        self._keep(self._process.stderr)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the program has not ended."""
        return self._process.poll() is None

    def first_line(self) -> str:
        """Wait for the first line on standard output; it is empty if the program ended without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode(errors="replace").strip()
        self.drain()
        return line

    def drain(self) -> None:
        """Read standard output from now on, keeping its last lines, so that the program never blocks."""
        self._keep(self._process.stdout)

    def last_words(self) -> str:
        """Return the last line that the program wrote, for an error message."""
        if not self.running:
            for reader in self._readers:
                reader.join(timeout=_STOP_TIMEOUT_S)
        return next((line for line in reversed(self._errors) if line), "")

    def stop(self) -> None:
        """Ask the program to end, kill it if it does not, and collect it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self.running:
            self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _keep(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._errors.append(line.decode(errors="replace").strip())
