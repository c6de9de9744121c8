"""The process that is sampled: one that runs already, or a command that the agent starts."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from pipeline.model.errors import ConfigError
from pipeline.processes import end
from pipeline.settings.config import environment_of_others

_PR_SET_PTRACER = 0x59616D61
STOP_S = 10.0
"""Seconds that a command may take to end after SIGTERM."""


class SampledProcess(Protocol):
    """A process to sample."""

    pid: int
    starting: bool
    """True if it may still need a moment before it can be sampled."""

    def alive(self) -> bool:
        """Return whether it runs."""


class ExistingProcess:
    """A process that somebody else started.

    Raises:
        ConfigError: there is no process with this id.
    """

    starting = False

    def __init__(self, pid: int) -> None:
        self.pid = pid
        if not self.alive():
            raise ConfigError(f"--pid: no process has the id {pid}")

    def alive(self) -> bool:
        """Return whether it runs; one that only waits to be reaped does not."""
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            return True
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return Path("/proc/self").exists() is False
        return status.rpartition(")")[2].split()[0] not in ("Z", "X")


class StartedCommand:
    """A command run by the agent, with its own input, output and environment but for Smidgen's secrets.

    Raises:
        ConfigError: it cannot be started.
    """

    starting = True

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                command,
                env=environment_of_others(),
                preexec_fn=_let_trace(os.getpid()),  # noqa: PLW1509
            )
        except OSError as error:
            raise ConfigError(f"cannot run {command[0]}: {error.strerror or error}") from None
        self.pid = self._process.pid

    def alive(self) -> bool:
        """Return whether it runs."""
        return self._process.poll() is None

    def exit_code(self) -> int:
        """Wait for its end and return its exit code; negative is the signal that ended it."""
        return self._process.wait()

    def stop(self) -> None:
        """End it with SIGTERM, and with SIGKILL if it has not ended within STOP_S."""
        end(self._process, STOP_S)


def _let_trace(agent_pid: int) -> Callable[[], None]:
    """Return what lets the agent's children sample the command where Yama allows only ancestors to.

    Without Yama the call fails, and nothing needs it.
    """
    libc = ctypes.CDLL(None)  # loaded before the fork, where nothing may be loaded

    def allow() -> None:
        libc.prctl(_PR_SET_PTRACER, agent_pid, 0, 0, 0)

    return allow
