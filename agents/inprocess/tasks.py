"""asyncio: the tasks that run, the tasks that await them, and the frames of waiting tasks.

A task's own stack ends at the event loop. Its callbacks hold what awaits it: the task that awaits it
directly, a task group, or a future (of ``gather``, ``wait``, ``shield`` or ``wait_for``) that another task
awaits, also one that a pool's thread settles. Python 3.14 has an API for it. If several await one task,
the first one counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

MAX_AWAITING = 50
"""Most tasks that await one another, and most frames of one of them times ten."""


POOL_FRAMES = ("_WorkItem.run", "WorkerThread.run")
"""Qualified names of the functions in which pools run their work."""


def running_tasks() -> dict[FrameType, Any]:
    """Return the tasks that run now, in all threads, by the frame of their outermost coroutine."""
    tasks: Any = sys.modules.get("asyncio.tasks")
    running: dict[FrameType, Any] = {}
    for task in list(getattr(tasks, "_current_tasks", {}).values()):
        frame = getattr(task.get_coro(), "cr_frame", None)
        if frame is not None:
            running[frame] = task
    return running


def awaiting_tasks(task: Any) -> Iterator[Any]:
    """Yield the task that awaits this one, the one that awaits that one, and so on."""
    seen = {task}
    for _ in range(MAX_AWAITING):
        task = _awaiter(task, 0)
        if task is None or task in seen:
            return
        seen.add(task)
        yield task


def waiting_frames(task: Any) -> list[FrameType]:
    """Return the frames of a task that waits, outermost first."""
    frames: list[FrameType] = []
    waiting = task.get_coro()
    while waiting is not None and len(frames) < 10 * MAX_AWAITING:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        frame = frame or getattr(waiting, "ag_frame", None)
        if frame is None:
            break
        frames.append(frame)
        waiting = (
            getattr(waiting, "cr_await", None)
            or getattr(waiting, "gi_yieldfrom", None)
            or getattr(waiting, "ag_await", None)
        )
    return frames


def awaits_result_of(frame: FrameType) -> Any:
    """Return the task that awaits what a pool's thread computes, by the frame in which the pool runs it.

    Those frames are of ``run_in_executor`` and ``to_thread``, asgiref's ``sync_to_async`` (Django), and anyio
    (Starlette, FastAPI). None if no task awaits it.
    """
    variables = frame.f_locals
    future = variables.get("future") or getattr(variables.get("self"), "future", None)
    return _awaiter(future, 0) if future is not None else None


def _awaiter(future: Any, depth: int) -> Any:
    """Return the task that awaits a future, through at most a few other futures; None if there is none."""
    if depth > 5:
        return None
    for waiter in getattr(future, "_asyncio_awaited_by", None) or ():
        return waiter if _is_task(waiter) else _awaiter(waiter, depth + 1)
    callbacks = [callback for callback, _context in getattr(future, "_callbacks", None) or ()]
    for callback in callbacks or list(getattr(future, "_done_callbacks", ())):
        owner = getattr(callback, "__self__", None)
        for waiter in (owner, getattr(owner, "_parent_task", None)):
            if _is_task(waiter):
                return waiter
        for between in _futures_of(callback):
            if between is not future and (awaiter := _awaiter(between, depth + 1)):
                return awaiter
    return None


def _futures_of(callback: Any) -> list[Any]:
    """Return the plain futures that a callback will settle, which it holds in its closure or arguments."""
    held = list(getattr(callback, "args", ()))
    for cell in getattr(callback, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    return [value for value in held if hasattr(value, "_callbacks") and not _is_task(value)]


def _is_task(value: Any) -> bool:
    return hasattr(value, "get_coro") and hasattr(value, "get_stack")
