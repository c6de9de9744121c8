"""One program run to its end, with bounds on what it prints and how long it takes."""

from __future__ import annotations

import os
import resource
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 16
_MOST_ERRORS = 1 << 16


@dataclass(frozen=True, slots=True)
class Output:
    """What a program printed. ``cut`` says why that is only the beginning; else it is empty.

    ``code`` is its exit code, negative for a signal; ``errors`` what it wrote to standard error, bounded.
    """

    data: bytes
    code: int
    cut: str = ""
    errors: str = ""


def run_bounded(
    command: Sequence[str],
    *,
    max_bytes: int,
    timeout_s: float,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    limits: Mapping[int, int] | None = None,
) -> Output:
    """Run a program, and kill it when it prints more than ``max_bytes`` or takes longer than ``timeout_s``.

    ``limits`` are bounds of the system by their numbers, ``resource.RLIMIT_*``; what the program starts
    inherits them.

    Raises:
        FileNotFoundError: there is no such program.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=folder
        )
        try:
            _limit(process.pid, limits or {})
            data, cut = _read(process, max_bytes, time.monotonic() + timeout_s)
        finally:
            process.kill()
            process.wait()
        errors.seek(0)
        said = errors.read(_MOST_ERRORS).decode("utf-8", errors="replace").strip()
    reason = {
        "bytes": f"is larger than {max_bytes / 1024**2:g} MiB",
        "time": f"took longer than {timeout_s:g} s",
    }
    return Output(data, process.returncode, reason.get(cut, ""), said)


def _limit(pid: int, limits: Mapping[int, int]) -> None:
    """Set limits of a process, none above those that it has.

    It has just been started, and runs without them for less than it takes to load itself. A function that
    runs between fork and exec could hang in a process with threads.
    """
    for number, most in limits.items():
        _, hard = resource.prlimit(pid, number)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, number, (bound, bound))


def _read(process: subprocess.Popen[bytes], max_bytes: int, deadline: float) -> tuple[bytes, str]:
    """Return what a process prints until its end, and which bound was met first: bytes, time or none."""
    assert process.stdout is not None
    chunks: list[bytes] = []
    size = 0
    with process.stdout as stream, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not selector.select(left_s):
                return b"".join(chunks), "time"
            chunk = os.read(stream.fileno(), _CHUNK)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
            if size > max_bytes:
                return b"".join(chunks)[:max_bytes], "bytes"
    try:
        process.wait(max(deadline - time.monotonic(), 1.0))
    except subprocess.TimeoutExpired:
        return b"".join(chunks), "time"
    return b"".join(chunks), ""
