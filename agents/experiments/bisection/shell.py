"""One shell command, run to its end or its time limit, with all that it started ended with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.settings.config import environment_of_others

_KEPT_BYTES = 64 * 1024
"""Most bytes of output that are kept, from its end."""

_MOST_REASON = 200  # characters of a command's last line


@dataclass(frozen=True, slots=True)
class Finished:
    """Result of a command.

    Args:
        code: Its exit code, negative for a signal; None if it took too long.
        output: The end of what it wrote to standard output.
        errors: The end of what it wrote to standard error.
        seconds: How long it took.
    """

    code: int | None
    output: str
    errors: str
    seconds: float

    @property
    def reason(self) -> str:
        """Reason of the failure, in a few words."""
        if self.code is None:
            return f"took longer than {self.seconds:.0f} s"
        message = next(
            (line.strip() for line in reversed((self.errors or self.output).split("\n")) if line), ""
        )
        ended = f"exit code {self.code}" if self.code >= 0 else f"signal {-self.code}"
        return f"{ended}: {message[:_MOST_REASON]}" if message else ended


def run_shell(command: str, folder: Path, timeout_s: float) -> Finished:
    """Run a command of ``sh`` in a folder; what it starts ends with it, and with Ctrl-C."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        process = subprocess.Popen(
            ["sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=folder,
            env=git_environment(),
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Finished(code, _end_of(output), _end_of(errors), time.monotonic() - began)


def git_environment() -> dict[str, str]:
    """Return this environment without Smidgen's secrets, and without variables that redirect git."""
    return {name: value for name, value in environment_of_others().items() if not name.startswith("GIT_")}


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _KEPT_BYTES, 0))
    return file.read().decode("utf-8", errors="replace")
