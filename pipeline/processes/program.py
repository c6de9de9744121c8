"""Run of one program to its end, with bounds on its output and its time."""

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
    """The output of a program. ``cut`` has the reason why it is incomplete; empty if it is complete.

    ``code`` is the exit code, negative for a signal; ``errors`` the bounded text of standard error.
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
    """Run a program, and kill it if it prints more than ``max_bytes`` or takes longer than ``timeout_s``.

    ``limits`` are limits of the operating system by number, ``resource.RLIMIT_*``; child processes of the
    program inherit them.

    Raises:
        FileNotFoundError: there is no such program.
    """
    with tempfile.TemporaryFile() as input_file, tempfile.TemporaryFile() as errors:
        input_file.write(stdin)
        input_file.seek(0)
        process = subprocess.Popen(
            command, stdin=input_file, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=folder
        )
        try:
            _limit(process.pid, limits or {})
            data, cut = _read(process, max_bytes, time.monotonic() + timeout_s)
        finally:
            process.kill()
            process.wait()
        errors.seek(0)
        error_text = errors.read(_MOST_ERRORS).decode("utf-8", errors="replace").strip()
    reason = {
        "bytes": f"is larger than {max_bytes / 1024**2:g} MiB",
        "time": f"took longer than {timeout_s:g} s",
    }
    return Output(data, process.returncode, reason.get(cut, ""), error_text)


def _limit(pid: int, limits: Mapping[int, int]) -> None:
    """Set limits of a process, none above its present ones.

    The process has just been started, and gets its limits while it still loads. They are not set between
    fork and exec, because a function there could hang in a process with threads.
    """
    for number, most in limits.items():
        _, hard = resource.prlimit(pid, number)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, number, (bound, bound))


def _read(process: subprocess.Popen[bytes], max_bytes: int, deadline: float) -> tuple[bytes, str]:
    """Return the output of a process, and the bound that was met first: "bytes", "time" or ""."""
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
