"""Services to sample: a small program of each kind, built in a folder, with requests over a pipe or port."""

from __future__ import annotations

import contextlib
import io
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from pipeline.model.errors import SmidgenError
from pipeline.processes import run_bounded

SOURCES = Path(__file__).with_name("programs")
REQUEST, REQUEST_MORE = (b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path for path in (b"", b"more"))
FUNCTIONS = ("total", "taxes")
"""Functions that a request calls; the answer holds the CPU time of each so far, in nanoseconds."""

BUILD_S = 120.0
_MOST_SAID = 1 << 20


class NotHere(SmidgenError):
    """A program or kernel that cannot be measured here."""


@dataclass(frozen=True, slots=True)
class Program:
    """Commands that build and start a service; ``{out}`` stands for the folder of the build."""

    source: str
    run: tuple[str, ...]
    build: tuple[str, ...] = ()
    listens: bool = False  # on the port that it prints first, else to standard input


PROGRAMS = {
    "python": Program("service.py", (sys.executable, str(SOURCES / "service.py")), listens=True),
    "cpp": Program(
        "service.cpp",
        ("{out}/service",),
        ("g++", "-O1", "-fno-omit-frame-pointer", "-o", "{out}/service", "{source}"),
    ),
    "go": Program("service.go", ("{out}/service",), ("go", "build", "-o", "{out}/service", "{source}")),
    "java": Program(
        "Service.java", ("java", "-cp", "{out}", "Service"), ("javac", "-d", "{out}", "{source}")
    ),
}


@dataclass(frozen=True, slots=True)
class RunningService:
    """A running service."""

    pid: int
    requests: IO[bytes]
    answers: IO[bytes]

    def ask(self, *, more: bool = False) -> tuple[int, ...]:
        """Send one request and wait for its answer; return the nanoseconds of each function so far.

        Args:
            more: Whether to send the request that calls the first function nine times.

        Raises:
            NotHere: the service ended.
        """
        self.requests.write(REQUEST_MORE if more else REQUEST)
        for line in iter(self.answers.readline, b""):
            if line.startswith(b"spent "):
                return tuple(map(int, line.split()[1:]))
        raise NotHere("the service ended")


@contextmanager
def started(name: str, folder: Path) -> Iterator[RunningService]:
    """Build a service in a folder, run it, and end it.

    Raises:
        NotHere: a program that builds or runs the service is not installed, or fails.
    """
    program = PROGRAMS[name]
    build, run = (_filled(words, program, folder) for words in (program.build, program.run))
    for tool in (*build[:1], *run[:1]):
        if not tool.startswith(str(folder)) and not shutil.which(tool):
            raise NotHere(f"{tool} is not installed")
    if build:
        built = run_bounded(build, max_bytes=_MOST_SAID, timeout_s=BUILD_S)
        if built.cut or built.code:
            raise NotHere(f"{build[0]} failed: {built.cut or built.errors.splitlines()[:1]}")
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        try:
            with contextlib.ExitStack() as opened:
                yield _connected(process, program, opened)
        finally:
            process.kill()


def _filled(words: Sequence[str], program: Program, folder: Path) -> list[str]:
    return [
        word.replace("{out}", str(folder)).replace("{source}", str(SOURCES / program.source))
        for word in words
    ]


def _connected(
    process: subprocess.Popen[bytes], program: Program, opened: contextlib.ExitStack
) -> RunningService:
    assert process.stdin is not None
    assert process.stdout is not None
    if not program.listens:
        answers = io.BufferedReader(cast("io.FileIO", process.stdout))
        return RunningService(process.pid, process.stdin, answers)
    port = int(process.stdout.readline() or 0)
    if not port:
        raise NotHere("the service ended")
    connection = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    requests = cast("IO[bytes]", opened.enter_context(connection.makefile("wb", buffering=0)))
    return RunningService(process.pid, requests, opened.enter_context(connection.makefile("rb")))
