"""Runs ``git`` on a repository that may be hostile, with bounds on what it prints and how long it takes."""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from pipeline.config import environment_of_others
from pipeline.errors import ConfigError

_CHUNK = 1 << 16

_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "log.showSignature=false"),  # would run gpg, or what the repository names instead
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone may not fetch: its transport is a program
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


class GitError(ConfigError):
    """The repository or revision is wrong; the text is git's own."""


@dataclass(frozen=True, slots=True)
class Output:
    """What git printed. ``cut`` says why it is only the beginning, ``error`` why git failed; else empty."""

    data: bytes
    cut: str = ""
    error: str = ""


def run_git(
    repository: Path, arguments: Sequence[str], *, stdin: bytes, max_bytes: int, timeout_s: float
) -> Output:
    """Run git in a folder, and end it when it prints too much or takes too long.

    Raises:
        GitError: git is not installed.
    """
    command = ["git", "-C", str(repository.absolute()), *_OPTIONS, *arguments]
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as errors:
        told.write(stdin)
        told.seek(0)
        try:
            process = subprocess.Popen(
                command, stdin=told, stdout=subprocess.PIPE, stderr=errors, env=_environment()
            )
        except FileNotFoundError:
            raise GitError("git is not installed") from None
        try:
            output = _read(process, max_bytes, timeout_s)
        finally:
            process.kill()
            process.wait()
        if process.returncode and not output.cut:
            return replace(output, error=_reason(errors))
        return output


def _environment() -> dict[str, str]:
    """Return the caller's environment without git's variables: a hook's would name another repository."""
    clean = {name: value for name, value in environment_of_others().items() if not name.startswith("GIT_")}
    return clean | _ENVIRONMENT


def _read(process: subprocess.Popen[bytes], max_bytes: int, timeout_s: float) -> Output:
    assert process.stdout is not None
    deadline = time.monotonic() + timeout_s
    chunks: list[bytes] = []
    size = 0
    with process.stdout as stream, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not selector.select(left_s):
                return Output(b"".join(chunks), f"took longer than {timeout_s:g} s")
            chunk = os.read(stream.fileno(), _CHUNK)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
            if size > max_bytes:
                return Output(b"".join(chunks)[:max_bytes], f"is larger than {max_bytes / 1024**2:g} MiB")
    try:
        process.wait(max(deadline - time.monotonic(), 1.0))
    except subprocess.TimeoutExpired:
        return Output(b"".join(chunks), f"took longer than {timeout_s:g} s")
    return Output(b"".join(chunks))


def _reason(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read(_CHUNK).decode("utf-8", errors="replace").strip().split("\n")
    told = next((line for line in lines if not line.startswith("warning: ")), lines[0])
    first = told.removeprefix("fatal: ").removeprefix("error: ")
    if "dubious ownership" in first:
        return f"{first}; if it is trusted: git config --global --add safe.directory FOLDER"
    return first or "git failed"
