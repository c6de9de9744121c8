"""Processes of a benchmark: workers that end with it, and commands of Smidgen that run to their end."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

from pipeline.model.errors import SmidgenError
from pipeline.processes import run_bounded

Task = TypeVar("Task")
Result = TypeVar("Result")

_COMMAND_S = 300.0


def run_in_workers(
    work: Callable[[Task], Result], tasks: Iterable[Task], processes: int
) -> Iterator[tuple[Task, Result]]:
    """Run tasks in processes of their own, and yield each task with its result once it is done.

    Raises:
        SmidgenError: a process died.
    """
    with worker_pool(processes) as pool:
        waiting = {pool.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool:
            raise SmidgenError("a process of the benchmark died; is there enough memory?") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def results_of_workers(
    work: Callable[[Task], Result], tasks: Sequence[Task], processes: int, advance: Callable[[], None]
) -> list[Result]:
    """Run tasks in processes of their own, and return their results in the order of the tasks.

    Raises:
        SmidgenError: a process died.
    """
    results: dict[int, Result] = {}
    for (number, _), result in run_in_workers(partial(_second, work), enumerate(tasks), processes):
        results[number] = result
        advance()
    return [results[number] for number in range(len(tasks))]


def worker_pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool of fresh processes: they inherit no threads and no open files.

    The processes end with the benchmark, even if SIGKILL ends it: a run of a large fleet takes minutes of a
    core, and its result would go to nobody.
    """
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_end_with_parent)


def run_smidgen(*arguments: str, folder: Path | None = None) -> None:
    """Run one command of the Smidgen in ``folder``, by default of this one.

    Raises:
        SmidgenError: the command failed; the text has its message.
    """
    command = [sys.executable, "-m", "pipeline", *arguments]
    output = run_bounded(command, max_bytes=1 << 20, timeout_s=_COMMAND_S, folder=folder)
    if output.code:
        message = output.errors or output.data.decode(errors="replace").strip()
        raise SmidgenError(f"smidgen {' '.join(arguments[:2])} failed: {message}")


def _second(work: Callable[[Task], Result], task: tuple[int, Task]) -> Result:
    return work(task[1])


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
