from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn

import pytest

from loadgen.demo.tasks import BackgroundTasks
from pipeline.processes import ChildFailed, Group, Process, tail_of

PYTHON = sys.executable
SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return status.rpartition(")")[2].split()[0] != "Z"


async def gone(pid: int) -> None:
    async with asyncio.timeout(60):
        while alive(pid):
            await asyncio.sleep(0.02)


async def up(process: Process) -> None:
    async with asyncio.timeout(60):
        while "up" not in tail_of(process.log):
            await asyncio.sleep(0.02)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def test_a_child_that_ends_by_itself_is_named_with_its_last_words(tmp_path: Path) -> None:
    processes = Group(tmp_path)
    await processes.start("worker", [PYTHON, "-c", "print('disk is full'); raise SystemExit(3)"])
    with pytest.raises(ChildFailed, match=r"worker ended with code 3; .*\ndisk is full"):
        await asyncio.wait_for(processes.watch(), 60)
    await processes.stop_all()


async def test_a_child_that_is_killed_is_named_with_the_signal(tmp_path: Path) -> None:
    processes = Group(tmp_path)
    process = await processes.start("worker", [PYTHON, "-c", SLEEP])
    await up(process)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(ChildFailed, match="worker was killed by signal 9"):
        await asyncio.wait_for(processes.watch(), 60)
    await processes.stop_all()


async def test_stopping_all_leaves_nothing_behind(tmp_path: Path) -> None:
    parent = (
        "import subprocess, sys; sleep = 'import time; time.sleep(60)';"
        "child = subprocess.Popen([sys.executable, '-c', sleep]);"
        "print(child.pid, 'up', flush=True); child.wait()"
    )
    processes = Group(tmp_path)
    started = [await processes.start("one", [PYTHON, "-c", SLEEP])]
    started.append(await processes.start("parent", [PYTHON, "-c", parent]))
    for process in started:
        await up(process)
    grandchild = int(tail_of(started[1].log).split()[0])
    await processes.stop_all()
    assert processes.running == []
    for pid in (*(process.pid for process in started), grandchild):
        await gone(pid)


async def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    process = await Group(tmp_path).start("stubborn", [PYTHON, "-c", STUBBORN])
    await up(process)
    await process.stop(timeout_s=0.2)
    assert process.returncode == -signal.SIGKILL


async def test_a_command_that_fails_or_hangs_raises(tmp_path: Path) -> None:
    processes = Group(tmp_path)
    with pytest.raises(ChildFailed, match="migrate ended with code 2"):
        await processes.run("migrate", [PYTHON, "-c", "raise SystemExit(2)"])
    with pytest.raises(ChildFailed, match=r"topics took longer than 0\.3 s"):
        await processes.run("topics", [PYTHON, "-c", SLEEP], timeout_s=0.3)
    await processes.run("fine", [PYTHON, "-c", "pass"])
    assert processes.running == []


async def test_settings_of_smidgen_do_not_reach_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMIDGEN_BROKER", "elsewhere:9092")
    shown = "import os; print([name for name in os.environ if name.startswith('SMIDGEN_')])"
    await Group(tmp_path).run("show", [PYTHON, "-c", shown])
    assert tail_of(tmp_path / "logs" / "show.log") == "[]"


async def test_a_background_failure_ends_the_script() -> None:
    async def fail() -> NoReturn:
        raise ChildFailed("detect ended")

    ended = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("script")

    background = BackgroundTasks()
    background.add(fail())
    with pytest.raises(ChildFailed, match="detect ended"):
        await background.lead(forever())
    assert ended == ["script"]


async def test_the_background_ends_with_the_script() -> None:
    ended = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("background")

    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    background = BackgroundTasks()
    background.add(forever())
    assert await background.lead(answer()) == 42
    assert ended == ["background"]
