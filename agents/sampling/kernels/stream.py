"""A run that streams: a pipe of programs, whose output is a profile that is read while it is written."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, cast

from agents.profiles.formats import Measure, ProfileSource, Sample, Stack, find_format, read_profile
from agents.profiles.formats.frames import without_line
from agents.profiles.formats.writers import write_collapsed
from agents.sampling.kernels.base import SamplerError
from pipeline.model.clock import Clock
from pipeline.processes import tether

_KEPT_LINES = 50
_LINE_BYTES = 4096


_LINE_BUFFER = "stdbuf"
LINE_BUFFERED = (_LINE_BUFFER, "--output=L")
"""Prefix of a command that makes it write to a pipe line by line instead of block by block."""


def find_line_buffer(name: str) -> None:
    """Check that a kernel's output can come line by line.

    Raises:
        SamplerError: the program for it is not installed.
    """
    if not shutil.which(_LINE_BUFFER):
        raise SamplerError(f"{name} needs {_LINE_BUFFER}: install coreutils")


@dataclass(frozen=True, slots=True)
class Pipe:
    """A pipe of programs, and the format of the last one's output.

    The first is asked to end by SIGINT; the others then end by themselves.
    """

    commands: tuple[tuple[str, ...], ...]
    format: str  # its name
    measure: Measure = Measure()  # unit of its weights
    begins_with_output: bool = False  # whether the first output shows that it samples
    spell: Callable[[str], str] = without_line  # changes the spelling of a frame
    inherited: tuple[int, ...] = ()  # file descriptors that the first program needs


class StreamRun:
    """One run. ``ready`` and ``exited`` are set by threads, in epoch seconds.

    Stacks are added up as they come: memory grows with the stacks that differ, until they are taken.
    """

    streams = True

    def __init__(
        self, pipe: Pipe, clock: Clock, wake: Callable[[], None], explain: Callable[[str], str]
    ) -> None:
        self.ready = 0.0
        self.exited: float | None = None
        self._pipe, self._clock, self._wake, self._explain = pipe, clock, wake, explain
        self._lock = threading.Lock()
        self._weights: dict[Stack, float] = {}
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        self._processes = _start(pipe)
        readers = [self._thread(self._listen, process.stderr) for process in self._processes]
        readers.append(self._thread(self._read, self._processes[-1].stdout))
        self._thread(self._await_end, readers)

    def began(self) -> None:
        """Take note that it samples."""
        self.ready = self._clock()
        self._wake()

    def stop(self) -> None:
        """Ask it to end and write what it has."""
        with contextlib.suppress(ProcessLookupError):
            self._processes[0].send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it at once; what it sampled is lost."""
        for process in self._processes:
            process.kill()

    def take(self) -> bytes:
        """Return the collapsed stacks since the last take."""
        with self._lock:
            weights, self._weights = self._weights, {}
        written = io.BytesIO()
        write_collapsed(map(Sample._make, weights.items()), self._pipe.measure, written)
        return written.getvalue()

    def complaint(self) -> str:
        """Return in one line why it failed."""
        return self._explain("\n".join(self._said))

    def _read(self, output: IO[bytes]) -> None:
        source = ProfileSource(cast("io.BufferedReader", output), head_bytes=1)
        if not source.head:
            return
        if self._pipe.begins_with_output:
            self.began()
        reading = read_profile(find_format(self._pipe.format, source.head), source)
        for record in reading.records:
            if isinstance(record, Sample) and record.stack:
                stack = tuple(map(self._pipe.spell, record.stack))
                with self._lock:
                    self._weights[stack] = self._weights.get(stack, 0) + record.weight

    def _listen(self, errors: IO[bytes]) -> None:
        while line := errors.readline(_LINE_BYTES):
            self._said.append(line.decode(errors="replace").strip())

    def _await_end(self, readers: Sequence[threading.Thread]) -> None:
        for reader in readers:
            reader.join()
        for process in self._processes:
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        self.exited = self._clock()
        self._wake()

    @staticmethod
    def _thread(work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        return thread


def _start(pipe: Pipe) -> list[subprocess.Popen[bytes]]:
    """Start the programs; the first ends with this thread, and so do the others, whose input then ends."""
    tied = (sys.executable, "-I", "-S", tether.__file__, str(os.getpid()))
    started: list[subprocess.Popen[bytes]] = []
    for command in pipe.commands:
        before = started[-1] if started else None
        process = subprocess.Popen(
            command if before else [*tied, shutil.which(command[0]) or command[0], *command[1:]],
            stdin=before.stdout if before else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C in a terminal reaches only the agent
            pass_fds=() if before else pipe.inherited,
        )
        if before and before.stdout:
            before.stdout.close()
        started.append(process)
    return started
