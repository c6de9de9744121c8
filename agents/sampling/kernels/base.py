"""Kernels, which sample processes: their interface, and their registry.

A kernel is a module of this package, which ``agents.sampling.kernels`` registers under its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from agents.sampling.kernels.choice import PROC, Runtime, runtimes, see_process, suitable
from pipeline.model.clock import Clock
from pipeline.model.errors import ConfigError, SmidgenError

AUTO = "auto"
"""Stands for the first kernel that suits a process and can sample here."""

CallGraph = Literal["fp", "dwarf"]
"""Unwinding of stacks of compiled code: by frame pointers, or by debug information."""

CALL_GRAPHS: tuple[CallGraph, ...] = get_args(CallGraph)


class SamplerError(SmidgenError):
    """The kernel cannot sample this process."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of a run.

    ``longest_s`` ends a run by itself, so that none outlives an agent that was killed; a run that streams
    ends with the thread that started it instead.
    """

    folder: Path  # for the files of runs
    clock: Clock
    rate_hz: int
    longest_s: int
    native: bool = False  # include frames of C, C++, Rust and Cython extensions
    idle: bool = False  # count waiting threads, too
    subprocesses: bool = False  # sample child processes, too
    nonblocking: bool = False  # the process is not paused while its stacks are read, and some are torn
    call_graph: CallGraph = "fp"


class KernelRun(Protocol):
    """One run of a kernel on a process. Its state changes in threads of its own."""

    @property
    def streams(self) -> bool:
        """True if ``take`` may be called during the run, so that one run samples a process to its end."""

    @property
    def ready(self) -> float:
        """Epoch seconds since when the run samples; 0 until it does."""

    @property
    def exited(self) -> float | None:
        """Epoch seconds when the run ended; None while it runs."""

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
    """A kernel: starts runs of a sampler."""

    def start(self, pid: int, wake: Callable[[], None]) -> KernelRun:
        """Start a run on a process and call ``wake``, from any thread, whenever its state changes."""


KernelFactory = Callable[[Sampling], Kernel]
"""Makes a kernel; raises SamplerError if it is not installed or not permitted here."""

_registry: dict[str, tuple[KernelFactory, tuple[Runtime, ...]]] = {}


def register(name: str, factory: KernelFactory, *sampled: Runtime) -> None:
    """Add a kernel and the runtimes that it samples, all if none is named.

    ``auto`` prefers those that were added earlier.
    """
    _registry[name] = (factory, sampled)


def kernel_names() -> tuple[str, ...]:
    """Return the names of all kernels, ``auto`` first."""
    return (AUTO, *_registry)


def make_kernel(name: str, sampling: Sampling) -> Kernel:
    """Return a kernel by its name; ``auto`` looks at each process.

    Raises:
        ConfigError: there is no such kernel.
        SamplerError: it is not installed or not permitted, for ``auto`` none is.
    """
    if name == AUTO:
        return AutoKernel(sampling)
    if name not in _registry:
        raise ConfigError(f"--kernel: should be one of {', '.join(kernel_names())}, not {name!r}")
    return _registry[name][0](sampling)


def suitable_kernels(pid: int, proc: Path = PROC) -> tuple[str, ...]:
    """Return the names of the kernels that suit the runtimes of a process, best first, installed or not."""
    return _suitable(runtimes(see_process(pid, proc)))


def _suitable(present: tuple[Runtime, ...]) -> tuple[str, ...]:
    return suitable({name: sampled for name, (_, sampled) in _registry.items()}, present)


class AutoKernel:
    """Samples each process with the first installed kernel that suits it.

    Raises:
        SamplerError: none is installed.
    """

    def __init__(self, sampling: Sampling, proc: Path = PROC) -> None:
        self._clock, self._proc = sampling.clock, proc
        self._kernels: dict[str, Kernel] = {}
        self._missing: dict[str, str] = {}
        self.chosen = ""  # name of the kernel that was started last
        for name, (factory, _) in _registry.items():
            try:
                self._kernels[name] = factory(sampling)
            except SamplerError as error:
                self._missing[name] = str(error)
        if not self._kernels:
            raise SamplerError("; ".join(self._missing.values()))

    def start(self, pid: int, wake: Callable[[], None]) -> KernelRun:
        """Start a run of the kernel that suits; if none does, the run has ended and has the reason."""
        present = runtimes(see_process(pid, self._proc))
        names = _suitable(present)
        for name in names:
            if name in self._kernels:
                self.chosen = name
                return self._kernels[name].start(pid, wake)
        wake()
        return EndedRun(self._clock(), self._reason(pid, present, names))

    def _reason(self, pid: int, present: tuple[Runtime, ...], names: tuple[str, ...]) -> str:
        if not present:
            return _why_unseen(self._proc / str(pid))
        what = present[0].value
        if names:
            return f"it runs {what}: {'; '.join(self._missing[name] for name in names)}"
        return f"it runs {what}, which no kernel samples (docs/agent.md)"


def _why_unseen(process: Path) -> str:
    """Return why nothing can be seen of a process, by its folder in /proc."""
    ended = "it has ended before it could be sampled"
    hidden = "its files in /proc may not be read: run the agent as root"
    try:
        state = process.joinpath("stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ended
    except OSError:
        return hidden
    return ended if state in ("Z", "X") else hidden


class EndedRun:
    """A run that ended before it sampled."""

    streams = False
    ready = 0.0

    def __init__(self, exited: float, reason: str) -> None:
        self.exited: float | None = exited
        self._reason = reason

    def stop(self) -> None:
        """Do nothing: it has ended."""

    def kill(self) -> None:
        """Do nothing: it has ended."""

    def take(self) -> bytes:
        """Return no stacks."""
        return b""

    def complaint(self) -> str:
        """Return why it did not sample."""
        return self._reason
