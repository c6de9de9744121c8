"""A group of child processes under an event loop: each logs to a file of its own, and none outlives it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pipeline.model.errors import SmidgenError
from pipeline.processes.child import Child
from pipeline.processes.smidgen import smidgen_environment

GROUP_STOP_S = 30.0
"""How long a process of a group may take to end after SIGTERM."""

_TICK_S = 0.1
_POLL_S = 0.02
_SHOWN_LINES = 12


class ChildFailed(SmidgenError):
    """A process ended that should run, or ended with an error; the text has its last log lines."""


class Process:
    """One child of a group."""

    def __init__(self, name: str, log: Path, child: Child) -> None:
        self.name = name
        self.log = log
        self._child = child
        self.may_end = False
        """Whether its end is in order, whenever it comes."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._child.returncode

    async def wait(self, timeout_s: float) -> bool:
        """Wait for its end; False if it still runs."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self._child.running and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_POLL_S)
        return not self._child.running

    async def line(self, start: str, timeout_s: float) -> str:
        """Wait for a line of its log that contains ``start``, and return the line from there.

        Raises:
            ChildFailed: it ended, or the line did not come in time.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while True:
            ended = self.returncode is not None
            for line in tail_of(self.log, lines=1000).splitlines():
                if start in line:
                    return line[line.index(start) :]
            if ended:
                raise self.failure()
            if asyncio.get_running_loop().time() > deadline:
                raise ChildFailed(
                    f"{self.name} was not ready within {timeout_s:g} s; its log ends with:\n"
                    f"{tail_of(self.log)}"
                )
            await asyncio.sleep(_TICK_S)

    async def stop(self, timeout_s: float = GROUP_STOP_S) -> None:
        """Ask it to end with SIGTERM; kill it with all its children if it does not."""
        self.may_end = True
        self._child.send(signal.SIGTERM)
        await self.wait(timeout_s)
        self._child.stop(timeout_s=0.0)

    def failure(self) -> ChildFailed:
        """Return what to say of its unwanted end."""
        code = self.returncode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        tail = tail_of(self.log)
        return ChildFailed(f"{self.name} {how}; its log ends with:\n{tail}" if tail else f"{self.name} {how}")


class Group:
    """All children of one run. ``folder`` takes their logs and is where they run."""

    def __init__(self, folder: Path) -> None:
        self._logs = folder / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.running: list[Process] = []

    async def start(self, name: str, command: Sequence[str], folder: Path | None = None) -> Process:
        """Start a program that is to run until it is stopped."""
        log = self._logs / f"{name}.log"
        child = Child(command, log=log, folder=folder or self._folder, environment=smidgen_environment())
        process = Process(name, log, child)
        self.running.append(process)
        return process

    async def run(self, name: str, command: Sequence[str], timeout_s: float = 60.0) -> None:
        """Run a program to its end.

        Raises:
            ChildFailed: it fails or takes too long.
        """
        process = await self.start(name, command)
        process.may_end = True
        try:
            if not await process.wait(timeout_s):
                raise ChildFailed(f"{name} took longer than {timeout_s:g} s\n{tail_of(process.log)}")
            if process.returncode != 0:
                raise process.failure()
        finally:
            await self.stop(process)

    async def stop(self, *processes: Process) -> None:
        """Stop processes together, and forget them."""
        await asyncio.gather(*(process.stop() for process in processes))
        self.running = [process for process in self.running if process not in processes]

    async def watch(self) -> NoReturn:
        """Wait until a process has ended that should run, and raise ChildFailed."""
        while True:
            for process in self.running:
                if process.returncode is not None and not process.may_end:
                    raise process.failure()
            await asyncio.sleep(_TICK_S)

    async def stop_all(self) -> None:
        """Stop everything: first what talks to the process that was started first, then that one."""
        for process in self.running:
            process.may_end = True
        await self.stop(*self.running[1:])
        await self.stop(*self.running)


def tail_of(log: Path, lines: int = _SHOWN_LINES) -> str:
    """Return the last lines of a log; empty if there are none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])
