"""A server as a child process, for as long as a ``with`` block runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from pipeline.processes import Child


class EmbeddedProcess(ABC):
    """A server on a free loopback port."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self.url = ""
        """Where it listens while it runs."""

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        """The process id; 0 before it was started."""
        return self._child.pid if self._child else 0

    def ended(self, timeout_s: float = 30.0) -> int | None:
        """Wait for the end of the process and return its exit code; None if it still runs."""
        return self._child.wait(timeout_s) if self._child else None

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it answers."""

    def stop(self) -> None:
        """Stop the server."""
        if self._child is not None:
            self._child.stop()
        self._child = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
