"""perf, the kernel of compiled programs: ``perf record`` into ``perf script``, once a process.

Its event is the clock of the CPU: one sample each 1/rate seconds of CPU time, on every machine, virtual ones
too. Cycles would weigh code by the frequency that the CPU had just then, and many hosts do not count them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from agents.sampling.kernels.base import SamplerError, Sampling
from agents.sampling.kernels.stream import LINE_BUFFERED, Pipe, StreamRun, find_line_buffer

NAME = "perf"
EVENT = "cpu-clock"
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")

DWARF_BYTES = 8192
"""Bytes of the stack that are copied with each sample, to be unwound by debug information."""

_DENIED = ("No permission", "not permitted", "Permission denied", "is limited", "EPERM", "EACCES")
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38


class Perf:
    """Starts runs of perf.

    Raises:
        SamplerError: perf is not installed or not permitted, or does not support the settings.
    """

    def __init__(self, sampling: Sampling, binary: str | None = None) -> None:
        if sampling.idle:
            raise SamplerError("perf samples threads that run, not those that wait: leave out --idle")
        self._sampling = sampling
        self._binary = binary or find_perf()
        if reason := denied(paranoid=_paranoid(), privileged=_privileged()):
            raise SamplerError(reason)

    def start(self, pid: int, wake: Callable[[], None]) -> StreamRun:
        """Start a run on a process and call ``wake``, from a thread, when it samples and when it ended."""
        # perf begins on a command through one pipe, and confirms that through the other.
        command_fd, ask = os.pipe()
        answer, answered = os.pipe()
        pipe = Pipe(tuple(self._commands(pid, command_fd, answered)), NAME, inherited=(command_fd, answered))
        try:
            run = StreamRun(pipe, self._sampling.clock, wake, explain)
        finally:
            os.close(command_fd)
            os.close(answered)
        threading.Thread(target=_begin, args=(run, ask, answer), daemon=True).start()
        return run

    def _commands(self, pid: int, command_fd: int, answered: int) -> Iterator[tuple[str, ...]]:
        stacks = {"fp": "fp", "dwarf": f"dwarf,{DWARF_BYTES}"}[self._sampling.call_graph]
        record = (self._binary, "record", "--pid", str(pid), "--event", EVENT)
        how = ("--freq", str(self._sampling.rate_hz), "--call-graph", stacks)
        # Samples are written as they come, without data that only files read on other machines need.
        output = ("--no-buffering", "--no-buildid", "--no-buildid-cache", "--output", "-")
        yield (*record, *how, *output, "--delay=-1", "--control", f"fd:{command_fd},{answered}")
        script = ("script", "--input", "-", "--no-inline", "--fields", "comm,pid,tid,time,event,ip,sym,dso")
        # Children are sampled with their parent, and left out here.
        own = () if self._sampling.subprocesses else ("--pid", str(pid))
        yield (*LINE_BUFFERED, self._binary, *script, *own)


def explain(text: str) -> str:
    """Return in one line why perf failed, from its output."""
    if any(words in text for words in _DENIED):
        return "not permitted: " + _permission()
    lines = [line for line in text.splitlines() if line and not line.startswith(("Events ", "[ perf"))]
    return f"perf: {lines[0].removeprefix('Error:').strip() or lines[-1]}" if lines else "perf ended"


def denied(*, paranoid: int, privileged: bool) -> str:
    """Return why perf may not be used at all, empty if it may."""
    return "" if privileged or paranoid <= 2 else f"perf is not permitted: {_permission()}"


def find_perf() -> str:
    """Return the path of perf.

    Raises:
        SamplerError: it is not installed.
    """
    path = shutil.which(NAME)
    if not path:
        raise SamplerError("perf is not installed: install linux-perf (Debian) or linux-tools (Ubuntu)")
    find_line_buffer(NAME)
    return path


def _permission() -> str:
    return (
        "it needs root, CAP_PERFMON with CAP_SYS_PTRACE, or the same user and "
        "kernel.perf_event_paranoid=2 or less, 1 or less for the kernel's frames (docs/agent.md)"
    )


def _begin(run: StreamRun, ask: int, answer: int) -> None:
    with os.fdopen(ask, "wb", buffering=0) as asking, os.fdopen(answer, "rb", buffering=0) as answering:
        with contextlib.suppress(BrokenPipeError):  # perf has ended
            asking.write(b"enable\n")
        if answering.read(1):
            run.began()
            while answering.read(64):  # until it ends, as perf 6.1 ends once the other pipe is closed
                pass


def _paranoid() -> int:
    try:
        return int(PARANOID.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 2


def _privileged() -> bool:
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
        held = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    except (OSError, StopIteration, ValueError):
        return os.geteuid() == 0
    return bool(held >> _CAP_PERFMON & 1 or held >> _CAP_SYS_ADMIN & 1)
