"""The demo's child processes: each logs to a file of its own, and none outlives the demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pipeline.embedded import tether
from pipeline.errors import SmidgenError

STOP_S = 30.0
"""How long a process may take to end after SIGTERM."""

_TICK_S = 0.1
_SHOWN_LINES = 12

SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Two cores are shared by all: a stage's linear algebra must not start threads for each of them."""


class ChildFailed(SmidgenError):
    """A process ended that should run, or ended with an error; the text has its last log lines."""


class Process:
    """One running child."""

    def __init__(self, name: str, log: Path, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.log = log
        self._process = process
        self.may_end = False
        """Whether its end is in order, whenever it comes."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def wait(self, timeout_s: float) -> bool:
        """Wait for its end; False if it still runs."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._process.wait()), timeout_s)
        return self.returncode is not None

    async def stop(self, timeout_s: float = STOP_S) -> None:
        """Ask it to end with SIGTERM; kill it with all its children if it does not."""
        self.may_end = True
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            await self.wait(timeout_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()

    def failure(self) -> ChildFailed:
        """Return what to say of its unwanted end."""
        code = self.returncode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        tail = tail_of(self.log)
        return ChildFailed(f"{self.name} {how}; its log ends with:\n{tail}" if tail else f"{self.name} {how}")


class Processes:
    """All children of one run. ``folder`` takes their logs and is where they run."""

    def __init__(self, folder: Path) -> None:
        self._logs = folder / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.running: list[Process] = []

    async def start(self, name: str, command: Sequence[str], cwd: Path | None = None) -> Process:
        """Start a program that is to run until it is stopped.

        It has a session of its own, so that Ctrl-C reaches the demo alone, which then ends all in order;
        and the kernel kills it should the demo itself be killed.
        """
        log = self._logs / f"{name}.log"
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=cwd or self._folder,
                env=_environment(),
                start_new_session=True,
            )
        started = Process(name, log, process)
        self.running.append(started)
        return started

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


def smidgen(*arguments: str) -> list[str]:
    """Return the command line of a ``smidgen`` command of this installation."""
    script = Path(sys.executable).with_name("smidgen")
    if script.exists():
        return [sys.executable, str(script), *arguments]
    return [sys.executable, "-c", "from pipeline.cli import main; main()", *arguments]


def tail_of(log: Path, lines: int = _SHOWN_LINES) -> str:
    """Return the last lines of a log; empty if there are none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def _environment() -> dict[str, str]:
    """Return this process's environment without settings of Smidgen: the demo gives all by flags."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SMIDGEN_")}
    return inherited | SINGLE_THREADED | {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
