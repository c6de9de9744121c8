"""What samples a process: the interface of a kernel, and the registry of those that there are.

A kernel is a module of this package, which ``agents.kernels`` registers under its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline.clock import Clock
from pipeline.errors import ConfigError, SmidgenError

AUTO = "auto"
"""Stands for the first kernel that can sample here."""


class SamplerError(SmidgenError):
    """The kernel cannot sample this process."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample.

    ``longest_s`` ends a run by itself, so that none outlives an agent that was killed; a run that streams
    ends with the thread that started it instead.
    """

    folder: Path  # for the files of runs
    clock: Clock
    rate_hz: int
    longest_s: int
    native: bool = False  # frames of C, C++, Rust and Cython extensions too
    idle: bool = False  # threads that wait, too
    subprocesses: bool = False  # processes that the process starts, too
    nonblocking: bool = False  # the process is not paused while its stacks are read, and some are torn


class Run(Protocol):
    """One run of a kernel on a process. Its state changes in threads of its own."""

    @property
    def streams(self) -> bool:
        """Whether ``take`` may be called while it runs, so that one run samples a process to its end."""

    @property
    def ready(self) -> float:
        """Since when it samples, in epoch seconds; 0 until it does."""

    @property
    def exited(self) -> float | None:
        """When it ended, in epoch seconds; None while it runs."""

    def stop(self) -> None:
        """Ask it to end and write what it has."""

    def kill(self) -> None:
        """End it at once; what it sampled is lost."""

    def take(self) -> bytes:
        """Return the collapsed stacks sampled since the last take, empty if there are none, and forget them.

        A run that does not stream has none before it ended. Does not block for long.
        """

    def complaint(self) -> str:
        """Return in one line why it failed."""


class Kernel(Protocol):
    """What starts runs of a sampler."""

    def start(self, pid: int, wake: Callable[[], None]) -> Run:
        """Start a run on a process and call ``wake``, from any thread, whenever its state changes."""


KernelFactory = Callable[[Sampling], Kernel]
"""Makes a kernel; raises SamplerError if it is not installed here."""

_registry: dict[str, KernelFactory] = {}


def register(name: str, factory: KernelFactory) -> None:
    """Add a kernel; ``auto`` prefers those that were added earlier."""
    _registry[name] = factory


def kernel_names() -> tuple[str, ...]:
    """Return the names of all kernels, ``auto`` first."""
    return (AUTO, *_registry)


def make_kernel(name: str, sampling: Sampling) -> Kernel:
    """Return a kernel by its name, for ``auto`` the first that is installed.

    Raises:
        ConfigError: there is no such kernel.
        SamplerError: it is not installed.
    """
    names = tuple(_registry) if name == AUTO else (name,)
    missing: list[str] = []
    for each in names:
        if each not in _registry:
            raise ConfigError(f"--kernel: should be one of {', '.join(kernel_names())}, not {each!r}")
        try:
            return _registry[each](sampling)
        except SamplerError as error:
            missing.append(str(error))
    raise SamplerError("; ".join(missing))
